"""One round explained: what a review says, how a response answers it, and what looks wrong.

It works on texts alone, without a project, a database or earlier rounds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from disputes.protocol.responses.response import ReadResponse, read_response
from disputes.protocol.reviews.review import Found, ReadReview, Verdict, read_review
from disputes.protocol.reviews.severity import GRAVE
from disputes.protocol.reviews.statuses import Status
from disputes.protocol.reviews.verdict_words import read_verdict
from disputes.protocol.rounds.linking import Links
from disputes.protocol.rounds.partial import declared
from disputes.protocol.rounds.subjects import gap_texts, subject_of
from disputes.protocol.rounds.validation import parser_alarm
from disputes.protocol.silence.heuristics import judge_silence
from disputes.protocol.silence.suspicion import SEEN_AS, Judgement, Watched
from disputes.protocol.text.documents import scan
from disputes.protocol.text.identifiers import gaps_in

UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class CheckedRound:
    """A round as read. Without a response, `response` and `judgement` are None.

    `alerts` are what a person has to look at; `warnings` are what may be wrong with a document, with its
    line.
    """

    review: ReadReview
    response: ReadResponse | None
    judgement: Judgement | None
    alerts: tuple[str, ...]
    warnings: tuple[str, ...]


def check_round(review: str, response: str | None = None, before: str = "") -> CheckedRound:
    """Read a review and, if there is one, the response to it; `before` is the document under review.

    Raises DocumentError if a document is too large.
    """
    read = read_review(review)
    if response is None:
        return CheckedRound(read, None, None, tuple(_review_alerts(read)), tuple(_warnings(read, None)))
    answered = read_response(response, known=[found.code for found in read.findings if found.code])
    judgement = judge_silence(
        list(_watched(read, response, before, answers=bool(answered.answers))),
        answered,
        response,
        before,
    )
    # Only the texts are known here, so any well-formed id may name a gap.
    blocked, strange = declared(scan(response), frozenset(gaps_in(response)))
    alerts = (
        *_review_alerts(read),
        *(f"{each.gap} is blocked and waits for input: {each.text}." for each in blocked),
        *(alert.text for alert in judgement.alerts),
    )
    warnings = (*_warnings(read, answered), *(f"response, {warning}" for warning in strange))
    return CheckedRound(read, answered, judgement, alerts, warnings)


def _watched(review: ReadReview, response: str, before: str, *, answers: bool) -> Iterator[Watched]:
    """Yield the findings with what the response says about their gaps; other gaps are not due yet (SIL-6)."""
    subject = subject_of(response)
    proposed = sorted(subject_of(before).gaps) if before else []
    solutions = gap_texts(response)
    for watched in watched_findings(review, proposed):
        yield replace(
            watched,
            is_due=not subject.gaps or subject.expects(watched.gap, proposed, answers=answers),
            is_claimed_resolved=watched.gap in subject.resolved,
            solution=solutions.get(watched.gap, ""),
        )


# --- What to look at --------------------------------------------------------------------------------------


def _review_alerts(review: ReadReview) -> Iterator[str]:
    if why := parser_alarm(scan(review.text), review):
        yield f"The parser may have missed findings: {why}."
    if review.verdict is None:
        yield "No verdict can be read; this is no approval."
    approved = [
        stated
        for stated in review.verdicts
        if read_verdict(stated.raw) in (Verdict.APPROVED, Verdict.NO_ISSUES_FOUND)
    ]
    grave = [found for found in review.findings if found.severity in GRAVE and not found.withdrawn]
    if approved and grave and review.verdict is not Verdict.NEEDS_REVISION:
        names = ", ".join(name_of(found) for found in grave)
        words = f"{approved[0].raw} in line {approved[0].line} although {names} must be settled"
        yield f"{words}: this is no approval. Treat it as needs-changes."
    unresolved = [status.code for status in review.prior if status.status is Status.UNRESOLVED]
    if approved and unresolved:
        yield f"{approved[0].raw} although {', '.join(unresolved)} of an earlier round stay unresolved."


def _warnings(review: ReadReview, response: ReadResponse | None) -> Iterator[str]:
    for problem in review.warnings:
        yield f"review, line {problem.line}: {problem.reason}"
    for found in review.findings:
        if found.severity is None:
            yield f"review, line {found.line}: {name_of(found)} has no severity; it counts as medium"
    for problem in response.warnings if response else ():
        yield f"response, line {problem.line}: {problem.reason}"


def name_of(found: Found) -> str:
    """Return the name of a finding: its code, or #3 for the third one without a code."""
    return found.code or f"#{found.ordinal}"


# --- For machines -----------------------------------------------------------------------------------------


def as_json(checked: CheckedRound) -> dict[str, Any]:
    """Return the round as plain values."""
    review, response, judgement = checked.review, checked.response, checked.judgement
    return {
        "verdict": review.verdict.value if review.verdict else UNKNOWN,
        "verdicts": [
            {"scope": each.scope, "raw": each.raw, "normalized": each.verdict.value, "line": each.line}
            for each in review.verdicts
        ],
        "findings": [_finding(found) for found in review.findings],
        "prior_findings": [{"code": each.code, "status": each.status.value} for each in review.prior],
        "answers": [
            {"finding": answer.code, "kind": answer.kind.value, "line": answer.line}
            for answer in (response.answers if response else ())
        ],
        "disagreements": [
            {
                "finding": block.code, "position": block.position, "rationale": block.rationale,
                "alternative": block.alternative, "line": block.line, "problems": list(block.problems),
            }
            for block in (response.disagreements if response else ())
        ],
        "flags": [
            {
                "finding": flag.code or f"#{flag.ordinal}", "level": str(flag.level),
                "heuristics": [str(each) for each in flag.heuristics],
            }
            for flag in (judgement.flags if judgement else ())
        ],
        "alerts": list(checked.alerts),
        "warnings": list(checked.warnings),
    }  # fmt: skip


def _finding(found: Found) -> dict[str, Any]:
    return {
        "code": found.code or None, "ordinal": found.ordinal, "line": found.line,
        "severity": found.severity.value.upper() if found.severity else None, "title": found.title,
        "location": found.location, "impact": found.impact, "suggestion": found.suggestion,
        "format": found.format,
    }  # fmt: skip


# --- For people -------------------------------------------------------------------------------------------


def explain(checked: CheckedRound) -> Iterator[str]:
    """Yield the round line by line, in sections; a section without entries is left out."""
    yield from _section("Verdict", _verdict_lines(checked.review))
    yield from _section("Findings", _finding_lines(checked.review), "The review raises nothing.")
    yield from _section(
        "Earlier findings",
        (f"{each.code}: {each.status.lower()} (line {each.line})" for each in checked.review.prior),
    )
    if checked.response is not None:
        yield from _section("Answers", _answer_lines(checked.response), "The response answers no finding.")
        yield from _section("Disagreements", _disagreement_lines(checked.response))
    if checked.judgement is not None:
        yield from _section("Suspected silence", _flag_lines(checked.judgement))
    yield from _section("To look at", checked.alerts)
    yield from _section("Warnings", checked.warnings)


def _section(title: str, entries: Any, empty: str = "") -> Iterator[str]:
    lines = list(entries) or ([empty] if empty else [])
    if lines:
        yield title
        yield from (f"  {line}" for line in lines)
        yield ""


def _verdict_lines(review: ReadReview) -> Iterator[str]:
    yield review.verdict.value if review.verdict else f"{UNKNOWN}: none can be read"
    for each in review.verdicts:
        yield f"line {each.line}, {each.scope}: {each.raw!r} means {each.verdict.value}"


def _finding_lines(review: ReadReview) -> Iterator[str]:
    for found in review.findings:
        severity = found.severity.value if found.severity else "no severity"
        marks = ", withdrawn" if found.withdrawn else ""
        yield f"{name_of(found)} ({severity}{marks}), line {found.line}: {found.title}"
        for label, text in (("at", found.location), ("impact", found.impact), ("fix", found.suggestion)):
            if text:
                yield f"    {label}: {' '.join(text.split())[:160]}"


def _answer_lines(response: ReadResponse) -> Iterator[str]:
    for answer in response.answers:
        text = " ".join(answer.text.split())[:120]
        yield f"{answer.code}: {answer.kind.value}, line {answer.line}" + (f": {text}" if text else "")


def _disagreement_lines(response: ReadResponse) -> Iterator[str]:
    for block in response.disagreements:
        yield f"{block.code or 'no finding'}, line {block.line}: {' '.join(block.position.split())[:160]}"
        yield from (f"    {problem}" for problem in block.problems)


def _flag_lines(judgement: Judgement) -> Iterator[str]:
    for flag in judgement.flags:
        name = flag.code or f"#{flag.ordinal}"
        seen = ", ".join(SEEN_AS[each] for each in flag.heuristics)
        yield f"{name}: {seen}; {flag.level}, confidence {flag.confidence}"
        yield from (f"    {line}" for line in flag.evidence)


def watched_findings(review: ReadReview, proposed: Sequence[str] = ()) -> tuple[Watched, ...]:
    """Return the findings of a review, each with its gap if anything tells which one it is.

    `proposed` are the gaps of the document that was reviewed; if empty, the review says itself what it is
    about. A withdrawn finding counts as settled. Raises DocumentError if the review is too large.
    """
    lines = scan(review.text)
    links = Links(lines, proposed or sorted(subject_of(review.text).gaps))
    watched = []
    for found in review.findings:
        start = max(found.line - 1, 0)
        block = lines[start : start + found.text.count("\n") + 1] if found.line else scan(found.text)
        watched.append(
            Watched(
                code=found.code,
                ordinal=found.ordinal,
                severity=found.severity,
                title=found.title,
                location=found.location,
                impact=found.impact,
                text=found.text,
                gap=links.gap_of(block, found.line),
                is_settled=found.withdrawn,
            )
        )
    return tuple(watched)

"""Reading a review: its verdicts, its findings, and what it says about earlier ones.

It understands the structured form (JSON, or YAML front matter above Markdown), the data that other tools
write, and Markdown in many notations (FND-1 to FND-8, VER-1). Nothing unreadable ever becomes an approval.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from disputes.protocol.reviews.blocks import Block, Blocks, find_blocks
from disputes.protocol.reviews.findings import Found, is_minor, read_block
from disputes.protocol.reviews.first_lines.start import EMPTY
from disputes.protocol.reviews.headings import Purpose, purpose_of
from disputes.protocol.reviews.layout import Layout, lay_out
from disputes.protocol.reviews.markups import lines_of, without_thoughts
from disputes.protocol.reviews.severity import GRAVE, read_severity
from disputes.protocol.reviews.statuses import PriorStatus, Status, prior_statuses
from disputes.protocol.reviews.structure import Structure, read_structure
from disputes.protocol.reviews.tables import find_rows, listed_severities
from disputes.protocol.reviews.verdict_words import VERDICT_WORDS, Verdict, read_verdict, worst
from disputes.protocol.reviews.verdicts import ROUND, StatedVerdict, stated_verdicts, worst_verdict
from disputes.protocol.text.documents import STATED, DocumentError, Problem, list_item, scan
from disputes.protocol.text.front_matter import check_keys, read_front_matter
from disputes.protocol.text.keywords import keywords, likeness
from disputes.protocol.text.locations import place
from tasks.configuration.yaml_files import Lines

__all__ = [
    "VERDICT_WORDS", "Found", "PriorStatus", "ReadReview", "StatedVerdict", "Status", "Verdict", "place",
    "read_review", "read_verdict",
]  # fmt: skip
REVIEW_KEYS = ("verdict", "findings", "text")
FINDING_KEYS = ("title", "severity", "code", "location", "impact", "suggestion", "text")
ALIKE = 0.5  # how alike a title in the prose must be to that of a finding to mean the same
PLAIN_APPROVALS = (Verdict.APPROVED, Verdict.NO_ISSUES_FOUND)


@dataclass(frozen=True, slots=True)
class ReadReview:
    """A review as read, with its text.

    `verdict` is the worst of `verdicts`, or None if none can be read, which is never an approval. `prior` is
    what the reviewer says about earlier findings, `warnings` are what a person should look at.
    """

    verdict: Verdict | None
    raw_verdict: str
    findings: tuple[Found, ...]
    text: str
    verdicts: tuple[StatedVerdict, ...] = ()
    prior: tuple[PriorStatus, ...] = ()
    warnings: tuple[Problem, ...] = ()
    prose: str | None = None  # of a review that is data, what it says beside verdict and findings


def read_review(document: str | Mapping[str, Any], *, rejects: bool = False) -> ReadReview:
    """Read a review from Markdown or from its structured form (VER-5).

    `rejects` says that it was handed in as a rejection, whatever it says of itself.

    Raises DocumentError if the document is too large or its structure is malformed.
    """
    if not isinstance(document, str):
        return _from_structure(document)
    if (front := read_front_matter(document, ("verdict", "findings"))) and _is_form(front[0]):
        return _from_front_matter(*front, document)
    if structure := read_structure(document, list(without_thoughts(scan(document)))):
        return _from_data(structure, document, rejects=rejects)
    return _from_markdown(document, rejects=rejects)


def _is_form(data: Lines) -> bool:
    """Whether front matter is the structured form, and not what a tool notes, such as counts."""
    findings = data.get("findings")
    if findings is not None and not isinstance(findings, list):
        return False
    return "findings" in data or data.keys() <= set(REVIEW_KEYS)


def _from_front_matter(data: Lines, prose: str, text: str) -> ReadReview:
    """Return the findings of the front matter; the Markdown below it is only prose.

    What the prose states is not lost: of two verdicts the worse one counts, and findings that only the prose
    raises become warnings.
    """
    check_keys(data, REVIEW_KEYS, "the front matter")
    entries = data.get("findings") or []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Lines):
            check_keys(entry, FINDING_KEYS, "a finding")
    read = _from_structure({**data, "findings": entries})
    findings = tuple(
        replace(found, line=entry.line) for found, entry in zip(read.findings, entries, strict=True)
    )
    below = _from_markdown(prose)
    verdict = worst([read.verdict, below.verdict])
    return replace(
        read,
        verdict=verdict,
        raw_verdict=read.raw_verdict if verdict == read.verdict else below.raw_verdict,
        findings=findings,
        text=prose.strip() or text,
        prior=below.prior,
        warnings=tuple(
            Problem(found.line, f"the prose raises {found.title[:60]!r}, the front matter does not")
            for found in below.findings
            if not found.withdrawn and not _holds(findings, found)
        ),
    )


def _holds(findings: tuple[Found, ...], said: Found) -> bool:
    """Whether the prose speaks of one of the findings, by naming its code or by the words of its title."""
    words = keywords(said.title)
    return any(
        (found.code and found.code == said.code) or likeness(keywords(found.title), words) >= ALIKE
        for found in findings
    )


def _from_data(data: Structure, text: str, *, rejects: bool) -> ReadReview:
    """Return the review that is data, together with what the prose around it states.

    A plain approval counts as one with conditions if a grave finding stands (VER-5).
    """
    around = _from_markdown(data.prose, rejects=rejects and not data.findings)
    verdict = data.verdict
    if verdict in PLAIN_APPROVALS and any(found.severity in GRAVE for found in data.findings):
        verdict = Verdict.APPROVED_WITH_CONDITIONS
    raw = data.raw_verdict if worst([verdict, around.verdict]) == verdict else around.raw_verdict
    verdict = worst([verdict, around.verdict])
    others = [found for found in around.findings if not (found.withdrawn or _holds(data.findings, found))]
    findings = [
        replace(found, ordinal=number) for number, found in enumerate([*data.findings, *others], start=1)
    ]
    stated = (StatedVerdict(ROUND, raw, verdict, 1),) if verdict else ()
    return ReadReview(verdict, raw, tuple(findings), text, stated, around.prior, prose=data.prose)


def _from_markdown(text: str, *, rejects: bool = False) -> ReadReview:
    layout = lay_out(lines_of(text), text)
    read, findings = find_findings(layout, rejects=rejects)
    blocks = read.blocks
    stated = stated_verdicts(layout, _inside(layout, blocks))
    prior = tuple(prior_statuses(layout, frozenset(found.code for found in findings)))
    derived = _derived(layout, stated, findings, prior)
    counting = worst_verdict(derived)
    return ReadReview(
        counting.verdict if counting else None,
        counting.raw if counting else "",
        tuple(findings),
        text,
        tuple(derived),
        prior,
        tuple(_warnings(layout, blocks, findings)),
    )


def find_findings(layout: Layout, *, rejects: bool = False) -> tuple[Blocks, list[Found]]:
    """Return the blocks and findings of a review.

    If there are no others, sections that only repeat count, and in a review that rejects all lists.
    """
    blocks, findings = _found(layout)
    if not findings and (blocks.passed_over or layout.tables):
        blocks, findings = _found(layout, lenient=True)
    if not findings and (rejects or _rejects(layout)):
        return _found(layout, lenient=True, last_resort=True)
    return blocks, findings


def _rejects(layout: Layout) -> bool:
    stated = stated_verdicts(layout, [False] * len(layout.lines))
    return worst(each.verdict for each in stated) is Verdict.NEEDS_REVISION


def _found(layout: Layout, *, lenient: bool = False, last_resort: bool = False) -> tuple[Blocks, list[Found]]:
    read = find_blocks(layout, lenient=lenient, last_resort=last_resort)
    blocks = read.blocks
    listed = listed_severities(layout)
    findings: list[Found] = []
    for block in blocks:
        findings += read_block(layout, block, listed, len(findings))
    raised = {found.code for found in findings if found.code}
    if rows := list(find_rows(layout, blocks, raised, lenient=lenient)):
        ordered = sorted([*findings, *rows], key=_line)
        findings = [replace(found, ordinal=number) for number, found in enumerate(ordered, start=1)]
    return read, findings


def _line(found: Found) -> int:
    return found.line


def _inside(layout: Layout, blocks: list[Block]) -> list[bool]:
    """Return for each line whether it belongs to a finding."""
    inside = [False] * len(layout.lines)
    for block in blocks:
        inside[block.begin : block.end] = [True] * (block.end - block.begin)
    return inside


# --- The text overrides the word (VER-5) ------------------------------------------------------------------


def _derived(
    layout: Layout, stated: list[StatedVerdict], findings: list[Found], prior: tuple[PriorStatus, ...]
) -> list[StatedVerdict]:
    """Return the verdicts, with plain approvals made conditional if the text contradicts them.

    It does if it raises a grave finding, leaves an earlier one open, or demands changes.
    """
    open_still = any(status.status is Status.UNRESOLVED and not is_minor(status.code) for status in prior)
    approves = any(each.verdict in PLAIN_APPROVALS for each in stated)
    demands = _demands(layout) if approves else []
    scopes = {each.scope for each in stated}
    # The gap of each grave finding, or "" if no verdict covers that gap.
    grave = {
        found.gap if found.gap in scopes else ""
        for found in findings
        if found.severity in GRAVE and not found.withdrawn
    }
    is_only = len(scopes) == 1

    def contradicted(each: StatedVerdict) -> bool:
        if open_still or (grave and (is_only or "" in grave or each.scope in grave)):
            return True
        return bool(demands) and (is_only or _demanded(layout, each, demands))

    return [
        replace(each, verdict=Verdict.APPROVED_WITH_CONDITIONS)
        if each.verdict in PLAIN_APPROVALS and contradicted(each)
        else each
        for each in stated
    ]


def _demanded(layout: Layout, stated: StatedVerdict, demands: list[int]) -> bool:
    """Whether the next demand below a verdict is in the same section."""
    place = bisect_right(demands, stated.index)
    return place < len(demands) and layout.where[demands[place]] is layout.where[stated.index]


def _demands(layout: Layout) -> list[int]:
    """Return the indexes of the lines that open a non-empty list of required changes."""
    found = []
    for index, line in enumerate(layout.lines):
        text = line.text.strip()
        if line.mode is not STATED or not text or text[0] not in "#*_-RMCB" or len(text) > 120:
            continue
        label = text.strip("#*_- ")
        if text[0] != "#" and not label.endswith(":"):
            continue
        if purpose_of(label) is Purpose.REQUIRED and _lists_below(layout, index):
            found.append(index)
    return found


def _lists_below(layout: Layout, index: int) -> bool:
    for line in layout.lines[index + 1 : index + 6]:
        text = line.text.strip()
        if not text:
            continue
        item = list_item(line.text)
        return line.mode is STATED and ((item is not None and not EMPTY.match(item.text)) or text[0] == "|")
    return False


def _warnings(layout: Layout, blocks: list[Block], findings: list[Found]) -> list[Problem]:
    """Return what a person should look at: contradictory severities, ambiguous headings (SEV-10, SEV-12)."""
    warnings = [
        Problem(
            found.line,
            f"the severities of {found.code or found.title[:60]} disagree; {found.severity} counts",
        )
        for found in findings
        if found.severity_conflict
    ]
    ambiguous = {block.section.begin: block.section for block in blocks if block.section.ambiguous}
    warnings += [
        Problem(
            layout.lines[index].number,
            f"the heading {section.title!r} names two severities; the lower one counts",
        )
        for index, section in ambiguous.items()
    ]
    return sorted(warnings, key=lambda problem: problem.line)


def _from_structure(data: Mapping[str, Any]) -> ReadReview:
    problems: list[Problem] = []
    verdict = read_verdict(str(data.get("verdict", ""))) if data.get("verdict") else None
    if data.get("verdict") and verdict is None:
        problems.append(Problem(0, f"verdict {str(data['verdict'])[:60]!r} is not known"))
    entries = data.get("findings", [])
    if not isinstance(entries, list):
        raise DocumentError("malformed_review", [Problem(0, "findings must be a list")])
    read = [_from_entry(number, entry) for number, entry in enumerate(entries, start=1)]
    problems += [each for each in read if isinstance(each, Problem)]
    if problems:
        raise DocumentError("malformed_review", problems)
    findings = [each for each in read if isinstance(each, Found)]
    return ReadReview(verdict, str(data.get("verdict") or ""), tuple(findings), str(data.get("text") or ""))


def _from_entry(number: int, entry: Any) -> Found | Problem:
    """Return one finding of the structured form, or what is wrong with it."""
    if not isinstance(entry, dict) or not str(entry.get("title") or "").strip():
        return Problem(number, f"finding {number} needs a title")
    severity = read_severity(str(entry.get("severity", "")))
    if severity is None:
        return Problem(number, f"finding {number} needs a severity: critical, high, medium or low")
    return Found(
        title=str(entry["title"]).strip()[:500],
        severity=severity,
        raw_severity=str(entry["severity"])[:40],
        code=str(entry.get("code") or "").upper()[:24],
        location=str(entry.get("location") or ""),
        impact=str(entry.get("impact") or ""),
        suggestion=str(entry.get("suggestion") or ""),
        text=str(entry.get("text") or ""),
        ordinal=number,
        format="structure",
    )

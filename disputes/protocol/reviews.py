"""Reading a review: its verdict and its findings.

Understood are the structured form (JSON), the canonical Markdown form, and lines that begin with a tag such
as [MUST] (ARB-1). What cannot be read is refused; nothing here ever becomes an approval by accident.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from disputes.protocol.documents import DocumentError, Line, Mode, Problem, joined, scan
from tasks.states import Severity, severity_rank


class Verdict(StrEnum):
    APPROVED = "APPROVED"
    APPROVED_WITH_CONDITIONS = "APPROVED_WITH_CONDITIONS"
    NEEDS_REVISION = "NEEDS_REVISION"


# §19.3. The longest phrase that fits wins, so that "APPROVED WITH NOTES" is not read as "APPROVED".
VERDICT_WORDS: dict[str, Verdict] = {
    "approved": Verdict.APPROVED,
    "approve": Verdict.APPROVED,
    "accept": Verdict.APPROVED,
    "accepted": Verdict.APPROVED,
    "no issues found": Verdict.APPROVED,
    "approved with notes": Verdict.APPROVED_WITH_CONDITIONS,
    "approved with conditions": Verdict.APPROVED_WITH_CONDITIONS,
    "approved with modifications": Verdict.APPROVED_WITH_CONDITIONS,
    "approved with minor issues": Verdict.APPROVED_WITH_CONDITIONS,
    "accept with minor": Verdict.APPROVED_WITH_CONDITIONS,
    "conditional approval": Verdict.APPROVED_WITH_CONDITIONS,
    "needs revision": Verdict.NEEDS_REVISION,
    "needs work": Verdict.NEEDS_REVISION,
    "needs changes": Verdict.NEEDS_REVISION,
    "reject": Verdict.NEEDS_REVISION,
    "rejected": Verdict.NEEDS_REVISION,
    "changes requested": Verdict.NEEDS_REVISION,
}

# SEV-9: foreign words for severities.
SEVERITY_WORDS: dict[str, Severity] = {
    **{severity.value: severity for severity in Severity},
    "major": Severity.HIGH,
    "must": Severity.HIGH,
    "important": Severity.HIGH,
    "moderate": Severity.MEDIUM,
    "should": Severity.MEDIUM,
    "minor": Severity.LOW,
    "nit": Severity.LOW,
    "nice to have": Severity.LOW,
}
CODE = r"ISSUE-R\d{1,3}-\d{1,3}"
VERDICT_LINE = re.compile(r"^[#\s*\-]*verdict\b[:\s*]*(?P<words>.*)$", re.IGNORECASE)
SEVERITY_HEADING = re.compile(
    r"^(?P<word>critical|high|medium|low)\b(?: (?:priority|issues|priority issues|severity))?\W*$",
    re.IGNORECASE,
)
ITEM = re.compile(
    rf"^(?:[-*]\s+|\d+\.\s+|#{{2,4}}\s+)?(?:\*\*)?\[?(?P<code>{CODE})\]?(?:\s*\((?P<word>[A-Za-z ]+)\))?"
    r"(?:\*\*)?\s*:?(?:\*\*)?\s*(?P<title>.*)$"
)
TAGGED = re.compile(
    r"^(?:[-*]\s+|\d+\.\s+)?(?:\*\*)?\[(?P<word>MUST|SHOULD|CRITICAL|HIGH|MEDIUM|LOW)\](?:\*\*)?\s*(?P<title>.*)$"
)
FIELD = re.compile(
    r"^\s*(?:[-*]\s+)?(?:\*\*)?(?P<label>[A-Za-z][A-Za-z ]{1,24}?)(?::\*\*|\*\*:|:)\s*(?P<text>.*)$"
)
FIELDS = {
    **dict.fromkeys(["location", "section", "line", "lines", "where", "file"], "location"),
    **dict.fromkeys(["impact", "risk", "why it matters"], "impact"),
    **dict.fromkeys(
        ["suggestion", "suggested fix", "recommendation", "fix", "required change"], "suggestion"
    ),
    "severity": "severity",
}
PLACE = re.compile(r"(?P<path>[\w./+-]*[\w+-]\.\w{1,8}|[\w+-]+/[\w./+-]+)(?::(?P<line>\d{1,7}))?")


@dataclass(frozen=True, slots=True)
class Found:
    """One finding as the reviewer wrote it."""

    title: str
    severity: Severity
    raw_severity: str = ""
    code: str = ""
    location: str = ""
    impact: str = ""
    suggestion: str = ""
    text: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ReadReview:
    """A review as read; the text itself is kept beside it."""

    verdict: Verdict | None
    raw_verdict: str
    findings: tuple[Found, ...]
    text: str


def place(location: str) -> tuple[str, int | None]:
    """Path and line out of a location; empty and None where it names no file."""
    match = PLACE.search(location.replace("`", ""))
    if not match:
        return "", None
    return match["path"][:300], int(match["line"]) if match["line"] else None


def read_verdict(words: str) -> Verdict | None:
    """The verdict that these words state, or None. The last verdict word counts (ARB-2)."""
    plain = re.sub(r"[^a-z]+", " ", words.lower()).strip()
    best: tuple[int, int, Verdict] | None = None
    for phrase, verdict in VERDICT_WORDS.items():
        at = f" {plain} ".rfind(f" {phrase} ")
        if at >= 0 and not f" {plain} "[:at].endswith((" no", " not")):
            candidate = (at + len(phrase), len(phrase), verdict)
            best = candidate if best is None or candidate[:2] > best[:2] else best
    return best[2] if best else None


def read_severity(words: str) -> Severity | None:
    """The severity that these words state, or None (SEV-9)."""
    return SEVERITY_WORDS.get(re.sub(r"[^a-z ]+", "", words.lower()).strip())


def read_review(document: str | Mapping[str, Any]) -> ReadReview:
    """A review out of Markdown or of its structured form. Raises DocumentError."""
    return _from_markdown(document) if isinstance(document, str) else _from_structure(document)


def _from_markdown(text: str) -> ReadReview:
    lines = scan(text)
    verdict, raw = _verdict(lines)
    return ReadReview(verdict, raw, tuple(_findings(lines)), text)


def _verdict(lines: list[Line]) -> tuple[Verdict | None, str]:
    """The worst of the verdicts stated; several in one review are normal (§19.3)."""
    found: list[tuple[Verdict, str]] = []
    for index, line in enumerate(lines):
        match = VERDICT_LINE.match(line.text) if line.mode is Mode.STATED else None
        if not match:
            continue
        words = match["words"].strip(" *#")
        if not words:
            words = next((later.text for later in lines[index + 1 :] if later.text.strip()), "")
        if (verdict := read_verdict(words)) is not None:
            found.append((verdict, words.strip()[:80]))
    order = list(Verdict)
    return max(found, key=lambda pair: order.index(pair[0])) if found else (None, "")


def _findings(lines: list[Line]) -> Iterable[Found]:
    section: Severity | None = None
    start: tuple[Line, re.Match[str]] | None = None
    body: list[Line] = []
    start_section: Severity | None = None
    for line in [*lines, Line(len(lines) + 1, "# end", Mode.STATED)]:
        match = (ITEM.match(line.text) or TAGGED.match(line.text)) if line.mode is Mode.STATED else None
        heading = line.heading
        if start and (match or (heading and not match)):
            yield _finding(start[0], start[1], body, start_section)
            start, body = None, []
        if match:
            start, body, start_section = (line, match), [], section
        elif heading:
            named = SEVERITY_HEADING.match(heading[1].strip("* "))
            if named:
                section = read_severity(named["word"])
            elif heading[0] <= 2:
                section = None
        elif start:
            body.append(line)


def _finding(line: Line, match: re.Match[str], body: list[Line], section: Severity | None) -> Found:
    groups = match.groupdict()
    fields: dict[str, list[str]] = {}
    current = ""
    for item in body:
        field = FIELD.match(item.text) if item.mode is Mode.STATED else None
        name = FIELDS.get(field["label"].lower()) if field else None
        if field and name:
            current = name
            fields.setdefault(name, []).append(field["text"])
        elif current and item.text.strip():
            fields[current].append(item.text.strip())
    told = {name: "\n".join(texts).strip() for name, texts in fields.items()}
    words = [word for word in (groups.get("word"), told.get("severity")) if word]
    stated = [severity for word in words if (severity := read_severity(word))]
    if section:
        stated.append(section)
    title = groups["title"].strip().strip("*").strip()
    location = told.get("location", "")
    if not location:
        path, number = place(title)
        location = f"{path}:{number}" if number else ""
    return Found(
        title=(title or told.get("impact") or groups.get("code") or "Finding")[:500],
        # SEV-10: where the places disagree the higher one counts.
        severity=max(stated, key=severity_rank, default=Severity.MEDIUM),
        raw_severity=(words[0] if words else (section or ""))[:40],
        code=(groups.get("code") or "").upper(),
        location=location,
        impact=told.get("impact", ""),
        suggestion=told.get("suggestion", ""),
        text=joined([line, *body]),
        line=line.number,
    )


def _from_structure(data: Mapping[str, Any]) -> ReadReview:
    problems: list[Problem] = []
    verdict = read_verdict(str(data.get("verdict", ""))) if data.get("verdict") else None
    if data.get("verdict") and verdict is None:
        problems.append(Problem(0, f"verdict {str(data['verdict'])[:60]!r} is not known"))
    entries = data.get("findings", [])
    if not isinstance(entries, list):
        raise DocumentError("malformed_review", [Problem(0, "findings must be a list")])
    findings: list[Found] = []
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or not str(entry.get("title", "")).strip():
            problems.append(Problem(number, f"finding {number} needs a title"))
            continue
        severity = read_severity(str(entry.get("severity", "")))
        if severity is None:
            problems.append(
                Problem(number, f"finding {number} needs a severity: critical, high, medium or low")
            )
            continue
        findings.append(
            Found(
                title=str(entry["title"]).strip()[:500],
                severity=severity,
                raw_severity=str(entry["severity"])[:40],
                code=str(entry.get("code") or "").upper()[:24],
                location=str(entry.get("location") or ""),
                impact=str(entry.get("impact") or ""),
                suggestion=str(entry.get("suggestion") or ""),
                text=str(entry.get("text") or ""),
            )
        )
    if problems:
        raise DocumentError("malformed_review", problems)
    return ReadReview(verdict, str(data.get("verdict") or ""), tuple(findings), str(data.get("text") or ""))

"""Reading a review: its verdict and its findings.

Understood are the structured form (JSON), the canonical Markdown form, and lines that begin with a tag such
as [MUST] (ARB-1). What cannot be read is refused; nothing here ever becomes an approval by accident.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from disputes.protocol.documents import DocumentError, Line, Mode, Problem, joined, scan
from disputes.protocol.identifiers import CODE as CODE
from disputes.protocol.identifiers import MORE_CODES as MORE_CODES
from disputes.protocol.identifiers import SHORT_CODE as SHORT_CODE
from disputes.protocol.identifiers import codes_in as codes_in
from disputes.protocol.severity import read_severity
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

# The longest phrase first, for the first one that fits is taken.
PHRASE = re.compile(rf"\b(?:{'|'.join(sorted(VERDICT_WORDS, key=len, reverse=True))})\b")
SENTENCE_END = re.compile(r"[.!?][*_`)]*(?:\s|$)")
DENIALS = {"no", "not", "never", "cannot"}
VERDICT_LINE = re.compile(r"^[#\s*\-]*verdict\b(?P<words>.*)$", re.IGNORECASE)
ITEM = re.compile(
    rf"^(?:[-*]\s+|\d+\.\s+|#{{2,4}}\s+)?(?:\*\*)?\[?(?P<codes>{CODE}{MORE_CODES})\]?(?:\*\*)?"
    r"(?:\s*[(\[](?P<word>[A-Za-z -]+)[)\]](?!\())?(?:\*\*)?\s*:?(?:\*\*)?\s*(?P<title>.*)$"
)
TAGGED = re.compile(
    r"^(?:[-*]\s+|\d+\.\s+)?(?:\*\*)?\[(?P<word>MUST|SHOULD|CRITICAL|HIGH|MEDIUM|LOW)\](?:\*\*)?\s*"
    r":?(?:\*\*)?\s*(?P<title>.*)$"
)
# §19.4: what a reviewer writes behind the code of an earlier finding that is done.
RESOLVED = re.compile(
    r"(?:^|[-–—:] *)(?:RESOLVED|FIXED)(?: in (?:this round|round \d{1,3}))?[\s*.]*$", re.MULTILINE
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
# A severity is its first words: HIGH (blocks the release).
AFTER_SEVERITY = re.compile(r"[(:;,–—]| - ")
# Each way to write a place begins where a word does, so that no letter is read again and again.
PLACE = re.compile(
    r"(?:(?<![\w./+-])(?P<file>[\w./+-]*[\w+-]\.\w{1,8})|(?<![\w+-])(?P<path>[\w+-]+/[\w./+-]+))"
    r"(?::(?P<line>\d{1,7}))?"
)


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
    return (match["file"] or match["path"])[:300], int(match["line"]) if match["line"] else None


def read_verdict(words: str) -> Verdict | None:
    """The verdict that these words state, or None. The last verdict word counts (ARB-2).

    A denied approval is none and takes back the approval before it; a denied rejection is passed over.
    """
    found: Verdict | None = None
    for sentence in SENTENCE_END.split(_with_conditions(words.lower())):
        plain = re.sub(r"[^a-z]+", " ", re.sub(r"n['’]t\b", " not", sentence))
        # "no issues found" denies nothing that stands behind it.
        denying = plain.replace("no issues found", "ok issues found")
        for match in PHRASE.finditer(plain):
            verdict, start = VERDICT_WORDS[match[0]], match.start()
            before = denying[max(start - 60, 0) : start].split()
            if verdict is Verdict.NEEDS_REVISION:
                found = found if DENIALS & set(before[-1:]) else verdict
            elif not DENIALS & set(before[-3:]):
                found = verdict
            elif found is not Verdict.NEEDS_REVISION:
                found = None
    return found


def _with_conditions(words: str) -> str:
    """§19.3: `APPROVED (with …)` and, with a footnote mark that belongs to no emphasis, `APPROVED*`."""
    footnote = r"|\*+" if words.count("*") % 2 else ""
    pattern = rf"\b(?:approved|accepted)(?: ?\(with\b{footnote})"
    return re.sub(pattern, "approved with conditions ", words)


def _section_severity(heading: str) -> Severity | None:
    """The severity that a heading gives to what stands below it, or None; of two the lower one (§21)."""
    words = re.sub(r"\b(?:issues|priority|severity)\b", "", heading.partition("(")[0].lower())
    named = [read_severity(part) for part in words.split("/")]
    known = [severity for severity in named if severity]
    return min(known, key=severity_rank) if len(known) == len(named) else None


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
    bare = False  # the line before, but for blank ones, says only "Verdict"
    for line in lines:
        stated = line.mode is Mode.STATED
        if stated and (match := VERDICT_LINE.match(line.text)):
            words = match["words"]
            bare = not words.strip(" \t:*#")
        elif bare and line.text.strip():
            words = line.text if stated and not line.heading else ""
            bare = False
        else:
            continue
        if (verdict := read_verdict(words)) is not None:
            raw = words.lstrip(" \t:*").rstrip(" \t*#") if match else words.strip()
            found.append((verdict, raw[:80]))
    order = list(Verdict)
    return max(found, key=lambda pair: order.index(pair[0])) if found else (None, "")


def _findings(lines: list[Line]) -> Iterable[Found]:
    section: Severity | None = None
    level = 0
    start: tuple[Line, re.Match[str]] | None = None
    body: list[Line] = []
    start_section: Severity | None = None
    for line in [*lines, Line(len(lines) + 1, "# end", Mode.STATED)]:
        match = (ITEM.match(line.text) or TAGGED.match(line.text)) if line.mode is Mode.STATED else None
        heading = line.heading
        if start and (match or heading):
            yield from _raised(start[0], start[1], body, start_section)
            start, body = None, []
        if match:
            start, body, start_section = (line, match), [], section
        elif heading:
            if named := _section_severity(heading[1]):
                section, level = named, heading[0]
            elif heading[0] <= level:
                section = None
        elif start:
            body.append(line)


def _raised(line: Line, match: re.Match[str], body: list[Line], section: Severity | None) -> Iterable[Found]:
    """One finding for each code; none where the reviewer only says that an earlier one is done."""
    groups = match.groupdict()
    if not groups.get("codes"):
        yield _finding(line, match, body, section)
    elif not RESOLVED.search(groups["title"]):
        finding = _finding(line, match, body, section)
        for code in codes_in(groups["codes"]):
            yield replace(finding, code=code, title=finding.title or code)


def _finding(line: Line, match: re.Match[str], body: list[Line], section: Severity | None) -> Found:
    """The finding without its code."""
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
        if current == "severity" and fields[current][-1]:
            current = ""  # a severity is one line
    told = {name: "\n".join(texts).strip() for name, texts in fields.items()}
    title = groups["title"].strip().strip("*").strip()
    location = told.get("location", "")
    if not location:
        path, number = place(title)
        location = f"{path}:{number}" if number else ""
    title, closing = _without_severity(title)
    if not groups.get("codes"):
        title = _without_detail(title)
    words = [word for word in (groups.get("word"), closing, *fields.get("severity", [])) if word]
    stated = [severity for word in words if (severity := read_severity(AFTER_SEVERITY.split(word, 1)[0]))]
    if section:
        stated.append(section)
    return Found(
        title=(title or told.get("impact") or ("" if groups.get("codes") else "Finding"))[:500],
        # SEV-10: where the places disagree the higher one counts.
        severity=max(stated, key=severity_rank, default=Severity.MEDIUM),
        raw_severity=(words[0] if words else (section or ""))[:40],
        location=location,
        impact=told.get("impact", ""),
        suggestion=told.get("suggestion", ""),
        text=joined([line, *body]),
        line=line.number,
    )


def _without_severity(title: str) -> tuple[str, str]:
    """A title and the severity in parentheses at its end; empty where it has none."""
    before, _, word = title.removesuffix(")").rpartition("(")
    return (before.strip(), word) if title.endswith(")") and read_severity(word) else (title, "")


def _without_detail(title: str) -> str:
    """A title without the detail behind ` - `, unless before that stands nothing but a place."""
    before = title.partition(" - ")[0].strip()
    return title if PLACE.fullmatch(before.strip("`")) else before


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
        if not isinstance(entry, dict) or not str(entry.get("title") or "").strip():
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

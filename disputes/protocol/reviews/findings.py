"""Reading what each finding of a review says (FND-1, FND-2)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from disputes.protocol.reviews.blocks import Block
from disputes.protocol.reviews.fields import read_fields, severity_fields, text_of
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.headings import Purpose, Section
from disputes.protocol.reviews.inline_severities import MAX_TITLE, field_severity, severity_in
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.text.documents import STATED, Line
from disputes.protocol.text.identifiers import gaps_in
from disputes.protocol.text.locations import is_place, line_named, only_line_named, place
from tasks.states import Severity, severity_rank
from tasks.text.regex import regex

ID_PREFIXES: dict[str, Severity] = {
    "CRIT": Severity.CRITICAL, "CRITICAL": Severity.CRITICAL, "HIGH": Severity.HIGH, "MAJOR": Severity.HIGH,
    "H": Severity.HIGH, "MED": Severity.MEDIUM, "MEDIUM": Severity.MEDIUM, "MODERATE": Severity.MEDIUM,
    "M": Severity.MEDIUM, "LOW": Severity.LOW, "L": Severity.LOW, "MINOR": Severity.LOW, "NIT": Severity.LOW,
    "COMPRESS": Severity.LOW, "OBSERVATION": Severity.LOW,
}  # fmt: skip
ID_PREFIX = regex(r"[A-Z]+")
WITHDRAWN = regex(
    r"\b(?:withdrawn|retracted|withdrawing (?:this|the) \w+|(?:please )?disregard this|never mind"
    r"|(?:is |was )?not an issue after all|no longer an issue|false alarm)\b"
    r"|(?:^|[.:;–—-]\s*|\*\*\s*)(?:no (?:changes?|action) (?:is |are )?(?:needed|required|necessary))\b"
    r"(?: to the \w+| here)?[*_]*\s*(?:[.;!(]|$)",
    re.MULTILINE,
)
LINE_FIRST = regex(r"\W{0,12}(?:L|lines? )?(?P<number>\d{1,6})\b(?![.)] )", re.IGNORECASE)  # "- L42: text"
BETWEEN = " \t:-–—"  # a place and what is said of it
# The first line of a point that only takes it back.
RETRACTS = regex(
    r"^\W*(?:is |was )?(?:now )?(?:withdrawn|retracted|no longer an issue|not an issue after all)"
    r"(?=\W*(?:[.,:;(–—]|$)|\s+(?:as|because|since|after|by)\b)"
    r"|[–—:([-]\s*(?:withdrawn|retracted)[\])*_.]*$"
)


@dataclass(frozen=True, slots=True)
class Found:
    """One finding as the reviewer wrote it.

    Without a severity (None) it counts as medium and blocks nothing (SEV-9); without an id its code is empty.
    `ordinal` counts from 1 in the order of the review. `severity_conflict` says that its severities disagree
    (SEV-10), `withdrawn` that its own text takes it back, `retracts` that its first line does. `gap` is the
    gap that it is about; empty if none is named.
    """

    title: str
    severity: Severity | None
    raw_severity: str = ""
    code: str = ""
    location: str = ""
    impact: str = ""
    suggestion: str = ""
    text: str = ""
    line: int = 0
    ordinal: int = 0
    format: str = ""
    withdrawn: bool = False
    retracts: bool = False
    severity_conflict: bool = False
    gap: str = ""


def read_block(layout: Layout, block: Block, listed: dict[str, Severity], before: int) -> Iterator[Found]:
    """Yield the finding of a block, or one for each code if its first line names several (ID-4).

    `before` is the number of findings above it in the review.
    """
    start, section = block.start, block.section
    body = layout.lines[block.begin + (start.shape is not Shape.RECORD) : block.end]
    fields = read_fields(body)
    head = f"{start.title} {start.rest}"[:MAX_TITLE]
    codes = start.codes or (start.native.upper(),)
    stated, raw = _severities(block, fields)
    stated += [severity for code in codes if (severity := listed.get(code.upper()))][:1]
    text = layout.written(block.begin, block.end)
    impact, suggestion = text_of(fields, "impact"), text_of(fields, "suggestion") or text_of(fields, "note")
    gap = section.gap or next(iter(gaps_in(text[:4000])), "")
    title = _title(start, body) or impact
    found = Found(
        title=(title or codes[0] or "Finding")[:MAX_TITLE],
        code=codes[0].upper(),
        ordinal=before + 1,
        # SEV-10: if severities disagree, the highest one counts.
        severity=max(stated, key=severity_rank, default=None),
        raw_severity=raw[:40],
        location=text_of(fields, "location") or _place_of(layout, block),
        impact=impact,
        suggestion=suggestion,
        text=text,
        line=layout.lines[block.begin].number,
        format=start.shape.value,
        withdrawn=(withdrawn := start.struck or WITHDRAWN.search(text.lower()) is not None),
        retracts=withdrawn and (start.struck or RETRACTS.search(head.strip().lower()) is not None),
        severity_conflict=len(set(stated)) > 1,
        gap=gap,
    )
    yield found
    for ordinal, code in enumerate(codes[1:], start=before + 2):
        yield replace(found, code=code.upper(), title=(title or code)[:MAX_TITLE], ordinal=ordinal)


def _place_of(layout: Layout, block: Block) -> str:
    """Return the place of a finding without a label for it.

    That is the line of a file that its first line names, before the title or within it, or what stands above
    it; else the only one that its text names.
    """
    start = block.start
    before = line_named(start.rest) if start.tag or start.prose else ""
    first = before or line_named(f"{start.title} {start.rest}"[:MAX_TITLE])
    if first or (above := block.place or _file_above(layout, block)):
        return first or above
    inside = layout.lines[block.begin : block.end]
    return only_line_named("\n".join(line.text for line in inside if line.mode is STATED))


def _file_above(layout: Layout, block: Block) -> str:
    """Return the file that the heading above a finding names, with the line that the finding begins with."""
    title = block.section.title
    if not is_place(title):
        return ""
    line = LINE_FIRST.match(layout.lines[block.begin].text)
    return f"{place(title)[0]}:{line['number']}" if line else title


def _title(start: Start, body: Sequence[Line]) -> str:
    """Return the title in the first line of a finding; if that is only a place, what follows it."""
    title = without_detail(start.title) if start.tag else start.title
    if title and is_place(title):
        behind = start.rest.lstrip(BETWEEN)
        return behind or next((line.text.strip() for line in body if line.text.strip()), title)
    return title


def _severities(block: Block, fields: dict[str, list[str]]) -> tuple[list[Severity], str]:
    """Return every severity that a finding states, and the words of the first."""
    start, section = block.start, _section_around(block)
    told = list(severity_fields(fields))
    words = [*start.words, *(field.text for field in told)]
    readings = [*map(severity_in, start.words), *map(field_severity, told)]
    stated = [severity for severity in readings if severity]
    if start.native and (match := ID_PREFIX.match(start.native.upper())) and match[0] in ID_PREFIXES:
        stated.append(ID_PREFIXES[match[0]])
    above = block.group.severity if block.group and block.group.severity else section.severity
    if above:
        stated.append(above)
    if not stated and section.purpose is Purpose.OBSERVATIONS:
        stated.append(Severity.LOW)
    raw = words[0] if words else (block.group.raw if block.group and block.group.severity else above or "")
    return stated, raw.strip(" *")


def _section_around(block: Block) -> Section:
    """Return the section of a finding, whose own title may sound like that of a part of the review."""
    section = block.section
    if block.start.shape is Shape.HEADING and section.parent and not section.states_severity:
        return section.parent
    return section


def is_minor(code: str) -> bool:
    """Whether an id itself says that its finding is low, such as L1 or NIT-002."""
    match = ID_PREFIX.match(code.upper())
    return match is not None and ID_PREFIXES.get(match[0]) is Severity.LOW


def without_detail(title: str) -> str:
    """Return a title without the detail after ` - `, unless only a place comes before it (ARB-1)."""
    before = title.partition(" - ")[0].strip()
    return title if is_place(before) else before

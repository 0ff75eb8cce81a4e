"""Where findings begin without a title: with labelled lines, or a badge that states a severity (FND-1)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from disputes.protocol.reviews.fields import Field, field_of
from disputes.protocol.reviews.first_lines.signs import without_signs
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.headings import Section, section_severity
from disputes.protocol.reviews.inline_severities import MAX_READ, field_severity, severity_in
from disputes.protocol.text.documents import LIST_MARKERS, QUOTED, RULE, STATED, Line
from tasks.text.regex import regex

TITLE = regex(r"[*_]{0,2}(?:title|name)[*_]{0,2}:[*_]{0,2}\s*(?P<text>\S.*)$", re.IGNORECASE)
# The parts of a record from which its title is taken, the best one first.
TITLES = ("title", "problem", "impact", "suggestion", "location")
PICTURE = regex(r"!\[(?P<word>[^\[\]]{1,40})\]\([^()\s]{1,300}\)\s*$")
BADGE_FIRST = frozenset("!_*`")
# Before a badge: the lines of the file above it, or a file and its lines: "`a.py` around lines 30-38: "
LINES = regex(r"`(?:\d{1,6}(?:-\d{1,6})?|[^`\s]{1,90})`(?: (?:around )?lines? \d{1,6}(?:-\d{1,6})?)?:\s+")
MAX_BADGE = 120  # characters
MARKS = " \t*_"


@dataclass(slots=True)
class Labelled:
    """Labelled lines in a row, and the parts of a finding that they begin."""

    begin: int
    first: str
    severity: str = ""
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def start(self) -> Start | None:
        """The first line of the finding that they describe; None if they describe none."""
        title = next((self.parts[part] for part in TITLES if self.parts.get(part)), "")
        if not self.severity or not title:
            return None
        return Start(Shape.RECORD, title=title[:MAX_READ].strip(MARKS), words=(self.severity,), leading=True)


def with_records(
    lines: Sequence[Line], starts: Sequence[Start | None], where: Sequence[Section]
) -> list[Start | None]:
    """Return the first lines of findings together with those of records and badges.

    `where` is the section of each line; a record right below a heading with its severity needs no other.
    """
    found = list(starts)
    for record in _records(lines, starts):
        start = record.start or (
            _below_severity(record, lines, where) if record.parts.get("problem") else None
        )
        if start:
            found[record.begin] = start
    for index, line in enumerate(lines):
        if len(line.text) <= MAX_BADGE and line.mode is STATED and line.text.lstrip()[:1] in BADGE_FIRST:
            _take_badge(lines, found, index)
    return found


def _below_severity(record: Labelled, lines: Sequence[Line], where: Sequence[Section]) -> Start | None:
    """Return the first line of a record right below a heading that says nothing but its severity; or None."""
    section = where[record.begin]
    between = lines[section.begin + 1 : record.begin]
    if section.severity is None or not section.states_severity or any(line.text.strip() for line in between):
        return None
    return Start(Shape.RECORD, title=record.parts["problem"][:MAX_READ].strip(MARKS), leading=True)


def _records(lines: Sequence[Line], starts: Sequence[Start | None]) -> Iterator[Labelled]:
    """Yield every run of labelled lines; the label of its first line begins the next one."""
    record: Labelled | None = None
    is_apart = False  # whether a blank line came last
    for index, (line, start) in enumerate(zip(lines, starts, strict=True)):
        text = line.text
        if not text.strip():
            is_apart = True
            continue
        label = _labelled(line)
        if record and _ends(record, label, is_apart, goes_on=start is None and _is_text(line)):
            yield record
            record = None
        if label and label[0] != "status":
            record = record or Labelled(index, label[0])
            _add(record, *label)
        elif record:
            record.parts.setdefault("problem", text.strip())
        is_apart = False
    if record:
        yield record


def _is_text(line: Line) -> bool:
    return line.mode is STATED and not RULE.match(line.text)


def _ends(record: Labelled, label: tuple[str, str] | None, is_apart: bool, *, goes_on: bool) -> bool:
    """Whether labelled lines end before this line; one without a label may go on with the one above it."""
    if label is None:
        return is_apart or not goes_on
    return label[0] == "status" or (is_apart and label[0] == record.first)


def _labelled(line: Line) -> tuple[str, str] | None:
    """Return the part of a finding that a line at the margin begins with a label, and the text after it."""
    text = line.text
    if line.mode is not STATED or ":" not in text or text[:1] in " \t#" or RULE.match(text):
        return None
    if title := TITLE.match(text):
        return "title", title["text"]
    if text[0] in LIST_MARKERS and text[:2] != "**":
        return None
    return field_of(text)


def _add(record: Labelled, name: str, text: str) -> None:
    if name == "severity":
        record.severity = record.severity or (text if field_severity(Field(name, text)) else "")
    else:
        record.parts.setdefault(name, text)


def _take_badge(lines: Sequence[Line], starts: list[Start | None], index: int) -> None:
    """Let a line that is only a badge begin the finding below it, or give the one above it a severity."""
    text = LINES.sub("", lines[index].text.strip(), count=1)
    below = _next(lines, index)
    if below is None:
        return
    if severity := _of_badge(text):
        title = lines[below].text.strip().lstrip("#").strip(MARKS)
        starts[index] = Start(Shape.RECORD, title=title[:MAX_READ], words=(severity,), leading=True)
    elif text[:2] in ("**", "__") and text[-2:] == text[:2] and starts[below] is None:
        above = _next(lines, index, step=-1)
        heading = starts[above] if above is not None else None
        stated, _ = section_severity(text)
        if stated and heading and heading.level > 1 and not (heading.words or heading.coded):
            heading.words, starts[index] = (stated.value,), None


def _of_badge(text: str) -> str:
    """Return the severity on a badge: a picture with its name, or short words between bars; else nothing."""
    if picture := PICTURE.match(text):
        return picture["word"] if severity_in(picture["word"]) else ""
    if not text.startswith("_") or not text.endswith("_") or "_ | _" not in text:
        return ""
    words = [without_signs(part.strip(MARKS))[0] for part in text.split("|")]
    return next((word for word in reversed(words) if severity_in(word)), "")


def _next(lines: Sequence[Line], index: int, *, step: int = 1) -> int | None:
    """Return the index of the next line that is neither blank nor a comment, if it is stated."""
    index += step
    while 0 <= index < len(lines):
        line = lines[index]
        if line.text.strip() and not (line.mode is QUOTED and line.text.lstrip()[:1] != ">"):
            return index if line.mode is STATED else None
        index += step
    return None

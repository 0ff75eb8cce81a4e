"""Reading the labelled parts of a finding, such as its place, problem, impact and suggestion (FND-2)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from disputes.protocol.text.documents import RULE, STATED, Line, cells
from disputes.protocol.text.locations import is_place
from tasks.text.regex import regex

FIELD = regex(
    r"\s*(?:(?:[-*+]|\d{1,2}\.)\s+)?[*_]{0,3}(?P<label>[A-Za-z][A-Za-z /]{1,28}+)"
    r"(?:\s?\([^()]{1,30}\))?(?::[*_]{1,3}|[*_]{1,3}:|:)\s*(?P<text>.*)$"
)
FIELDS: dict[str, str] = {
    **dict.fromkeys(["location", "locations", "section", "sections", "line", "lines", "where", "file",
                     "files", "reference", "affected section", "affected sections"], "location"),
    **dict.fromkeys(["description", "problem", "concern", "issue", "quote", "quotes", "evidence", "question",
                     "details", "observation", "context", "current", "finding"], "problem"),
    **dict.fromkeys(["impact", "risk", "why it matters", "consequence", "consequences"], "impact"),
    **dict.fromkeys(["suggestion", "suggestions", "suggested fix", "suggested change", "suggested resolution",
                     "suggested alternative", "recommendation", "recommendations", "recommended fix", "fix",
                     "proposed fix", "resolution", "resolution options", "should be", "required change",
                     "required changes", "required", "action", "action required", "clarification needed",
                     "solution", "proposed solution"], "suggestion"),
    "note": "note",
    **dict.fromkeys(["severity", "priority", "rating", "severity level", "priority level"], "severity"),
    "assessment": "assessment",
    **dict.fromkeys(["status", "verdict"], "status"),
}  # fmt: skip
ONE_LINE = {"severity", "status", "assessment"}
# An unknown label with one of these endings states a severity: Implementability Risk: MEDIUM.
SEVERITY_ENDS = (" risk", " severity", " priority", " impact level", " risk level")
# Only the first words are the severity: HIGH (blocks the release).
AFTER_SEVERITY = regex(r"[(:;,–—]|\.(?:\s|$)| - ")
MAX_LABEL = 48


class Field(NamedTuple):
    """A labelled line: the part of a finding that it begins, and the text after the label."""

    name: str
    text: str


def field_of(text: str) -> Field | None:
    """Return the part of a finding that this line begins, or None."""
    if ":" not in text[:MAX_LABEL] or not (match := FIELD.match(text)):
        return None
    label, words = match.groups()
    name = field_name(label)
    return Field(name, words) if name else None


def field_name(label: str) -> str:
    """Return the part that a label stands for; empty if the label is unknown."""
    words = label.strip(" *_:`").lower()
    return FIELDS.get(words) or ("severity" if words.endswith(SEVERITY_ENDS) else "")


def read_fields(body: Sequence[Line]) -> dict[str, list[str]]:
    """Return the parts of a finding as lists of lines. Each part goes on up to the next label."""
    fields: dict[str, list[str]] = {}
    current = ""
    header: tuple[str, ...] = ()
    for line in body:
        text = line.text
        if line.mode is STATED:
            if (heading := line.heading) and (name := field_name(heading[1])):
                current = name
                fields.setdefault(name, [])
                continue
            if ":" in text and (field := field_of(text)):
                current = field.name
                fields.setdefault(current, []).append(field.text)
                if field.text and current in ONE_LINE:
                    current = ""
                continue
            if not current and text.lstrip()[:1] == "|":
                header = _take_row(fields, header, cells(text))
                continue
        if current and text.strip() and not (line.mode is STATED and RULE.match(text)):
            current = _take_line(fields, current, text.strip())
        if not text.strip():
            header = ()
    return fields


def _take_line(fields: dict[str, list[str]], current: str, text: str) -> str:
    """Add a line to the part that it stands in, and return the part that the next line stands in."""
    if current == "location" and not _goes_on(fields[current], text):
        return ""
    fields[current].append(text)
    return "" if current in {"severity", "status"} else current


def _goes_on(places: list[str], text: str) -> bool:
    """Whether a line still belongs to the places above it, rather than to what is said of them."""
    return not any(places) or places[-1].endswith(",") or is_place(text.lstrip("-*+ ").rstrip(","))


def _take_row(fields: dict[str, list[str]], header: tuple[str, ...], row: tuple[str, ...]) -> tuple[str, ...]:
    """Read one row of a table whose columns or first cells are labels; return the header of the table."""
    if not header:
        return tuple(field_name(cell) for cell in row)
    if all(not cell.strip(":- ") for cell in row):
        return header
    if sum(map(bool, header)) >= 2:
        for name, cell in zip(header, row, strict=False):
            if name and cell:
                fields.setdefault(name, []).append(cell)
    elif len(row) == 2 and (name := field_name(row[0])):
        fields.setdefault(name, []).append(row[1])
    return header


def text_of(fields: dict[str, list[str]], name: str) -> str:
    """Return what a finding says in one of its parts."""
    return "\n".join(fields.get(name, ())).strip()


def asked_in(text: str) -> str:
    """Return what a finding says below its heading but for severity and place, or else all of it."""
    heading, *lines = text.splitlines() or [""]
    fields = [(line, field_of(line)) for line in lines]
    said = [line for line, field in fields if not field or field.name not in {*ONE_LINE, "location"}]
    return "\n".join(said).strip() if heading.startswith("#") else text


def before_comment(words: str) -> str:
    """Return a severity without the comment after it, as in `HIGH (blocks the release)`."""
    return AFTER_SEVERITY.split(words, maxsplit=1)[0]


def severity_fields(fields: dict[str, list[str]]) -> Iterable[Field]:
    """Return the fields that state a finding's severity; an assessment counts only if there is no other."""
    stated = [Field("severity", text) for text in fields.get("severity", ()) if text]
    return stated or [Field("assessment", text) for text in fields.get("assessment", ()) if text]

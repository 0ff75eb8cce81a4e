"""The scanner below every parser: lines with their numbers, and whether they state or only quote something.

An id, a heading or a keyword inside a fence or a quote is an example, not a statement (ID-3).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from tasks.text.regex import regex

MAX_BYTES = 256 * 1024
HEADING = regex(r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<text>.*)$")
ITEM = regex(r"[ \t]*(?P<marker>[-*+]|\d{1,3}[.)])[ \t]+")
RULE = regex(r"^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$")
SEPARATOR_CELL = regex(r":?-+:?")
LIST_MARKERS = frozenset("-*+0123456789")
BLANKS = frozenset(" \t")
SMALL_INDENT = 4


class DocumentError(ValueError):
    """A document cannot be taken; `problems` names every line at fault and why."""

    def __init__(self, code: str, problems: list["Problem"]) -> None:
        self.code, self.problems = code, problems
        super().__init__("; ".join(f"line {p.line}: {p.reason}" for p in problems))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a document."""

    line: int
    reason: str


class Mode(StrEnum):
    STATED = "stated"
    QUOTED = "quoted"
    FENCED = "fenced"


# Each line is asked how it is meant, and Python 3.11 takes long to find a member by the name of its enum.
STATED, QUOTED, FENCED = Mode


class Line(NamedTuple):
    """One line: its number from 1, its text without line end, and how it is meant.

    A tuple, for a document has thousands of them and a dataclass takes three times as long to make.
    """

    number: int
    text: str
    mode: Mode

    @property
    def heading(self) -> tuple[int, str] | None:
        """Level and text, where the line is a heading that states something."""
        if self.mode is not STATED or "#" not in self.text[:4]:
            return None
        match = HEADING.match(self.text)
        return (len(match["level"]), match["text"].rstrip().rstrip("#").rstrip()) if match else None


# What Line itself calls, without a step in Python for each of the lines.
NEW_LINE: Callable[[Iterable[object]], Line] = partial(tuple.__new__, Line)


class ListItem(NamedTuple):
    """A list item: the blanks before its marker, the marker as written (`-`, `3.`), the text after it."""

    indent: int
    marker: str
    text: str

    @property
    def numbered(self) -> bool:
        return self.marker[0].isdigit()


class Row(NamedTuple):
    """One row of a table, its cells without the blanks around them."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `start` is the index of its header line, `end` the index after its last row."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    start: int
    end: int


class _Fence(NamedTuple):
    """The marks of a fence: the column where they stand, as what they are written, what follows them."""

    column: int
    mark: str
    info: str

    def closes(self, opened: "_Fence") -> bool:
        """Whether these marks end the fence that others opened."""
        return (
            self.mark.startswith(opened.mark)
            and not self.info.strip()
            and self.column < opened.column + SMALL_INDENT
        )


def scan(text: str) -> list[Line]:
    """The lines of a document. Raises DocumentError for one that is too large.

    Fences nest: one closes only with the same character, at least as many of them, no info string, and less
    than four blanks deeper than it was opened. It may open on the line of a list marker (ID-3).
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        problem = Problem(1, f"the document has {size} bytes; {MAX_BYTES} are the limit")
        raise DocumentError("too_large", [problem])
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return list(map(NEW_LINE, zip(range(1, len(lines) + 1), lines, _modes(text, lines)[0], strict=True)))


def unclosed_fence(lines: Sequence[Line]) -> int:
    """The number of the line that opens a fence which nothing closes; 0 where there is none."""
    start = len(lines)
    while start and lines[start - 1].mode is FENCED:
        start -= 1
    last = [line.text for line in lines[start:]]
    opened = _modes("\n".join(last), last)[1]
    return start + opened + 1 if opened >= 0 else 0


def _modes(text: str, lines: list[str]) -> tuple[list[Mode], int]:
    """How each line is meant, and the index of the line whose fence is still open at the end, or -1."""
    modes = [STATED] * len(lines)
    if "```" not in text and "~~~" not in text and ">" not in text:  # a comment ends with > as well
        return modes, -1
    opened: _Fence | None = None
    opened_at = -1
    for index, raw in enumerate(lines):
        if ("```" in raw or "~~~" in raw) and (mark := _fence(raw, may_open=opened is None)):
            modes[index] = FENCED
            if opened is None:
                opened, opened_at = mark, index
            elif mark.closes(opened):
                opened = None
        elif opened is not None:
            modes[index] = FENCED
        elif ">" in raw and raw.lstrip()[:1] == ">":
            modes[index] = QUOTED
    if "<!--" in text:
        _pass_over_comments(lines, modes)
    return modes, opened_at if opened else -1


def _pass_over_comments(lines: list[str], modes: list[Mode]) -> None:
    """Lines that are only a comment state nothing: nobody sees them. One that never ends is none."""
    ends = [index for index, raw in enumerate(lines) if "-->" in raw]
    last = ends[-1] if ends else -1
    inside = False
    for index in range(last + 1):
        if modes[index] is not STATED:
            continue
        text = lines[index].strip()
        inside = inside or (text.startswith("<!--") and ("-->" not in text or text.endswith("-->")))
        if inside:
            modes[index] = QUOTED
            inside = "-->" not in text


def _fence(raw: str, *, may_open: bool) -> _Fence | None:
    """The marks of a fence on this line; after a list marker they can only open one."""
    text = raw.lstrip(" \t")
    first = text[:1]
    if first in LIST_MARKERS and may_open:
        start = 0
        while item := ITEM.match(text, start):
            start = item.end()
        text = text[start:]
        first = text[:1]
    if first not in ("`", "~") or text[:3] != first * 3:
        return None
    info = text.lstrip(first)
    if first == "`" and "`" in info:
        return None
    column = len(raw[: len(raw) - len(text)].expandtabs(SMALL_INDENT))
    return _Fence(column, text[: len(text) - len(info)], info)


def joined(lines: Sequence[Line]) -> str:
    """The text of these lines as written, without blank lines around it."""
    return "\n".join([line.text for line in lines]).strip("\n")


# --- What a line is ---------------------------------------------------------------------------------------


def list_item(text: str) -> ListItem | None:
    """The list item that a line begins, or None. A tab counts as four blanks."""
    match = ITEM.match(text)
    if match is None:
        return None
    indent, end = match.span("marker")
    marker = text[indent:end]
    if indent and "\t" in text[:indent]:
        indent = len(text[:indent].expandtabs(SMALL_INDENT))
    return ListItem(indent, marker, text[match.end() :])


def bold_lead(text: str) -> tuple[str, str] | None:
    """The bold words at the beginning of a text, and the text after them; None if there are none."""
    mark = text[:2]
    if mark not in ("**", "__"):
        return None
    end = text.find(mark, 2)
    if end <= 2:
        return None
    return text[2:end], text[end + 2 :].lstrip("*")


def cells(text: str) -> tuple[str, ...]:
    """The cells of a table row, without the blanks around them; empty if the line is not a row."""
    text = text.strip()
    if text[:1] != "|" or len(text) < 2:
        return ()
    row = text[1:-1] if text.endswith("|") and not text.endswith("\\|") else text[1:]
    if "\\|" not in row:
        return tuple(map(str.strip, row.split("|")))
    parts = row.replace("\\|", "\x00").split("|")
    return tuple(part.replace("\x00", "|").strip() for part in parts)


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """The tables that state something: a header, a line of dashes, rows."""
    end = 0
    for start, line in enumerate(lines):
        if "|" not in line.text or start < end or not _is_row(line):
            continue
        end = start + 1
        while end < len(lines) and _is_row(lines[end]):
            end += 1
        if end - start >= 2 and _is_separator(cells(lines[start + 1].text)):
            rows = tuple(Row(line.number, cells(line.text)) for line in lines[start + 2 : end])
            yield Table(cells(line.text), rows, start, end)


def _is_row(line: Line) -> bool:
    # A bar alone has no cells.
    text = line.text
    if text[:1] != "|" and (text[:1] not in BLANKS or text.lstrip()[:1] != "|"):
        return False
    return line.mode is STATED and text.strip() != "|"


def _is_separator(row: tuple[str, ...]) -> bool:
    return bool(row) and all(SEPARATOR_CELL.fullmatch(cell) for cell in row)

"""The scanner that every reader of documents uses: it numbers lines and tells statements from quotations.

An id, a heading or a keyword inside a fence or a quote is an example, not a statement (ID-3).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
    """A document cannot be accepted. `problems` names each faulty line and what is wrong with it."""

    def __init__(self, code: str, problems: list["Problem"]) -> None:
        self.code, self.problems = code, problems
        super().__init__("; ".join(f"line {p.line}: {p.reason}" for p in problems))


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in a document: the number of the line, and the reason."""

    line: int
    reason: str


class Mode(StrEnum):
    STATED = "stated"
    QUOTED = "quoted"
    FENCED = "fenced"


# Every line is compared with these, and Python 3.11 is slow to look up a member through its enum.
STATED, QUOTED, FENCED = Mode


class Line(NamedTuple):
    """One line: its number from 1, its text without the line end, and how it is meant.

    It is a tuple because a document has thousands of lines, and a dataclass takes three times as long to
    make.
    """

    number: int
    text: str
    mode: Mode

    @property
    def heading(self) -> tuple[int, str] | None:
        """The level and text of the heading, or None if the line is not a heading or is only quoted."""
        if self.mode is not STATED or "#" not in self.text[:4]:
            return None
        match = HEADING.match(self.text)
        return (len(match["level"]), match["text"].rstrip().rstrip("#").rstrip()) if match else None


# Makes a Line from its values as Line() does, but without a Python function call for each line.
NEW_LINE: Callable[[Iterable[object]], Line] = partial(tuple.__new__, Line)


class ListItem(NamedTuple):
    """A list item: the column of its marker, the marker as written (`-`, `3.`), and the text after it."""

    indent: int
    marker: str
    text: str

    @property
    def numbered(self) -> bool:
        return self.marker[0].isdigit()


class Row(NamedTuple):
    """One row of a table: its line number, and its cells without the blanks around them."""

    line: int
    cells: tuple[str, ...]

    def cell(self, column: int | None) -> str:
        """Return what stands in a column; nothing if there is none or the row is too short."""
        return self.cells[column] if column is not None and column < len(self.cells) else ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `start` is the index of its header line, `end` the index after its last row."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    start: int
    end: int

    @property
    def names(self) -> list[str]:
        """The names of the columns in lower case, without marks."""
        return [cell.strip("*` ").lower() for cell in self.header]

    def column(self, names: Collection[str]) -> int | None:
        """Return the index of the first column with one of these names, or None."""
        return next((index for index, name in enumerate(self.names) if name in names), None)


class _Fence(NamedTuple):
    """The marks that open or close a fence: their column, the marks themselves, and the text after them."""

    column: int
    mark: str
    info: str

    def closes(self, opened: "_Fence") -> bool:
        """Whether these marks close the fence that `opened` opened."""
        return (
            self.mark.startswith(opened.mark)
            and not self.info.strip()
            and self.column < opened.column + SMALL_INDENT
        )


def scan(text: str) -> list[Line]:
    """Return the lines of a document. Raises DocumentError if it is too large.

    Fences nest: a fence is closed only by at least as many of the same character, with no text after them and
    less than four columns deeper than it was opened. It may open on the line of a list marker (ID-3).
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        problem = Problem(1, f"the document has {size} bytes; {MAX_BYTES} are the limit")
        raise DocumentError("too_large", [problem])
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return list(map(NEW_LINE, zip(range(1, len(lines) + 1), lines, _modes(text, lines)[0], strict=True)))


def unclosed_fence(lines: Sequence[Line]) -> int:
    """Return the number of the line whose fence is never closed, or 0 if there is none."""
    start = len(lines)
    while start and lines[start - 1].mode is FENCED:
        start -= 1
    last = [line.text for line in lines[start:]]
    opened = _modes("\n".join(last), last)[1]
    return start + opened + 1 if opened >= 0 else 0


def _modes(text: str, lines: list[str]) -> tuple[list[Mode], int]:
    """Return the mode of each line, and the index of the line whose fence is still open at the end, or -1."""
    modes = [STATED] * len(lines)
    if "```" not in text and "~~~" not in text and ">" not in text:  # HTML comments also contain a >
        return modes, -1
    opened: _Fence | None = None
    opened_at = -1
    for index, raw in enumerate(lines):
        if ("```" in raw or "~~~" in raw) and (mark := _fence_at(lines, index, may_open=opened is None)):
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


def _fence_at(lines: Sequence[str], index: int, *, may_open: bool) -> _Fence | None:
    """Return the marks of a fence on a line, or None; some underline a title, as in reStructuredText."""
    mark = _fence(lines[index], may_open=may_open)
    if mark and may_open and mark.mark[0] == "~" and len(mark.mark) > 3 and not mark.info and index:  # noqa: PLR2004
        return None if abs(len(mark.mark) - len(lines[index - 1].rstrip())) < 2 else mark  # noqa: PLR2004
    return mark


def _pass_over_comments(lines: list[str], modes: list[Mode]) -> None:
    """Mark lines that are only an HTML comment as quoted, since nobody sees them rendered.

    A comment that never ends is treated as text.
    """
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
    """Return the marks of a fence on this line, or None; marks after a list marker can only open a fence."""
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


def trimmed(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines without the blank ones and the horizontal rules at their end."""
    end = len(lines)
    while end and not (
        (last := lines[end - 1]).text.strip() and (last.mode is not STATED or not RULE.match(last.text))
    ):
        end -= 1
    return lines[:end]


def joined(lines: Sequence[Line]) -> str:
    """Return the text of these lines as written, without the blank lines before and after it."""
    return "\n".join([line.text for line in lines]).strip("\n")


# --- Recognising lines ------------------------------------------------------------------------------------


def list_item(text: str) -> ListItem | None:
    """Return the list item that a line begins, or None. A tab advances to the next multiple of four."""
    match = ITEM.match(text)
    if match is None:
        return None
    indent, end = match.span("marker")
    marker = text[indent:end]
    if indent and "\t" in text[:indent]:
        indent = len(text[:indent].expandtabs(SMALL_INDENT))
    return ListItem(indent, marker, text[match.end() :])


def bold_lead(text: str) -> tuple[str, str] | None:
    """Return the bold words at the beginning of a text and the text after them, or None if there are none."""
    mark = text[:2]
    if mark not in ("**", "__"):
        return None
    end = text.find(mark, 2)
    if end <= 2:
        return None
    return text[2:end], text[end + 2 :].lstrip("*")


def cells(text: str) -> tuple[str, ...]:
    """Return the cells of a table row without the blanks around them; empty if the line is not a row."""
    text = text.strip()
    if text[:1] != "|" or len(text) < 2:
        return ()
    row = text[1:-1] if text.endswith("|") and not text.endswith("\\|") else text[1:]
    if "\\|" not in row:
        return tuple(map(str.strip, row.split("|")))
    parts = row.replace("\\|", "\x00").split("|")
    return tuple(part.replace("\x00", "|").strip() for part in parts)


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """Yield the tables that are not quoted: a header, a line of dashes, and the rows."""
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
    # A line with nothing but a bar has no cells.
    text = line.text
    if text[:1] != "|" and (text[:1] not in BLANKS or text.lstrip()[:1] != "|"):
        return False
    return line.mode is STATED and text.strip() != "|"


def _is_separator(row: tuple[str, ...]) -> bool:
    return bool(row) and all(SEPARATOR_CELL.fullmatch(cell) for cell in row)

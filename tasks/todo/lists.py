"""Core: gives what is meant as a task a box, for a TODO.md whose writer used none."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.text.regex import regex
from tasks.todo.format import (
    ATTRIBUTE,
    ATTRIBUTES,
    HEADING,
    NUMBERED,
    TASK,
    TITLE_MAX,
    TOP_HEADING,
    after_fence,
    split_lines,
)

ITEM = regex(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(\S.*)")
GOES_ON = regex(r"[ \t]+(?![-*+][ \t]|[0-9]{1,9}[.)][ \t])(\S.*)")
NUMBERED_TITLE = regex(
    r"(?i)(?:(?:task|step|item) [0-9.]{1,12}[:)]?|[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}[.:)]"
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){1,3})"
    r"[ \t]+(?:[-–—:][ \t]+)?(\S.*)"
)
TICK = "[\N{WHITE HEAVY CHECK MARK}\N{HEAVY CHECK MARK}\N{BALLOT BOX WITH CHECK}]\N{VARIATION SELECTOR-16}?"
DONE = "(?:done|completed|finished|shipped)"
DONE_HEADING = regex(rf"(?i)(?:[0-9.]{{1,6}}[:)]? )?{DONE}\b.*|.*(?:[-–—:(] ?{DONE}\)?|{TICK}).*")
DONE_ITEM = regex(rf"(?i)(?:[(\[]{DONE}[)\]]|{DONE}:|{TICK}) *(\S.*)|~~(.+)~~[.!]?")
FEW = 2  # numbered headings of one level from which on they are the tasks


def with_boxes(text: str) -> str:
    """Return the text with a box before whatever its writer seems to have meant as a task.

    These are the numbered headings of one level, with what is below them as their descriptions, or, if there
    are none, the items of lists that begin in the first column. The box is ticked if the line, or the heading
    above it, says that it is done. All lines keep their numbers: an item's sentence that goes on in the next
    lines is brought into one line, and leaves empty ones. A text that has a box already stays as it is.
    """
    lines = list(_read(text))
    if any(_has_box(line.text) and not line.is_fenced for line in lines):
        return text
    level = _numbered_level(lines)
    return "\n".join(_headings_boxed(lines, level) if level else _items_boxed(lines))


def count_boxes(text: str) -> int:
    """Return how many boxes `with_boxes` would add; 0 if the text has a box already."""
    pairs = zip(split_lines(text), split_lines(with_boxes(text)), strict=True)
    return sum(before != after and _has_box(after) for before, after in pairs)


def _has_box(line: str) -> bool:
    return bool(TASK.fullmatch(line) or NUMBERED.fullmatch(line))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line; the level and title of a heading, else 0; whether it is fenced, or below what is done."""

    text: str
    level: int
    title: str
    is_fenced: bool
    is_done: bool


def _read(text: str) -> Iterator[_Line]:
    fence, done_level = "", 0
    for line in split_lines(text):
        before, fence = fence, after_fence(line, fence)
        is_fenced = bool(before or fence)
        match = None if is_fenced else HEADING.fullmatch(line) or TOP_HEADING.fullmatch(line)
        level = len(line) - len(line.lstrip("#")) if match else 0
        title = match[match.re.groups].strip() if match else ""
        if level and not 0 < done_level < level:
            done_level = level if DONE_HEADING.fullmatch(title) else 0
        yield _Line(line, level, title, is_fenced, done_level > 0)


def _numbered_level(lines: list[_Line]) -> int:
    """Return the deepest level at which several headings are numbered; 0 if there is none."""
    counts = Counter(line.level for line in lines if line.level and NUMBERED_TITLE.fullmatch(line.title))
    return max((level for level, count in counts.items() if count >= FEW), default=0)


def _headings_boxed(lines: list[_Line], level: int) -> Iterator[str]:
    is_within = False
    for line in lines:
        numbered = NUMBERED_TITLE.fullmatch(line.title) if line.level == level else None
        if 0 < line.level <= level:
            is_within = bool(numbered)
        if numbered:
            yield _box(numbered[1], line)
        else:
            yield f"  {line.text}" if is_within and line.text.strip() else line.text


def _items_boxed(lines: list[_Line]) -> list[str]:
    made: list[str] = []
    begun = -1  # the item that may go on in the next line
    for line in lines:
        more = (
            None if begun < 0 or line.is_fenced or _is_attribute(line.text) else GOES_ON.fullmatch(line.text)
        )
        if more and len(made[begun]) < TITLE_MAX:
            made[begun] += f" {more[1].rstrip()}"
            made.append("")
            continue
        item = None if line.is_fenced else ITEM.fullmatch(line.text)
        begun = len(made) if item else -1
        made.append(_box(item[1].rstrip(), line) if item else line.text)
    return made


def _is_attribute(line: str) -> bool:
    match = ATTRIBUTE.fullmatch(line.strip())
    return bool(match and match[1].lower() in ATTRIBUTES)


def _box(title: str, line: _Line) -> str:
    said = DONE_ITEM.fullmatch(title)
    return f"- [{'x' if said or line.is_done else ' '}] {(said[1] or said[2]) if said else title}"

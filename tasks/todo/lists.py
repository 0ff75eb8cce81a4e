"""Core: gives what is meant as a task a box, for a TODO.md whose writer used none."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from tasks.text.fences import after_fence
from tasks.text.regex import regex
from tasks.todo import format
from tasks.todo.asciidoc import first_item
from tasks.todo.drafts import key_of
from tasks.todo.notations import is_list
from tasks.todo.org import first_headline
from tasks.todo.wording import DONE, FIELDS, IN_VALUE, TASKS, TICKS, field_of, marker_of, names_in, urgency

ITEM = regex(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(\S.*)")
GOES_ON = regex(r"[ \t]+(?![-*+][ \t]|[0-9]{1,9}[.)][ \t])(\S.*)")
TASK_TITLE = regex(
    rf"(?i)(?:[^\w\s\[(]{{1,3}} )?(?:{TASKS})(?:\s?#?[a-z]?[0-9.]{{1,12}}\s?[:)–—-]?|:)\s+(\S.*)"
)
NUMBERED_TITLE = regex(
    rf"(?i)(?:[^\w\s\[(]{{1,3}} )?(?:(?:{TASKS}|step|item)\s?[0-9.]{{1,12}}[:)]?|(?:{TASKS}):"
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}[.:)]|[0-9]{1,3}(?:\.[0-9]{1,3}){1,3})"
    r"[ \t]+(?:[-–—:][ \t]+)?(\S.*)"
)
BOX = regex(r"([ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)\[([^\[\]]{0,3})\](?=[ \t])(.*)")
RULED = regex(r"\|?(?:\s*:?-{3,}:?\s*\|)*\s*:?-{3,}:?\s*\|?")
HEADS = {  # what the heads of a table call its columns
    "number": "id|#|no|nr|number|key",
    "title": "task|tasks|title|feature|item|name|what|description|todo|deliverable|subtask|skill",
    "status": "status|state|done|progress",
    "severity": FIELDS["severity"],
}
TICK = f"[{TICKS}]\N{VARIATION SELECTOR-16}?"
DONE_HEADING = regex(
    rf"(?i)(?:[0-9.]{{1,6}}[:)]? )?(?:{DONE})\b(?! (?:when|if|criteria|means)\b).*"
    rf"|.*(?:[-–—:(] ?(?:{DONE})\)?|{TICK}).*"
)
DONE_ITEM = regex(rf"(?i)(?:[(\[](?:{DONE})[)\]]|(?:{DONE}):|{TICK}) *(\S.*)|~~(.+)~~[.!]?")
EMPTY = "\N{BALLOT BOX}\N{WHITE SQUARE}\N{WHITE MEDIUM SQUARE}\N{WHITE LARGE SQUARE}\N{BLACK SQUARE BUTTON}"
OPEN_ITEM = regex(f"[{EMPTY}]\N{VARIATION SELECTOR-16}?" r" *(\S.*)")
# A box, or a sign for one, that begins a line by itself.
BARE = regex(
    rf"(?:\[(?P<marker>[ xX]?)\](?=[ \t])|(?=[{EMPTY}{TICKS}]"
    "\N{VARIATION SELECTOR-16}?"
    r"[ \t]))[ \t]*(?P<title>\S.*)"
)
FEW = 2  # numbered headings of one level from which on they are the tasks


def with_boxes(text: str) -> str:
    """Return the text with a box before whatever its writer seems to have meant as a task.

    These are the numbered headings of one level, with what is below them as their descriptions, or, if there
    are none, the rows of tables that give a status or a priority, or else the items of lists that begin in
    the first column, and boxes that stand there without a dash. The box is ticked if the line, or the heading
    above it, says that it is done. All lines keep their numbers: an item's sentence that goes on in the next
    lines is brought into one line, and leaves empty ones. In a text that has boxes already, only headings
    such as “Task 1.2” are tasks, and the boxes below them are their criteria. An outline of Org mode, or a
    list in JSON and the like, stays as it is.
    """
    if first_headline(text) or first_item(text) or is_list(text):
        return text
    lines = list(_read(text))
    has_box = any(_has_box(line.text.strip()) and not line.is_fenced for line in lines)
    pattern = TASK_TITLE if has_box else NUMBERED_TITLE
    if level := _numbered_level(lines, pattern):
        return "\n".join(_headings_boxed(lines, level, pattern))
    if has_box:
        return text
    rows = _rows_boxed(lines)
    return "\n".join(_items_boxed(lines) if rows is None else rows)


def count_boxes(text: str) -> int:
    """Return how many boxes `with_boxes` would add."""
    pairs = zip(format.split_lines(text), format.split_lines(with_boxes(text)), strict=True)
    return sum(before != after and _has_box(after) for before, after in pairs)


def _has_box(line: str) -> bool:
    return bool(format.TASK.fullmatch(line) or format.NUMBERED.fullmatch(line))


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
    for line in format.split_lines(text):
        before, fence = fence, after_fence(line, fence)
        is_fenced = bool(before or fence)
        match = None if is_fenced else format.HEADING.fullmatch(line) or format.TOP_HEADING.fullmatch(line)
        level = len(line) - len(line.lstrip("#")) if match else 0
        title = match[match.re.groups].strip() if match else ""
        if level and not 0 < done_level < level:
            done_level = level if DONE_HEADING.fullmatch(title) else 0
        yield _Line(line, level, title, is_fenced, done_level > 0)


def _numbered_level(lines: list[_Line], pattern: re.Pattern[str]) -> int:
    """Return the deepest level at which several headings are numbered; 0 if there is none."""
    counts = Counter(line.level for line in lines if line.level and pattern.fullmatch(line.title))
    return max((level for level, count in counts.items() if count >= FEW), default=0)


def _headings_boxed(lines: list[_Line], level: int, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines; titles keep their numbers if tasks depend on each other by them."""
    fields = (field_of(line.text) for line in lines)
    is_named = any(number for key, value in fields if key == "depends" for _, number in names_in(value))
    is_within = False
    for at, line in enumerate(lines):
        numbered = pattern.fullmatch(line.title) if line.level == level else None
        if 0 < line.level <= level:
            is_within = bool(numbered)
        if numbered:
            is_done = line.is_done or _is_ticked((lines[below] for below in range(at + 1, len(lines))), level)
            yield _box(line.title if is_named else numbered[1], is_done)
        elif is_within and (box := BOX.fullmatch(line.text)):
            sign = "\N{BALLOT BOX WITH CHECK}" if box[2] in {"x", "X"} else "\N{BALLOT BOX}"
            yield f"  {box[1]}{sign}{box[3]}"
        else:
            yield f"  {line.text}" if is_within and line.text.strip() else line.text


def _is_ticked(below: Iterator[_Line], level: int) -> bool:
    """Whether there are criteria below a heading, and all of them are ticked."""
    own = takewhile(lambda line: not 0 < line.level <= level, below)
    boxes = [box[2] for line in own if (box := BOX.fullmatch(line.text))]
    return bool(boxes) and set(boxes) <= {"x", "X"}


def _rows_boxed(lines: list[_Line]) -> list[str] | None:
    """Return the lines with the rows of tables of tasks as tasks; None if there is no such table."""
    made, heads, found = [line.text for line in lines], [], False
    for at, line in enumerate(lines):
        if line.is_fenced or "|" not in line.text:
            heads = []
        elif at + 1 < len(lines) and RULED.fullmatch(lines[at + 1].text.strip()):
            heads = [_head_of(cell) for cell in _cells(line.text)]
            if "title" not in heads or not {"status", "severity"}.intersection(heads):
                heads = []
            elif heads:
                made[at], made[at + 1], found = "", "", True
        elif heads and not RULED.fullmatch(line.text.strip()):
            made[at] = _row_boxed(dict(zip(heads, _cells(line.text), strict=False)), line)
    return made if found else None


def _row_boxed(row: dict[str, str], line: _Line) -> str:
    title = f"{row.pop('number', '')} {row.pop('title', '')}".strip()
    status, word = row.pop("status", ""), urgency(row.pop("severity", ""), IN_VALUE)
    rest = [cell for cell in row.values() if cell.strip(" -–—")]
    title += f" ({word})" if word else ""
    marker = "x" if line.is_done else marker_of(status)
    return f"- [{marker}] {' — '.join([title, *rest])}" if title else ""


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    cells = re.split(r"(?<!\\)\|", inner.removesuffix("|") if not inner.endswith("\\|") else inner)
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _head_of(cell: str) -> str:
    """Return what a column holds; its own name if that is nothing known."""
    name = re.sub(r"[*_`]", "", cell).strip().lower()
    return next((key for key, words in HEADS.items() if re.fullmatch(words, name)), name)


def _items_boxed(lines: list[_Line]) -> list[str]:
    made: list[str] = []
    begun = -1  # the item that may go on in the next line
    for line in lines:
        may_go_on = begun >= 0 and not line.is_fenced and key_of(line.text) not in format.ATTRIBUTES
        more = GOES_ON.fullmatch(line.text) if may_go_on else None
        if more and len(made[begun]) < format.TITLE_MAX:
            made[begun] += f" {more[1].rstrip()}"
            made.append("")
            continue
        boxed = "" if line.is_fenced else _item_boxed(line)
        begun = len(made) if boxed else -1
        made.append(boxed or line.text)
    return made


def _item_boxed(line: _Line) -> str:
    """Return the line with a box if it begins an item; otherwise ""."""
    if item := ITEM.fullmatch(line.text):
        return _box(item[1].rstrip(), line.is_done)
    if bare := BARE.fullmatch(line.text):
        return _box(bare["title"].rstrip(), line.is_done or bare["marker"] in {"x", "X"})
    return ""


def _box(title: str, is_done: bool) -> str:
    said, to_do = DONE_ITEM.fullmatch(title), OPEN_ITEM.fullmatch(title)
    title = (said[1] or said[2]) if said else to_do[1] if to_do else title
    return f"- [{'x' if said or is_done else ' '}] {title}"

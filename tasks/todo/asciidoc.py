"""Core: turns a checklist of AsciiDoc into the Markdown that `lenient` reads, line by line."""

from collections.abc import Iterator

from tasks.text.regex import regex
from tasks.todo import format

HEADING = regex(r"(={1,6})[ \t]+(\S.*)")
ITEM = regex(r"[ \t]*(\*{1,6}|\.{1,6}|-)[ \t]+\[([ xX*])\][ \t]+(\S.*)")
SETTING = regex(r":!?[\w-]+!?:.*|//(?!//).*")
BLOCK = regex(r"(-{4,}|\.{4,}|={4,}|/{4,})\s*")
GOES_ON = "+"  # a line between an item and what belongs to it
STEP = "  "


def first_item(text: str) -> int:
    """Return the line of the first item with a box; 0 if the text is no AsciiDoc with a heading and boxes."""
    lines = format.split_lines(text)
    is_other = any(format.HEADING.fullmatch(line) or format.TOP_HEADING.fullmatch(line) for line in lines)
    if is_other or not any(map(HEADING.fullmatch, lines)):
        return 0
    return next((number for number, line in enumerate(lines, 1) if ITEM.fullmatch(line)), 0)


def as_markdown(text: str) -> str:
    """Return the checklist with its headings and boxes as Markdown has them; lines keep their numbers."""
    return "\n".join(_written(format.split_lines(text)))


def _written(lines: list[str]) -> Iterator[str]:
    indent, block = "", ""
    for line in lines:
        heading, item = (None, None) if block else (HEADING.fullmatch(line), ITEM.fullmatch(line))
        if (fence := BLOCK.fullmatch(line)) and block in ("", fence[1]):
            block = "" if block else fence[1]
            yield f"{indent}```"
        elif heading:
            indent = ""
            yield f"{'#' * len(heading[1])} {heading[2]}"
        elif item:
            outer = STEP * (len(item[1]) - 1)
            indent = outer + STEP
            yield f"{outer}- [{item[2].replace('*', 'x')}] {item[3]}"
        elif not block and (line.strip() == GOES_ON or SETTING.fullmatch(line)):
            yield ""
        else:
            yield f"{indent}{line}" if line.strip() else ""

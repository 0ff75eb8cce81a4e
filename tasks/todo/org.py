"""Core: turns an outline of Org mode into the Markdown that `lenient` reads, line by line."""

from collections.abc import Iterator

from tasks.text.regex import regex
from tasks.todo import format
from tasks.todo.wording import marker_of

HEADLINE = regex(r"(\*+) (?:(\S+)[ \t]+)?(\S.*)")
USUAL = regex(r"[A-Z]{2,20}(?:-[A-Z]{2,20})?")
OWN = regex(r"#\+(?i:TODO|SEQ_TODO|TYP_TODO):[ \t]+(\S.*)")  # a line that says which keywords the file uses
SHORTCUT = regex(r"\([^()]*\)$")
OPEN = "TODO|TO-DO|NEXT|WAITING|WAIT|MAYBE|REVIEW|SOMEDAY"  # keywords that no status in words stands for
COOKIE = regex(r"\[#([A-Z])\][ \t]*")
LEVELS = {"A": "[P1] ", "B": "[P2] ", "C": "[P3] "}
COUNTED = regex(r"\[[0-9]{0,9}(?:/[0-9]{0,9}|%)\]")  # Org itself counts there what is done
PLANNING = regex(r"\s*(?:CLOSED|SCHEDULED|DEADLINE): .*|\s*- State \"[A-Z-]+\"\s.*")
DRAWER, END = regex(r"\s*:(?:PROPERTIES|LOGBOOK):\s*"), regex(r"(?i)\s*:END:\s*")
BLOCK = regex(r"(?i)\s*#\+(?:(begin)|end)_(?:src|example)[ \t]*([\w-]*).*")
SETTING = regex(r"#\+(?:(?i:title): *(\S.*)|\w+:.*)")
PUT_AWAY = regex(r"^\*+ COMMENT(?:\s|$)|\s:(?:[\w@#%]+:)*ARCHIVE:(?:[\w@#%]+:)*\s*$")
STEP = "  "


def first_headline(text: str) -> int:
    """Return the line of the first headline with a keyword; 0 if the text is no outline of Org mode."""
    lines = format.split_lines(text)
    if any(format.HEADING.fullmatch(line) or format.TOP_HEADING.fullmatch(line) for line in lines):
        return 0
    markers = _markers(lines)
    lines = list(_in_use(lines))
    return next((number for number, line in enumerate(lines, 1) if _keyword(line, markers)), 0)


def _markers(lines: list[str]) -> dict[str, str]:
    """Return the marker for each keyword that the file itself names; what is behind a bar is done."""
    markers: dict[str, str] = {}
    for own in filter(None, map(OWN.fullmatch, lines)):
        opened, bar, done = own[1].partition("|")
        words = [SHORTCUT.sub("", word) for word in f"{opened} {done}".split()]
        closed = len(done.split()) if bar else 1  # without a bar, the last one is
        for number, word in enumerate(words, start=1):
            is_closed = number > len(words) - closed
            marker = marker_of(word)
            markers[word] = (" " if marker == "x" else marker) if not is_closed else marker.strip() or "x"
    return markers


def as_markdown(text: str) -> str:
    """Return the outline with its keywords as boxes, those within others indented; lines keep their numbers.

    Headlines without a keyword are headings, or text if they are below a task.
    """
    return "\n".join(_written(list(_in_use(format.split_lines(text)))))


def _in_use(lines: list[str]) -> Iterator[str]:
    """Yield the lines, empty those below a headline that Org itself leaves out with all that it holds."""
    left_out = 0  # the level of that headline
    for line in lines:
        level = len(headline[1]) if (headline := HEADLINE.fullmatch(line)) else 0
        if 0 < level <= left_out:
            left_out = 0
        if level and not left_out and PUT_AWAY.search(line):
            left_out = level
        yield "" if left_out else line


def _written(lines: list[str]) -> Iterator[str]:
    markers = _markers(lines)
    around: list[int] = []  # the levels of the tasks that the line is in
    in_block = in_drawer = False
    for line in lines:
        indent = STEP * len(around)
        headline = None if in_block else HEADLINE.fullmatch(line)
        if block := BLOCK.fullmatch(line):
            in_block = bool(block[1])
            yield f"{indent}```{block[2] if in_block else ''}"
        elif headline:
            in_drawer = False
            yield _headline(headline[1], line, around, markers)
        elif not in_block and (in_drawer or DRAWER.fullmatch(line)):
            in_drawer = not END.fullmatch(line)
            yield ""
        elif not in_block and PLANNING.fullmatch(line):
            yield ""
        elif setting := SETTING.fullmatch(line):
            yield f"# {setting[1]}" if setting[1] else ""
        else:
            yield f"{indent}{line}" if line.strip() else ""


def _headline(stars: str, line: str, around: list[int], markers: dict[str, str]) -> str:
    while around and around[-1] >= len(stars):
        around.pop()
    indent = STEP * len(around)
    if keyword := _keyword(line, markers):
        around.append(len(stars))
        title = _title(line[len(stars) + 1 + len(keyword) :])
        title = COOKIE.sub(lambda found: LEVELS.get(found[1], ""), title, count=1)
        return f"{indent}- [{markers.get(keyword) or marker_of(keyword)}] {title}"
    title = _title(line[len(stars) + 1 :])
    return f"{indent}{title}" if around else f"#{'#' * len(stars)} {title}"


def _title(text: str) -> str:
    """Return a headline without what Org itself changes in it: counts of what is done, blanks before tags."""
    return " ".join(COUNTED.sub("", text).split()) or text.strip()


def _keyword(line: str, markers: dict[str, str]) -> str:
    """Return the keyword of a headline that is a task: one of the file's own, a usual one if it has none."""
    match = HEADLINE.fullmatch(line)
    word = (match[2] or "") if match else ""
    is_usual = USUAL.fullmatch(word) and (word in OPEN.split("|") or marker_of(word) != " ")
    return word if word in markers or (not markers and is_usual) else ""

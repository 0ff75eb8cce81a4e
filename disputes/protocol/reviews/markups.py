"""Reading the lines of a review in other marks than those of Markdown as if they were in these (FND-10).

The readers know Markdown alone. What stands in HTML, in the headings of other markups, behind other bullets,
in the annotations of a compiler, or in a table without bars around it is put into its form before they see
it. Lines keep their numbers, so that several may have the same one.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from disputes.protocol.reviews.first_lines.places import LEVELS
from disputes.protocol.reviews.inline_severities import severity_in
from disputes.protocol.reviews.languages import in_english
from disputes.protocol.reviews.verdict_words import verdict_alone
from disputes.protocol.reviews.verdicts import verdict_label
from disputes.protocol.text.documents import FENCED, QUOTED, STATED, Line, list_item, scan
from tasks.text.regex import regex

# Points that are counted within a line: "(1) the lock leaks, (2) nothing is tested".
MARKERS = regex(r"(?:^|(?<=[\s,;:.]))(?P<open>\()?(?P<number>[1-9])(?P<close>[.)]|/(?=\s))\s+(?=\S)")
# Points that begin with a tag for their severity: "[HIGH] the lock leaks; [LOW] a typo".
TAGS = regex(r"(?:^|(?<=[\s,;.]))\[(?P<word>[A-Za-z][A-Za-z0-9-]{1,15})\](?!\()\s+(?=\S)")
FENCES = frozenset(["markdown", "md"])  # a fence without a word is an example
LINES_MAX = 3  # of a review that is but a few sentences, or of what stands around one in a fence
AROUND = " \t,;"
THOUGHT = regex(r"\s*<(?P<name>think(?:ing)?|thoughts?|analysis|reasoning|scratchpad)>", re.IGNORECASE)

# --- HTML ---
HAS_HTML = regex(r"(?:^|\n)[ \t]*<(?:h[1-6]|[ou]l|li|table|tr|p)\b[^<>]{0,200}>", re.IGNORECASE)
ELEMENT = regex(
    r"(?<!`)<(?P<close>/)?(?P<name>h[1-6]|li|[ou]l|p|div|br|table|thead|tbody|tr|t[dh]|strong|b|code)"
    r"(?:\s[^<>]{0,300})?/?>",
    re.IGNORECASE,
)
OPENING = {"li": "\n- ", "tr": "\n|", "th": "", "td": "", "strong": "**", "b": "**", "code": "`"}
CLOSING = {"th": " | ", "td": " | ", "strong": "**", "b": "**", "code": "`", "li": "", "tr": ""}

HEADER_CELL = regex(r"<th\b", re.IGNORECASE)
WHOLE = regex(r"<(h[1-6]|li|tr)\b", re.IGNORECASE)
MAX_HELD = 20  # lines

# --- Single lines ---
ANNOTATION = regex(r"::(?P<level>error|warning|notice)(?: (?P<where>[^\n]{0,300}?))?::(?P<text>.+)")
PART = regex(r"(?:^|,)\s*(?P<key>file|line)=(?P<value>[^,]+)")
# What a checker says of a line: after a level, or after a code or behind a column and nothing else.
CHECKED = regex(
    r"(?P<path>[\w./\\+-]{1,200}\.\w{1,8})"
    r"(?:\((?P<line>\d{1,7})(?:,\d+)?\)|:(?P<at>\d{1,7})(?P<column>:\d+)?|: line (?P<told>\d{1,7}), col \d+,)"
    r"(?: ?: ?| )(?:(?:fatal )?(?P<level>[Ee]rror|[Ww]arning)(?:\[\w+\]| [A-Z]{1,4}\d{1,5})?(?:: | - )"
    r"|(?P<code>[A-Z]{1,5}\d{2,5}):? |(?P<letter>[CEFRW]): )?(?P<text>\S.*)"
)
# Codes whose letter says how bad it is: F401 and E9 of flake8, E1101 and C0114 of pylint.
OF_CODE = regex(r"(?P<error>F|E9|E\d{4}$)|(?P<notice>[CR](?:\d{4})?$)")
HEADED = regex(r"(?:(?P<marks>={1,6})|h(?P<level>[1-6])\.) (?P<text>\S.{0,120}?)(?: =+)?[ \t]*$")
SIGNED = regex(
    r"(?P<indent>[ \t]*)(?:[•‣▸▹►◦▪→–—]"
    r"|(?P<number>[①-⑳]|[IVX]{1,4}[.)]|\(?[a-h]\)|\(\d{1,2}\)|#\d{1,3}[.:)]?|\d{1,2}/"
    r"|\d{1,2}(?:\.\d{1,2})+(?=\s+\[)))[ \t]+(?=\S)"
)
SEVERE = regex(r"\((?P<word>critical|high|medium|low|major|minor)\)\s+(?=\S)", re.IGNORECASE)
# A test that fails, as its runner tells of it.
FAILED = regex(r"(?:(?:FAILED|ERROR) (?=[\w./+-]{1,200}\.\w{1,8}::)|\s{0,8}--- FAIL: )(?P<text>\S.*)")
# A box around what its author wants to be seen: "> [!CAUTION]" of Markdown, "CAUTION: …" of AsciiDoc.
ALERT = regex(r"\s*>\s*\[!(?P<word>[A-Z]{3,12})\]\s*(?P<text>.*)")
ADMONITION = regex(r"(?P<word>CAUTION|WARNING): (?P<text>\S.*)")
ALERTS = {"CAUTION": "[HIGH] ", "IMPORTANT": "[HIGH] ", "WARNING": "[MEDIUM] "}

# --- Lines that belong together ---
UNDERLINE = regex(r"(?P<mark>[=~^*+#\"'.:`-])(?P=mark){2,79}\s*$")
MAX_TITLE = 80
SLACK = 3  # how many characters an underline may be longer or shorter than its title
SEPARATOR = regex(r"\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+")  # below the names of columns without bars around them


@lru_cache(maxsize=2)  # a hand-in is read, then asked about
def lines_of(text: str) -> tuple[Line, ...]:
    """Return the lines of a review in the form of Markdown. Raises DocumentError if it is too large."""
    lines = list(in_english(without_thoughts(_unwrapped(list(_alerts(scan(text)))))))
    if HAS_HTML.search(text):
        lines = list(_from_html(lines))
    lines = list(_in_bars(_headed(_with_our_marks(line) for line in lines)))
    told = [line for line in lines if line.text.strip()]
    if len(told) > LINES_MAX or any(line.heading or line.text.lstrip()[:1] == "|" for line in told):
        return tuple(lines)
    return tuple(each for line in lines for each in _points(line))


def _alerts(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines, those in a box as stated: it looks like a quote, but is its author's own."""
    level: str | None = None  # of the box, once its first line is read; none outside
    for line in lines:
        if line.mode is not QUOTED:
            level = None
        elif match := ALERT.match(line.text):
            level = ALERTS.get(match["word"], "")
            yield line._replace(text="", mode=STATED)
            continue
        elif level is not None and (said := line.text.strip(" >")):
            yield line._replace(text=said if verdict_alone(said) else level + said, mode=STATED)
            level = ""
            continue
        yield line


def _unwrapped(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines of a review without the fence that it stands in, and without a common indentation.

    Only a fence that says Markdown holds a review, and only if no more than a few words stand around it.
    """
    told = [line for line in lines if line.text.strip()]
    marks = [line for line in told if line.mode is FENCED]
    if len(marks) > 2 and len(told) - len(marks) <= LINES_MAX and _is_only_fence(lines, marks):  # noqa: PLR2004
        bare = ["" if line in (marks[0], marks[-1]) else line.text for line in lines]
        return scan("\n".join(bare))
    if all(line.text[:1] in " \t" for line in told) and any(verdict_label(line.text) for line in told):
        margin = min(len(line.text) - len(line.text.lstrip()) for line in told)
        return [line._replace(text=line.text[margin:]) for line in lines]
    return lines


def _is_only_fence(lines: Sequence[Line], marks: Sequence[Line]) -> bool:
    """Whether these lines are one fence that says Markdown, and whether only sentences stand around it."""
    first, last = marks[0], marks[-1]
    if any(line.mode is not FENCED for line in lines[first.number - 1 : last.number]):
        return False
    outside = [line.text.rstrip() for line in lines if line.mode is not FENCED and line.text.strip()]
    is_plain = all(text[:1].isalpha() and text[-1:] in ".:!?" for text in outside)
    return is_plain and first.text.strip("`~ \t").lower() in FENCES and not last.text.strip("`~ \t")


def without_thoughts(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines, those in which an agent only thinks as quoted, if its thought ends."""
    ends = {line.text.strip().lower(): index for index, line in enumerate(lines) if "</" in line.text}
    end = ""
    for index, line in enumerate(lines):
        text = line.text
        if not end and line.mode is STATED and "<" in text and (match := THOUGHT.match(text)):
            closing = f"</{match['name'].lower()}>"
            _, closed, behind = text.lower().partition(closing)
            if closed:
                yield line._replace(text=behind and text[-len(behind) :])
                continue
            end = closing if ends.get(closing, -1) > index else ""
        yield line._replace(mode=QUOTED) if end else line
        if end and text.strip().lower() == end:
            end = ""


def _from_html(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines with the elements of HTML as the marks of Markdown."""
    for line in _with_whole_elements(lines):
        if line.mode is not STATED or "<" not in line.text:
            yield line
            continue
        parts = ELEMENT.sub(_mark, line.text.strip()).split("\n")
        for number, part in enumerate(parts, start=1):
            if part.strip() or 1 < number < len(parts):
                yield line._replace(text=part.rstrip())
        if names := len(HEADER_CELL.findall(line.text)):
            yield line._replace(text=f"|{' --- |' * names}")


def _with_whole_elements(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines, each heading, item and row of a table that goes on over several of them as one."""
    held: list[Line] = []
    for line in lines:
        held.append(line)
        text = line.text.lower()
        opened = WHOLE.search(held[0].text) if line.mode is STATED else None
        if opened and len(held) < MAX_HELD and f"</{opened[1].lower()}>" not in text:
            continue
        yield held[0]._replace(text=" ".join(each.text.strip() for each in held)) if len(held) > 1 else line
        held = []
    yield from held


def _mark(match: re.Match[str]) -> str:
    """Return what stands in Markdown for the beginning or the end of an element."""
    name = match["name"].lower()
    if match["close"]:
        return CLOSING.get(name, "\n\n")
    return f"\n{'#' * int(name[1])} " if name[0] == "h" else OPENING.get(name, "\n")


def _of_place(path: str, line: str, level: str, text: str) -> str:
    """Return a line of a checker in the usual form, which begins with the place."""
    if path and line and level != "notice":
        return f"{path}:{line}: {level}: {text}"
    return f"[{LEVELS[level].upper()}] {path}{':' if line else ''}{line} {text}"


def _level(match: re.Match[str]) -> str:
    """Return how bad the line of a checker says that it is; empty if it may be a sentence of a person."""
    if match["level"]:
        return match["level"].lower()
    if told := match["code"] or match["letter"]:
        kind = OF_CODE.match(told)
        return kind.lastgroup or "" if kind else "warning"
    return ("error" if "[Error/" in match["text"] else "warning") if match["column"] else ""


def _with_our_marks(line: Line) -> Line:
    return line._replace(text=_in_our_marks(line.text)) if line.mode is STATED and line.text else line


def _in_our_marks(text: str) -> str:
    """Return a line in the marks of Markdown."""
    if (match := HEADED.match(text)) and not match["text"].isupper():
        return f"{'#' * (len(match['marks'] or '') or int(match['level']))} {match['text']}"
    if match := SIGNED.match(text):
        return f"{match['indent']}{'1.' if match['number'] else '-'} {text[match.end() :]}"
    if match := ADMONITION.match(text):
        return ALERTS[match["word"]] + match["text"]
    if match := SEVERE.match(text):
        return f"[{match['word'].upper()}] {text[match.end() :]}"
    return _of_program(text)


def _of_program(text: str) -> str:
    """Return a line that continuous integration, a test runner or a checker prints in the usual form."""
    if match := ANNOTATION.match(text):
        told = {part["key"]: part["value"] for part in PART.finditer(match["where"] or "")}
        return _of_place(told.get("file", ""), told.get("line", ""), match["level"], match["text"])
    if match := FAILED.match(text):
        return f"[HIGH] {match['text']}"
    if ": " in text and (match := CHECKED.match(text)) and (level := _level(match)):
        said = " ".join(filter(None, [match["code"], match["text"]]))
        return _of_place(match["path"], match["line"] or match["at"] or match["told"], level, said)
    return text


def _headed(lines: Iterable[Line]) -> list[Line]:
    """Return the lines with a line of marks below a title as a heading."""
    found = list(lines)
    for index in range(1, len(found)):
        title = found[index - 1].text.strip()
        match = UNDERLINE.match(found[index].text) if title and found[index].mode is not QUOTED else None
        if match is None or not _is_title(found, index - 1, len(match[0].rstrip())):
            continue
        marks = "##" if match["mark"] in "=-" else "###"
        found[index - 1] = found[index - 1]._replace(text=f"{marks} {title}")
        found[index] = found[index]._replace(text="", mode=STATED)
        if index > 1 and UNDERLINE.match(found[index - 2].text):
            found[index - 2] = found[index - 2]._replace(text="")
    return found


def _is_title(lines: Sequence[Line], index: int, length: int) -> bool:
    """Whether a line above a line of marks of that length is a title, and no paragraph above a rule."""
    line, title = lines[index], lines[index].text.strip()
    above = lines[index - 1].text.strip() if index else ""
    is_apart = not above or UNDERLINE.match(above) is not None
    is_text = line.mode is STATED and line.heading is None and title[:1] not in "|>" and not list_item(title)
    return is_apart and is_text and len(title) <= MAX_TITLE and abs(len(title) - length) <= SLACK


def _in_bars(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines, the rows of a table that has no bars around them with bars."""
    is_row = False
    for line, below in zip(lines, [*(line.text for line in lines[1:]), ""], strict=True):
        has_bars = "|" in line.text and line.text.lstrip()[:1] != "|"
        is_row = line.mode is STATED and has_bars and (is_row or SEPARATOR.fullmatch(below) is not None)
        yield line._replace(text=f"| {line.text.strip()} |") if is_row else line


def _points(line: Line) -> Iterator[Line]:
    begins = _begins(line.text) if line.mode is STATED else []
    if len(begins) < 2:  # noqa: PLR2004
        yield line
        return
    if line.text[: begins[0]].strip(AROUND):
        yield line._replace(text=line.text[: begins[0]].rstrip())
    for number, (begin, end) in enumerate(pairwise([*begins, len(line.text)]), start=1):
        said = line.text[begin:end].strip(AROUND)
        if match := MARKERS.match(said):
            said = said[match.end() :]
        yield line._replace(text=said if list_item(said) else f"{number}. {said}")


def _begins(text: str) -> list[int]:
    """Return where the points of a line begin: they count from one in one way, or begin with a severity."""
    counted: dict[tuple[str | None, str], list[int]] = {}
    for match in MARKERS.finditer(text):
        places = counted.setdefault((match["open"], match["close"]), [])
        if int(match["number"]) == len(places) + 1:
            places.append(match.start())
    longest = max(counted.values(), key=len, default=[])
    tags = [match.start() for match in TAGS.finditer(text) if severity_in(match["word"])]
    return longest if len(longest) > 1 else tags

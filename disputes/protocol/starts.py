"""The first line of a finding, in every shape of §19.1: what it is, and what it says of itself."""

import re
from enum import StrEnum
from typing import NamedTuple

from disputes.protocol.documents import HEADING, Line, bold_lead, list_item
from disputes.protocol.fields import before_comment, field_name, field_of
from disputes.protocol.headings import NUMBERING, OBSERVING, severities_of
from disputes.protocol.identifiers import CODE, MORE_CODES, NATIVE_FIRST, codes_in, native_code
from disputes.protocol.severity import read_severity
from tasks.states import Severity, severity_rank


class Shape(StrEnum):
    """What carries a finding."""

    HEADING = "heading"
    BOLD = "bold-para"
    ITEM = "item"
    PLAIN = "plain"
    TAG = "tag"


CODES = re.compile(rf"(?P<codes>{CODE}{MORE_CODES})")
# ARB-1: tags in capitals. Title-case ones count where a list or a heading carries them.
TAG = re.compile(
    r"\[(?P<word>MUST|SHOULD|CRITICAL|HIGH|MEDIUM|LOW|MAJOR|MODERATE|MINOR|NITS?|Must|Should|Critical|High"
    r"|Medium|Low|Major|Moderate|Minor|Nit)\](?!\()"
)
# "Minor: the name differs", "HIGH - no retry".
PREFIX = re.compile(
    r"(?P<word>(?:critical|high|medium|low|major|moderate|minor|nit(?:pick)?)"
    r"(?: (?:priority|severity|risk|issue|concern))?)(?:\s*:|\s+[-–—])\s+",
    re.IGNORECASE,
)
PREFIX_FIRST = frozenset("cChHmMlLnN")
INLINE = re.compile(r"[\s–—-]*\*\*(?:severity|priority)(?::\*\*|\*\*:)\s*", re.IGNORECASE)
DASHES = (" - ", " – ", " — ", " -- ")
GROUPS = {"(": ")", "[": "]"}
AFTER_NATIVE = (":", ".", ")", "]", " -", " –", " —", " (")
SEPARATORS = " \t:-–—*_.`)]"
ISSUE_LABELS = frozenset(["issue", "problem", "concern", "finding", "gap", "defect", "bug", "weakness"])
# What a reviewer ticks or crosses; ticked ones praise.
TICKS, CROSSES = "✅✓✔☑", "❌✗✘☒"
FIRST_SIGN = "\u2190"  # from here on: arrows, ticks, pictures
CHECKBOXES = {"[ ]": " ", "[x]": "x", "[X]": "x"}
FIRST = frozenset("#-*+_[0123456789~") | NATIVE_FIRST
PLAIN_FIRST = NATIVE_FIRST | {"["}
LETTERS = re.compile(r"[^\W\d_]")
COUNT = re.compile(r"\d+(?:/\d+)?(?: (?:issues?|findings?|total))?")
EMPTY = re.compile(
    r"\W*(?:none|n/a|nil|nothing"
    r"|no (?:\w+ ){0,4}(?:issues?|concerns?|problems?|findings?|gaps?|blockers?))\b"
    r"(?: (?:identified|found|noted|remaining|critical|at this time|to report|detected|observed)\b"
    r"|\W*$|[.,;:(*-])",
    re.IGNORECASE,
)
MAX_TITLE = 500
MAX_READ = 4 * MAX_TITLE  # letters of a line that are read as its title
MAX_END = 60  # letters of a title's end in which its severity may stand


class Start(NamedTuple):
    """A line that may begin a finding; whether it does depends on where it stands."""

    shape: Shape
    title: str = ""
    indent: int = 0
    level: int = 0  # of a heading
    numbered: bool = False  # by its list marker
    numbering: str = ""  # inside its heading or bold words
    bold: bool = False
    codes: tuple[str, ...] = ()
    native: str = ""
    words: tuple[str, ...] = ()  # its severities, as written beside it
    trailing: bool = False  # one of them stands at its end
    rest: str = ""  # what stands behind the bold words
    note: str = ""  # what stands in parentheses behind the id: NEW
    bracket: bool = False
    tag: str = ""
    tick: str = ""  # "x" or " "
    field: str = ""  # the part of a finding that the line begins instead
    labelled: bool = False  # **Issue:** text
    closed: bool = False  # bold words or an id with a colon or the like behind them
    struck: bool = False

    @property
    def coded(self) -> bool:
        return bool(self.codes or self.native)

    @property
    def whole(self) -> bool:
        """Whether the bold words are all of the line."""
        return self.bold and not self.rest

    @property
    def empty(self) -> bool:
        """Whether it says that there is none (§19.2), or only counts."""
        return (
            not LETTERS.search(self.title) or EMPTY.match(f"{self.title[:80]} {self.rest[:80]}") is not None
        )


def severity_in(words: str) -> Severity | None:
    """The severity of words beside a title: Medium, High Risk, Implementability Risk: MEDIUM."""
    plain = before_comment(words.strip(" *_`."))
    if severity := read_severity(plain):
        return severity
    before, colon, after = words.strip(" *_`.").partition(":")
    if colon and len(before) < 40:
        plain = before_comment(after)
    return read_severity(plain) or max(severities_of(plain), key=severity_rank, default=None)


def read_start(line: Line) -> Start | None:
    """What a line that states something is as the first line of a finding; None where it cannot be one."""
    text = line.text
    stripped = text.lstrip(" \t")
    first = stripped[:1]
    if first not in FIRST and first < FIRST_SIGN:
        return None
    if first == "#":
        if not (match := HEADING.match(text)):
            return None
        content = match["text"].strip().rstrip("#").rstrip()
        return _content(content, Start(Shape.HEADING, level=len(match["level"])))
    if (first in "-*+" or first.isdigit()) and (item := list_item(text)):
        return _content(item.text.strip(), Start(Shape.ITEM, indent=item.indent, numbered=item.numbered))
    if first not in PLAIN_FIRST and stripped[:2] not in ("**", "__") and first != "~" and first < FIRST_SIGN:
        return None
    indent = len(text[: len(text) - len(stripped)].expandtabs(4))
    return _content(stripped.rstrip(), Start(Shape.PLAIN, indent=indent))


def _content(text: str, start: Start) -> Start | None:
    """The start with what its line says behind list marker or heading marks."""
    shape, numbering, bold, rest = start.shape, "", False, ""
    if tick := CHECKBOXES.get(text[:3], ""):
        text = text[3:].lstrip()
    if text[:1] >= FIRST_SIGN:
        text, sign = _without_signs(text)
        tick = tick or sign
    if struck := text[:2] == "~~":
        text = text.replace("~~", "")
    if shape is Shape.HEADING and (match := NUMBERING.match(text)):
        numbering, text = match[0].strip(), text[match.end() :]
    if lead := bold_lead(text):
        bold, text, rest = True, lead[0].strip(), lead[1].strip()
        if text[:1] >= FIRST_SIGN:
            text, sign = _without_signs(text)
            tick = tick or sign
        if not numbering and (match := NUMBERING.match(text)):
            numbering, text = match[0].strip(), text[match.end() :]
        shape = Shape.BOLD if shape is Shape.PLAIN else shape
    elif shape is Shape.PLAIN and text[:1] not in PLAIN_FIRST:
        return None
    start = start._replace(shape=shape, numbering=numbering, bold=bold, tick=tick, struck=struck)
    bracket = text[:1] in ("[", "`")
    inner = text.lstrip("[`") if bracket else text
    if inner[:6] == "ISSUE-" and (match := CODES.match(inner)):
        start = start._replace(codes=tuple(codes_in(match["codes"])), bracket=bracket)
        return _coded(start, inner[match.end() :], rest)
    if native := native_code(inner):
        behind = inner[len(native) :].rstrip("*")
        if not behind or behind.startswith(AFTER_NATIVE) or (bracket and behind[0] in "]`"):
            return _coded(start._replace(native=native, bracket=bracket), inner[len(native) :], rest)
    if bracket and (match := TAG.match(text)):
        return _tagged(start, match, text, rest)
    return _anonymous(start, text.strip(), rest) if shape is not Shape.PLAIN else None


def _without_signs(text: str) -> tuple[str, str]:
    """A text without the signs before it (🔴, ⚠️, ✅), and the tick or cross among them."""
    found = ""
    for place, letter in enumerate(text):
        if letter in TICKS:
            found = "x"
        elif letter in CROSSES:
            found = " "
        elif letter != " " and (letter < FIRST_SIGN or letter.isalpha()):
            return text[place:], found
    return "", found


def _coded(start: Start, after: str, rest: str) -> Start:
    """A line that begins with an id; `after` follows it, inside the bold words if there are any."""
    words: list[str] = []
    notes: list[str] = []
    after = _take_groups(after.lstrip("]`*"), words, notes)
    closed = bool(start.bold or start.bracket or words or not after) or after[:1] in ":-–—"
    title = after.lstrip(SEPARATORS).rstrip(" *")
    if not title:
        title, rest = _take_groups(rest, words, notes).lstrip(SEPARATORS), ""
    title, trailing = _take_end(title[:MAX_READ], words)
    if title.startswith("**") and title.endswith("**"):
        title = title.strip("* ")
    if title[:1] in PREFIX_FIRST and (match := PREFIX.match(title)):
        words.append(match["word"])
        title = title[match.end() :]
    return start._replace(
        title=title.strip(),
        words=tuple(words),
        trailing=trailing,
        rest=rest,
        note=" ".join(notes),
        closed=closed,
    )


def _tagged(start: Start, tag: re.Match[str], head: str, rest: str) -> Start | None:
    """A line that begins with a tag (ARB-1)."""
    word = tag["word"]
    if not word.isupper() and start.shape in (Shape.PLAIN, Shape.BOLD):
        return None
    title = f"{head[tag.end() :]} {rest}".strip().lstrip(":*").strip().strip("*").strip()
    codes: tuple[str, ...] = ()
    if match := CODES.match(title.lstrip("*`[")):
        codes = tuple(codes_in(match["codes"]))
        title = title.lstrip("*`[")[match.end() :].lstrip(SEPARATORS)
    shape = Shape.TAG if start.shape is not Shape.HEADING else start.shape
    return start._replace(shape=shape, title=title[:MAX_READ], codes=codes, words=(word,), tag=word)


def _anonymous(start: Start, head: str, rest: str) -> Start:
    """A line without an id."""
    words: list[str] = []
    closed = head.endswith(":") or rest.startswith(":")
    field, labelled, trailing = "", False, False
    if start.bold:
        label = head.rstrip(": *")
        labelled = bool(rest) and label.lower() in ISSUE_LABELS
        if not labelled and (closed or not rest):
            field = field_name(label)
        head = label
    elif not start.numbered and start.shape is Shape.ITEM and (named := field_of(head)):
        field = named.name
    title = (rest.lstrip(" :") if labelled else head)[:MAX_READ]
    rest = "" if labelled else rest
    title, trailing = _take_end(title, words)
    if not labelled:
        if title[:1] in PREFIX_FIRST and (match := PREFIX.match(title)):
            words.append(match["word"])
            title = title[match.end() :]
        elif rest and len(title) < 40 and severities_of(title) and not OBSERVING & set(title.lower().split()):
            words.append(title)  # **Minor:** text
            title, rest = rest.lstrip(" :-–—")[:MAX_READ], ""
        elif rest:
            rest = _take_groups(rest, words, []).strip()
            if rest and not trailing:
                rest, trailing = _take_end(rest[:MAX_READ], words)
    return start._replace(
        title=title.strip(" *"), words=tuple(words), trailing=trailing, rest=rest, field=field,
        labelled=labelled, closed=closed,
    )  # fmt: skip


def _take_groups(text: str, words: list[str], notes: list[str]) -> str:
    """A text without the parentheses and brackets at its beginning; those with a severity go to `words`."""
    for _ in range(3):
        plain = text.lstrip(" *:")
        close = GROUPS.get(plain[:1])
        end = plain.find(close, 1, MAX_END) if close else -1
        if end < 0 or plain[end + 1 : end + 2] == "(":
            break
        inner = plain[1:end]
        if severity_in(inner):
            words.append(inner)
        elif inner.isupper() or len(inner) <= 20:
            notes.append(inner)
        else:
            break
        text = plain[end + 1 :]
    return text


def _take_end(title: str, words: list[str]) -> tuple[str, bool]:
    """A title without the severity at its end, and whether there was one."""
    if "**" in title and ("everity" in title or "riority" in title):
        parts = INLINE.split(title, maxsplit=1)
        if len(parts) == 2 and severity_in(parts[1]):
            words.append(parts[1].strip(" *"))
            return parts[0].rstrip(" -–—"), True
    end = title[-MAX_END:]
    if title[-1:] in (")", "]", "*", "`", "."):
        plain = title.rstrip(" *`.")
        for opening, closing in GROUPS.items():
            start = plain.rfind(opening, max(len(plain) - MAX_END, 0)) if plain.endswith(closing) else -1
            if start >= 0 and severity_in(plain[start + 1 : -1]):
                words.append(plain[start + 1 : -1])
                return plain[:start].rstrip(" *:-–—"), True
    if " - " in end or "–" in end or "—" in end or " -- " in end:
        for dash in DASHES:
            before, found, after = title.rpartition(dash)
            after = after.strip(" *`.")
            if found and after[:1].isupper() and len(after) <= 24 and severity_in(after):
                words.append(after)
                return before.rstrip(" *"), True
    return title, False

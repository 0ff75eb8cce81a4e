"""The first line of a finding, in every shape (FND-1): what it is, and what it says of itself."""

import re
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from disputes.protocol.reviews.fields import FIELDS, LINE_OF_FILE, field_label, field_name
from disputes.protocol.reviews.headings import NUMBERING, OBSERVING, severities_of
from disputes.protocol.reviews.inline_severities import (
    MAX_READ,
    take_bars,
    take_end,
    take_groups,
    take_prefix,
)
from disputes.protocol.text.documents import HEADING, ITEM, SMALL_INDENT, Line, bold_lead
from disputes.protocol.text.identifiers import (  # fmt: skip
    CODE,
    LIKE_AN_ID,
    MORE_CODES,
    NATIVE_FIRST,
    code_mentions,
    native_code,
    own_code,
)


class Shape(StrEnum):
    """What carries a finding."""

    HEADING = "heading"
    BOLD = "bold-para"
    ITEM = "item"
    PLAIN = "plain"
    TAG = "tag"


CODES = re.compile(rf"(?P<codes>{CODE}{MORE_CODES})")
ONE_CODE = re.compile(CODE)
# ARB-1: tags in capitals. Title-case ones count where a list or a heading carries them.
TAG = re.compile(
    r"\[(?P<word>MUST|SHOULD|CRITICAL|HIGH|MEDIUM|LOW|MAJOR|MODERATE|MINOR|NITS?|Must|Should|Critical|High"
    r"|Medium|Low|Major|Moderate|Minor|Nit)\](?!\()"
)
# "issue (blocking): …", "nitpick: …": comments on code that say by a word what they are.
COMMENT = re.compile(
    r"(?:(?:issue|suggestion|todo|chore|polish|typo)\s?\((?P<word>blocking|non-blocking)[^()]{0,40}\)|(?P<nit>nit(?:pick)?)"
    r"(?:\s?\([^()]{0,40}\))?):\s+"
)
# What a linter calls its results, where a place stands behind it.
LEVELS = {"error": "high", "warning": "medium", "note": "low", "info": "low"}
COMMENT_FIRST = frozenset("istcpn")
AFTER_NATIVE = (":", ".", ")", "]", " -", " –", " —", " (")
SEPARATORS = " \t:-–—*_.)]"
ISSUE_LABELS = frozenset(["issue", "problem", "concern", "finding", "gap", "defect", "bug", "weakness"])
# What a reviewer ticks or crosses; ticked ones praise.
TICKS, CROSSES = "✅✓✔☑", "❌✗✘☒"
FIRST_SIGN = "\u2190"  # from here on: arrows, ticks, pictures
CHECKBOXES = {"[ ]": " ", "[x]": "x", "[X]": "x"}
FIRST = frozenset("#-*+_[0123456789~ABCDEFGHIJKLMNOPQRSTUVWXYZ") | NATIVE_FIRST | COMMENT_FIRST
CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LIST_FIRST = frozenset("-*+0123456789")
BULLETS = frozenset("-*+")
ITEM_FIRST = frozenset("*_[`~")
BOLD_MARKS = frozenset(["**", "__"])
LETTERS = re.compile(r"[^\W\d_]")
COUNT = re.compile(r"\d+(?:/\d+)?(?: (?:issues?|findings?|total))?")
EMPTY = re.compile(
    r"\W*(?:none|n/a|nil|nothing"
    r"|no (?:\w+ ){0,4}(?:issues?|concerns?|problems?|findings?|gaps?|blockers?))\b"
    r"(?: (?:identified|found|noted|remaining|critical|at this time|to report|detected|observed)\b"
    r"|\W*$|[.,;:(*-])",
    re.IGNORECASE,
)
MAX_CODES = 100


# A part of a finding as most are written, which says nothing else, whatever stands behind it: **Impact:** …
BOLD_FIELD = re.compile(r"\*\*(?P<label>[A-Za-z ]+):\*\*")
BOLD_FIELDS = {
    label: name for label, name in FIELDS.items() if label not in ISSUE_LABELS and label not in LEVELS
}


class Start(NamedTuple):
    """A line that may begin a finding; whether it does depends on where it stands.

    Every third line is one, and Python takes twice as long to call it by the names of its fields. So they
    are given by their places: first what carries the words, then the words, then the id.
    """

    # What carries its words
    shape: Shape
    indent: int = 0
    level: int = 0  # of a heading
    numbered: bool = False  # by its list marker
    numbering: str = ""  # inside its heading or bold words
    bold: bool = False
    tick: str = ""  # "x" or " "
    struck: bool = False
    # What it says
    title: str = ""
    words: tuple[str, ...] = ()  # its severities, as written beside it
    trailing: bool = False  # one of them stands at its end
    rest: str = ""  # what stands behind the bold words
    closed: bool = False  # bold words or an id with a colon or the like behind them
    field: str = ""  # the part of a finding that the line begins instead
    labelled: bool = False  # **Issue:** text
    tag: str = ""
    # How it names the finding
    coded: bool = False  # by an id: by codes or a native one
    codes: tuple[str, ...] = ()
    native: str = ""
    own: bool = False  # the native id is of the reviewer's making, and may be none: SEC-01, F1
    note: str = ""  # what stands in parentheses behind the id: NEW
    bracket: bool = False

    @property
    def whole(self) -> bool:
        """Whether the bold words are all of the line."""
        return self.bold and not self.rest

    @property
    def empty(self) -> bool:
        """Whether it says that there is none (FND-3), or only counts."""
        if not self.title[:1].isalpha() and not LETTERS.search(self.title):
            return True
        return EMPTY.match(f"{self.title[:80]} {self.rest[:80]}") is not None


class _Carrier(NamedTuple):
    """What carries the words of a line: the first fields of its Start."""

    shape: Shape
    indent: int = 0
    level: int = 0
    numbered: bool = False
    numbering: str = ""
    bold: bool = False
    tick: str = ""
    struck: bool = False


def read_start(line: Line) -> Start | None:
    """What a line is as the first line of a finding (FND-1, ARB-1); None where it cannot be one."""
    text = line.text
    stripped = text.lstrip(" \t")
    first = stripped[:1]
    if first not in FIRST and first < FIRST_SIGN:
        return None
    if first == "#":
        if not (match := HEADING.match(text)):
            return None
        marks, content = match.groups()
        return _content(content.strip().rstrip("#").rstrip(), Shape.HEADING, level=len(marks))
    indent = len(text) - len(stripped)
    if indent and "\t" in text[:indent]:
        indent = len(text[:indent].expandtabs(SMALL_INDENT))
    is_bold = stripped[:2] in BOLD_MARKS
    if first in LIST_FIRST and not is_bold and (marker := ITEM.match(stripped)):
        content = stripped[marker.end() :].strip()
        numbered = first not in BULLETS
        sign = content[:1]
        if sign in COMMENT_FIRST and (match := COMMENT.match(content)):
            return _comment(match, content, indent)
        if sign == "*" and (start := _bold_field(content, Shape.ITEM, indent, numbered)):
            return start
        if sign in ITEM_FIRST or sign >= FIRST_SIGN or _leads_with_id(content):
            return _content(content, Shape.ITEM, indent, numbered=numbered)
        return _plain_item(content, indent, numbered)
    if first in COMMENT_FIRST and (match := COMMENT.match(stripped)):
        return _comment(match, stripped)
    if first in NATIVE_FIRST or first in CAPITALS or first in COMMENT_FIRST:
        if not _leads_with_id(stripped):
            return None
    elif first not in "[~" and not is_bold and first < FIRST_SIGN:
        return None
    if is_bold and (start := _bold_field(stripped, Shape.BOLD, indent, numbered=False)):
        return start
    return _content(stripped.rstrip(), Shape.PLAIN, indent)


def _leads_with_id(text: str) -> bool:
    """Whether a text begins with an id; behind one of the reviewer's making stands a mark that ends it."""
    if not LIKE_AN_ID.match(text):
        return False
    if text.startswith("ISSUE-") or native_code(text):
        return True
    own = own_code(text)
    return bool(own) and text[len(own) :].lstrip("*_`").startswith(AFTER_NATIVE)


def _plain_item(text: str, indent: int, numbered: bool) -> Start:
    """A list item without an id, a tag or anything in bold: most of them, so it comes first."""
    closed = text.endswith(":")
    if not numbered and (field := field_label(text)):
        return Start(
            Shape.ITEM, indent, 0, False, "", False, "", False, text[:MAX_READ], (), False, "", closed, field
        )
    words: list[str] = []
    title, trailing = take_end(text[:MAX_READ], words)
    title = take_prefix(title, words)
    return Start(
        Shape.ITEM, indent, 0, numbered, "", False, "", False,
        title.strip(" *"), tuple(words), trailing, "", closed,
    )  # fmt: skip


def _bold_field(text: str, shape: Shape, indent: int, numbered: bool) -> Start | None:
    """A line that only begins a part of a finding, with its label in bold; None for all others."""
    if not (match := BOLD_FIELD.match(text)):
        return None
    label = match["label"]
    if not (field := BOLD_FIELDS.get(label.lower())):
        return None
    rest = text[match.end() :].lstrip("*").strip()
    return Start(shape, indent, 0, numbered, "", True, "", False, label, (), False, rest, True, field)


def _content(
    text: str, shape: Shape, indent: int = 0, level: int = 0, *, numbered: bool = False
) -> Start | None:
    """What a line says behind list marker or heading marks."""
    numbering, bold, rest = "", False, ""
    if tick := CHECKBOXES.get(text[:3], ""):
        text = text[3:].lstrip()
    if text[:1] >= FIRST_SIGN:
        text, sign = _without_signs(text)
        tick = tick or sign
    if struck := text[:2] == "~~":
        text = text.replace("~~", "")
    if level and (match := NUMBERING.match(text)):
        numbering, text = match[0].strip(), text[match.end() :]
    if lead := bold_lead(text):
        bold, text, rest = True, lead[0].strip(), lead[1].strip()
        if text[:1] in COMMENT_FIRST and (match := COMMENT.match(f"{text.rstrip(':')}: ")):
            return _comment(match, f"{match[0]}{rest.lstrip(': ')}", indent)
        if text[:1] >= FIRST_SIGN:
            text, sign = _without_signs(text)
            tick = tick or sign
        if not numbering and (match := NUMBERING.match(text)):
            numbering, text = match[0].strip(), text[match.end() :]
        shape = Shape.BOLD if shape is Shape.PLAIN else shape
    carrier = _Carrier(shape, indent, level, numbered, numbering, bold, tick, struck)
    bracket = text[:1] in ("[", "`")
    # In italics, too: *N-1*
    inner = text.lstrip("[`") if bracket else text.lstrip("*_")
    if LIKE_AN_ID.match(inner) and (start := _led_by_id(carrier, inner, rest, bracket=bracket)):
        return start
    if bracket and (match := TAG.match(text)):
        return _tagged(carrier, match, text, rest)
    return _anonymous(carrier, text.strip(), rest) if shape is not Shape.PLAIN else None


def _led_by_id(carrier: _Carrier, text: str, rest: str, *, bracket: bool) -> Start | None:
    """A line whose words begin with an id; None where that is none after all."""
    if text[:6] == "ISSUE-" and (match := CODES.match(text)):
        return _coded(carrier, text[match.end() :], rest, codes=_codes(match["codes"]), bracket=bracket)
    if native := native_code(text):
        behind = text[len(native) :].rstrip("*")
        if not behind or behind.startswith(AFTER_NATIVE) or (bracket and behind[0] in "]`"):
            return _coded(carrier, text[len(native) :], rest, native=native, bracket=bracket)
    if native := own_code(text):
        after = text[len(native) :]
        behind = after.lstrip("*_`")
        if (
            (carrier.bold and not behind)
            or behind.startswith(AFTER_NATIVE)
            or (bracket and after[:1] in "]`")
        ):
            return _coded(carrier, after.lstrip("_"), rest, native=native, bracket=bracket, own=True)
    return None


def _codes(text: str) -> tuple[str, ...]:
    """The codes that a line names at its beginning; more than a hundred are no list that anybody wrote."""
    if ONE_CODE.fullmatch(text):
        return (text,)
    return tuple(mention.code for mention in islice(code_mentions(text), MAX_CODES))


def _without_signs(text: str) -> tuple[str, str]:
    """A text without the signs before it (🔴, ⚠️, ✅), and the tick or cross among them."""
    found = ""
    for place, letter in enumerate(text):
        if letter in TICKS:
            found = "x"
        elif letter in CROSSES:
            found = " "
        elif letter != " " and (letter < FIRST_SIGN or letter.isalpha() or letter.isdecimal()):
            return text[place:], found
    return "", found


def _coded(
    carrier: _Carrier,
    after: str,
    rest: str,
    *,
    codes: tuple[str, ...] = (),
    native: str = "",
    bracket: bool,
    own: bool = False,
) -> Start:
    """A line that begins with an id; `after` follows it, inside the bold words if there are any."""
    words: list[str] = []
    notes: list[str] = []
    after = take_groups(after.lstrip("]`*"), words, notes)
    after = take_bars(after, words)
    closed = bool(carrier.bold or bracket or words or not after) or after[:1] in ":-–—"
    closed = closed or (own and after.lstrip()[:1] in "-–—")
    title = after.lstrip(SEPARATORS).rstrip(" *")
    if not title:
        title, rest = take_groups(rest, words, notes).lstrip(SEPARATORS), ""
    title, trailing = take_end(title[:MAX_READ], words)
    if title.startswith("**") and title.endswith("**"):
        title = title.strip("* ")
    title = take_prefix(title, words)
    return Start(
        *carrier, title.strip(), tuple(words), trailing, rest, closed, "", False, "",
        bool(codes or native), codes, native, own, " ".join(notes), bracket,
    )  # fmt: skip


def _tagged(carrier: _Carrier, tag: re.Match[str], head: str, rest: str) -> Start | None:
    """A line that begins with a tag (ARB-1)."""
    word = tag["word"]
    if not word.isupper() and carrier.shape in (Shape.PLAIN, Shape.BOLD):
        return None
    title = f"{head[tag.end() :]} {rest}".strip().lstrip(":*").strip().strip("*").strip()
    codes: tuple[str, ...] = ()
    if match := CODES.match(title.lstrip("*`[")):
        codes = _codes(match["codes"])
        title = title.lstrip("*`[")[match.end() :].lstrip(SEPARATORS)
    shape = Shape.TAG if carrier.shape is not Shape.HEADING else carrier.shape
    return Start(
        *carrier._replace(shape=shape), title[:MAX_READ], (word,), tag=word, coded=bool(codes), codes=codes
    )


def _comment(match: re.Match[str], text: str, indent: int = 0) -> Start:
    """A comment on code that begins with a word for what it is."""
    word = {"blocking": "high", "non-blocking": "low"}.get(match["word"] or "", "nit")
    return Start(Shape.TAG, indent, title=text[match.end() :][:MAX_READ], words=(word,), tag=word)


def _anonymous(carrier: _Carrier, head: str, rest: str) -> Start:
    """A line without an id, in bold or a heading."""
    words: list[str] = []
    closed = head.endswith(":") or rest.startswith(":")
    field, labelled = "", False
    if carrier.bold:
        head = head.rstrip(": *")
        plain = head.lower()
        if (level := LEVELS.get(plain)) and LINE_OF_FILE.search(rest[:MAX_READ]):
            return Start(*carrier, rest[:MAX_READ], words=(level,), closed=closed)
        labelled = bool(rest) and plain in ISSUE_LABELS
        if not labelled and (closed or not rest):
            field = field_name(head)
        if field and carrier.shape is not Shape.HEADING:
            return Start(*carrier, head, (), False, rest, closed, field)
    title = (rest.lstrip(" :") if labelled else head)[:MAX_READ]
    rest = "" if labelled else rest
    title, trailing = take_end(title, words)
    if not labelled:
        before = title
        title = take_prefix(title, words)
        if title != before or not rest:
            pass
        elif len(title) < 40 and severities_of(title) and not OBSERVING & set(title.lower().split()):
            words.append(title)  # **Minor:** text
            title, rest = rest.lstrip(" :-–—")[:MAX_READ], ""
        else:
            rest = take_groups(rest, words, []).strip()
            if rest and not trailing:
                rest, trailing = take_end(rest[:MAX_READ], words)
    return Start(*carrier, title.strip(" *"), tuple(words), trailing, rest, closed, field, labelled)

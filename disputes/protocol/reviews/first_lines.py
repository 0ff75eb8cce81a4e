"""Reading the first line of a finding in every notation: its kind of line, and what it says (FND-1)."""

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from disputes.protocol.reviews.fields import FIELDS, LINE_NUMBER, LINE_OF_FILE, field_label, field_name
from disputes.protocol.reviews.headings import FIRST_SIGN, NUMBERING, OBSERVING, severities_of
from disputes.protocol.reviews.inline_severities import (
    MAX_READ,
    severity_in,
    take_bars,
    take_end,
    take_groups,
    take_prefix,
)
from disputes.protocol.reviews.severity import read_severity
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
from tasks.text.regex import regex


class Shape(StrEnum):
    """The kind of line that a finding begins with."""

    HEADING = "heading"
    BOLD = "bold-para"
    ITEM = "item"
    PLAIN = "plain"
    TAG = "tag"
    RECORD = "record"  # labelled lines without a title


CODES = regex(rf"(?P<codes>{CODE}{MORE_CODES})")
ONE_CODE = regex(CODE)
# ARB-1: severities and priorities in capitals. Those in title case count only in a list or a heading.
TAG = regex(
    r"\[(?P<word>[A-Z][A-Z0-9-]{1,15}|Must|Should|Critical|High|Medium|Low|Major|Moderate|Minor|Nit)\](?!\()"
)
# Several tags in a row, of which one states a severity: "[security][high] text".
TAGS = regex(r"(?:\[[A-Za-z0-9 _/-]{1,30}\]){2,4}(?!\()")
# Comments on code that begin with a word for their kind: "issue (blocking): …", "nitpick: …".
COMMENT = regex(
    r"(?P<kind>issue|problem|suggestion|todo|chore|polish|typo|nit(?:pick)?|(?:non-)?blocking|blocker)\s?(?:\((?P<said>[^()]{1,60})\))?:\s+"
)
# Kinds that are also the label of a part of a finding, unless something in parentheses follows.
LABELS_TOO = frozenset(["issue", "problem", "suggestion", "todo", "chore", "polish", "typo"])
# Kinds that say nothing about how severe a comment is.
OF_ANY_SEVERITY = frozenset(["issue", "problem"])
BLOCKS = {"blocking": "high", "non-blocking": "low"}
# A paragraph that begins with its severity in capitals: "HIGH (security): text", "MINOR: text".
LOUD = regex(
    r"(?P<word>CRITICAL|BLOCKER|BLOCKING|HIGH|MAJOR|MEDIUM|MODERATE|LOW|MINOR|NIT|OPTIONAL|P[0-4])\b"
    r"(?:\s?\((?P<more>[^()]{1,40})\))?\s?(?::|[-–—](?=\s))\s+(?=\S)"
)
# The same in title case: words that only reviewers use, and others if one of such lines names a place.
LOUD_WORD = regex(r"(?P<word>Blocking|Blocker|Non-blocking|Nit(?:pick)?)(?P<more>)\s?:\s+(?=\S)")
WORDS_OF_ALL = ("Critical", "High", "Major", "Medium", "Moderate", "Low", "Minor")
LOUD_OF_PLACE = regex(rf"(?P<word>{'|'.join(WORDS_OF_ALL)})(?P<more>)\s?(?::|[-–—](?=\s))\s+(?=\S)")
# A record whose fields are below it: "Finding F-01" alone on its line.
RECORD = regex(
    r"(?:Finding|Issue|Defect|Problem|Concern)[ \t]+#?(?P<id>[A-Z]{1,8}-?\d{1,4}|\d{1,3})[ \t]*"
    r"(?:[(\[](?P<said>[^()\[\]]{1,40})[)\]][ \t]*)?:?[ \t]*"
)
# A tag in small letters, in any language, which counts only in a list: "[minor] text".
BRACKETED = regex(r"\[(?P<word>[a-z]{3,12})\](?!\()[\s:–—-]*(?=\S)")
# A finding that begins with its place: "l. 15: (HIGH) text".
PLACED = regex(
    r"(?=[^:]{0,59}[\d./`])[^:()\[\]]{1,60}:\s+[(\[](?P<word>CRITICAL|BLOCKER|HIGH|MAJOR|MEDIUM|MODERATE|LOW|MINOR|NIT)[)\]]\s+(?=\S)"
)
# A finding that begins with a file and its severity: "`io.rs:14` - **high** - text", "io.go:14: [high] text".
# Without marks it is a checker's word: "io.go:14: warning: text".
OF_FILE = regex(
    r"`?[\w./+-]{0,200}[\w+-]\.\w{1,8}:\d{1,7}(?:[-–:]\d{1,7})?`?[ \t]*(?:[-–—:|][ \t]*){0,2}"
    r"(?:(?:\*\*|[(\[*_])(?P<word>[A-Za-z0-9-]{2,16})(?:\*\*|[)\]*_])[ \t]*(?:[-–—:|][ \t]*){0,2}"
    r"|(?P<level>[Ee]rror|[Ww]arning):[ \t]+)(?=\S)"
)
# A severity among the words before the colon: "Second (also high in my book): text".
SPOKEN = regex(r"[^:()]{2,80}\((?P<words>[^()]{3,40})\):\s+(?=\S)")
SPOKEN_WORDS = frozenset(["critical", "high", "medium", "low", "major", "minor", "nit"])
# An item that begins with other marks than those of a list: (1) text, #1 text, a) text, 1/ text.
COUNTED = regex(r"(?:\(?[a-h]\)|\(\d{1,2}\)|#\d{1,3}[.:)]?|\d{1,2}/)[ \t]+(?=\S)")
# What is shown of a part that folds.
SUMMARY = regex(
    r"(?:<details(?: open)?>\s*)?<summary>(?:<(?:b|strong)>)?(?P<text>[^<>]{1,300})"
    r"(?:</(?:b|strong)>)?</summary>(?:<blockquote>)?\s*$"
)
# The badge of a priority in bold before a title: **![P1 Badge](https://…) Title**
BADGED = regex(
    r"\*\*(?:<sub>){0,2}!\[(?P<word>[^\[\]]{1,40}?)(?: badge)?\]\([^()\s]{1,300}\)(?:</sub>){0,2}"
    r"[ \t]*(?P<title>[^*\s][^*]{0,400})\*\*\s*$",
    re.IGNORECASE,
)
# Coloured signs before a title; a green one may be praise and does not count.
CIRCLES = {"🔴": "critical", "🟠": "high", "🟡": "medium", "⚪": "low", "🔵": "low"}
# A linter's words for its results, which count if a place follows.
LEVELS = {"error": "high", "warning": "medium", "note": "low", "info": "low"}
COMMENT_FIRST = frozenset("bistcpn")
COUNTED_FIRST = frozenset("(#abcdefgh0123456789")
AFTER_NATIVE = (":", ".", ")", "]", " -", " –", " —", " (", " [", " |")
SEPARATORS = " \t:-–—*_.)]"
ISSUE_LABELS = frozenset(["issue", "problem", "concern", "finding", "gap", "defect", "bug", "weakness"])
# The signs that reviewers use; a tick is praise.
TICKS, CROSSES = "✅✓✔☑", "❌✗✘☒"
CHECKBOXES = {"[ ]": " ", "[x]": "x", "[X]": "x"}
FIRST = (
    frozenset("#-*+_[0123456789~ABCDEFGHIJKLMNOPQRSTUVWXYZ") | NATIVE_FIRST | COMMENT_FIRST | COUNTED_FIRST
)
CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
ID_FIRST = NATIVE_FIRST | CAPITALS | COMMENT_FIRST
LIST_FIRST = frozenset("-*+0123456789")
BULLETS = frozenset("-*+")
ITEM_FIRST = frozenset("*_[`~")
BOLD_MARKS = frozenset(["**", "__"])
LETTERS = regex(r"[^\W\d_]")
COUNT = regex(r"\d+(?:/\d+)?(?: (?:issues?|findings?|total))?")
EMPTY = regex(
    r"\W*(?:none|n/a|nil|nothing"
    r"|no (?:\w+ ){0,4}(?:issues?|concerns?|problems?|findings?|gaps?|blockers?))\b"
    r"(?: (?:identified|found|noted|remaining|critical|at this time|to report|detected|observed)\b"
    r"|\W*$|[.,;:(*-])",
    re.IGNORECASE,
)
MAX_CODES = 100
MAX_PLACE = 240  # characters at the beginning of a line in which the place may be


# The usual way to begin a part of a finding, whatever text follows: **Impact:** …
BOLD_FIELD = regex(r"\*\*(?P<label>[A-Za-z ]+):\*\*")
BOLD_FIELDS = {
    label: name for label, name in FIELDS.items() if label not in ISSUE_LABELS and label not in LEVELS
}


@dataclass(slots=True)
class Start:
    """A line that may begin a finding; whether it does depends on what surrounds it.

    The readers below fill it in step by step; nothing changes it after that.
    """

    # The kind of line
    shape: Shape
    indent: int = 0
    level: int = 0  # the level of a heading
    numbered: bool = False  # whether its list marker is a number
    numbering: str = ""  # the number inside its heading or bold words
    bold: bool = False
    tick: str = ""  # "x" or " "
    struck: bool = False
    # What the line says
    title: str = ""
    words: tuple[str, ...] = ()  # the severities, as written
    trailing: bool = False  # whether one of them is at the end of the line
    leading: bool = False  # whether one of them, or a sign for one, is at the beginning
    rest: str = ""  # the text after the bold words
    prose: bool = False  # whether it begins a paragraph in sentences
    loose: bool = False  # whether such a paragraph counts only below a request
    closed: bool = False  # whether a colon or a similar mark follows the bold words or the id
    field: str = ""  # the part of a finding that the line begins instead of a finding
    labelled: bool = False  # **Issue:** text
    tag: str = ""
    # How the line names the finding
    coded: bool = False  # whether it has an id: codes or a native one
    codes: tuple[str, ...] = ()
    native: str = ""
    own: bool = False  # whether the native id is the reviewer's own and may be no id at all: SEC-01, F1
    note: str = ""  # what is in parentheses after the id: NEW
    bracket: bool = False

    @property
    def all_codes(self) -> tuple[str, ...]:
        """The codes that the line names, or else its native id."""
        return self.codes or ((self.native.upper(),) if self.native else ())

    @property
    def whole(self) -> bool:
        """Whether the bold words are the whole line."""
        return self.bold and not self.rest

    @property
    def empty(self) -> bool:
        """Whether the line says that there is nothing to raise (FND-3), or has no letters in its title."""
        if not self.title[:1].isalpha() and not LETTERS.search(self.title):
            return True
        return EMPTY.match(f"{self.title[:80]} {self.rest[:80]}") is not None


def read_start(line: Line) -> Start | None:
    """Read the line as the first line of a finding (FND-1, ARB-1); None if it cannot be one."""
    text = line.text
    stripped = text.lstrip(" \t")
    first = stripped[:1]
    if first == "<" and (folded := SUMMARY.match(stripped)):
        return _paragraph(f"**{folded['text']}**", 0, is_bold=True)
    if first not in LIST_FIRST and (of_file := _of_file(stripped, len(text) - len(stripped))):
        return of_file
    if first not in FIRST and first < FIRST_SIGN:
        return None
    if first == "#" and (heading := _heading(text)):
        return heading
    indent = len(text) - len(stripped)
    if indent and "\t" in text[:indent]:
        indent = len(text[:indent].expandtabs(SMALL_INDENT))
    is_bold = stripped[:2] in BOLD_MARKS
    if first in LIST_FIRST and not is_bold and (marker := ITEM.match(stripped)):
        return _item(stripped[marker.end() :].strip(), indent, numbered=first not in BULLETS)
    return _paragraph(stripped, indent, is_bold=is_bold)


# --- Kinds of lines ---------------------------------------------------------------------------------------


def _heading(text: str) -> Start | None:
    if not (match := HEADING.match(text)):
        return None
    marks, content = match.groups()
    return _content(content.strip().rstrip("#").rstrip(), Start(Shape.HEADING, level=len(marks)))


def _item(text: str, indent: int, *, numbered: bool) -> Start | None:
    first = text[:1]
    if match := _kind_of_comment(text):
        return _comment(match, text, indent)
    if of_file := _of_file(text, indent):
        return of_file
    start = Start(Shape.ITEM, indent=indent, numbered=numbered)
    if first == "*" and (field := _bold_field(text, start)):
        return field
    if first in ITEM_FIRST or first >= FIRST_SIGN or _leads_with_id(text):
        return _content(text, start)
    return _plain_item(text, start)


def _paragraph(text: str, indent: int, *, is_bold: bool) -> Start | None:
    first = text[:1]
    if match := _kind_of_comment(text):
        return _comment(match, text)
    if first in COUNTED_FIRST and (match := COUNTED.match(text)):
        return _item(text[match.end() :].strip(), indent, numbered=True)
    if first in "FIDPC" and (match := RECORD.fullmatch(text)):
        return _record(match, text, indent)
    if first in CAPITALS and (match := _severe_first(text)):
        return _loud(match, text, indent)
    if first in ID_FIRST:
        if not _leads_with_id(text):
            return None
    elif first not in "[~" and not is_bold and first < FIRST_SIGN:
        return None
    if is_bold and (start := _badged(text, indent) or _bold_field(text, Start(Shape.BOLD, indent=indent))):
        return start
    return _content(text.rstrip(), Start(Shape.PLAIN, indent=indent))


def _record(match: re.Match[str], text: str, indent: int) -> Start:
    """Read a line that names a finding and nothing else, except for its severity in parentheses."""
    words = (match["said"],) if match["said"] and severity_in(match["said"]) else ()
    return Start(
        Shape.PLAIN, indent, title=text.strip(" :"), words=words, coded=True, native=match["id"], own=True,
        closed=True,
    )  # fmt: skip


def _of_file(text: str, indent: int) -> Start | None:
    """Read a line that begins with a place in a file and a severity; return None for any other line."""
    if not LINE_NUMBER.search(text[:MAX_PLACE]) or not (match := OF_FILE.match(text)):
        return None
    word = match["word"] or LEVELS[match["level"].lower()]
    if not severity_in(word):
        return None
    title = text[match.end() :][:MAX_READ]
    return Start(Shape.TAG, indent, title=title, words=(word,), tag=word, rest=match[0])


def _kind_of_comment(text: str) -> re.Match[str] | None:
    """Match the word for its kind at the beginning of a comment on code."""
    match = COMMENT.match(text) if text[:1] in COMMENT_FIRST else None
    return match if match and (match["said"] or match["kind"] not in LABELS_TOO) else None


def _leads_with_id(text: str) -> bool:
    """Whether a text begins with an id; a reviewer's own id must be followed by a mark."""
    if not LIKE_AN_ID.match(text):
        return False
    if text.startswith("ISSUE-") or native_code(text):
        return True
    own = own_code(text)
    return bool(own) and text[len(own) :].lstrip("*_`").startswith(AFTER_NATIVE)


def _plain_item(text: str, start: Start) -> Start:
    """Read a list item without an id, a tag or anything in bold, which most items are."""
    start.closed = text.endswith(":")
    if not start.numbered and (field := field_label(text)):
        start.title, start.field = text[:MAX_READ], field
        return start
    words: list[str] = []
    if match := PLACED.match(text):
        start.title, start.words, start.leading = text[:MAX_READ], (match["word"],), True
        return start
    title, start.trailing = take_end(text[:MAX_READ], words)
    plain = take_prefix(title, words)
    start.leading = plain != title and start.indent > 0  # at the margin it may be a definition of the word
    if not (words or start.numbered) and (spoken := _spoken(text)):
        words.append(spoken)
    start.title = plain.strip(" *")
    start.words = tuple(words)
    return start


def _spoken(text: str) -> str:
    """Return the one severity named in passing before a colon; empty if there is none or more than one."""
    if "):" not in text[:MAX_READ] or not (match := SPOKEN.match(text)):
        return ""
    said = {*match["words"].lower().replace("!", " ").split()} & SPOKEN_WORDS
    return said.pop() if len(said) == 1 and "not" not in match["words"].lower() else ""


def _badged(text: str, indent: int) -> Start | None:
    """Read a title in bold behind the badge of its priority."""
    match = BADGED.match(text) if "![" in text[:16] else None
    if not match or not severity_in(match["word"]):
        return None
    return Start(Shape.TAG, indent, title=match["title"], words=(match["word"],), tag=match["word"])


def _bold_field(text: str, start: Start) -> Start | None:
    """Read a line that begins a part of a finding with a label in bold; return None for any other line."""
    if not (match := BOLD_FIELD.match(text)):
        return None
    label = match["label"]
    if not (field := BOLD_FIELDS.get(label.lower())):
        return None
    start.bold = start.closed = True
    start.title, start.field = label, field
    start.rest = text[match.end() :].lstrip("*").strip()
    return start


def _content(text: str, start: Start) -> Start | None:
    """Read what a line says after its list marker or heading marks."""
    if tick := CHECKBOXES.get(text[:3], ""):
        text = text[3:].lstrip()
    circle = CIRCLES.get(text[:1], "")
    text, sign = without_signs(text)
    start.tick = tick or sign
    if text[:2] == "~~":
        start.struck, text = True, text.replace("~~", "")
    if start.level:
        start.numbering, text = _without_numbering(text)
    if start.shape is Shape.PLAIN and text[:1] in CAPITALS and (match := _severe_first(text)):
        return _loud(match, text, start.indent)
    if lead := bold_lead(text):
        found = _bold(lead[0].strip(), lead[1].strip(), start)
    else:
        found = _notation(start, text, "")
    if circle and found and not (found.words or found.level or found.field):
        found.words, found.leading = (circle,), True
    return found


def _bold(text: str, rest: str, start: Start) -> Start | None:
    """Read what a line says that begins with these bold words."""
    if match := _kind_of_comment(f"{text.rstrip(':')}: "):
        return _comment(match, f"{match[0]}{rest.lstrip(': ')}", start.indent)
    start.bold = True
    if start.shape is Shape.PLAIN:
        start.shape = Shape.BOLD
    text, sign = without_signs(text)
    start.tick = start.tick or sign
    if not start.numbering:
        start.numbering, text = _without_numbering(text)
    return _notation(start, text, rest)


def _without_numbering(text: str) -> tuple[str, str]:
    """Return the number before a title, and the text without it."""
    match = NUMBERING.match(text)
    return (match[0].strip(), text[match.end() :]) if match else ("", text)


# --- How the words name the finding: new notations belong here --------------------------------------------


def _notation(start: Start, text: str, rest: str) -> Start | None:
    """Read the words by the first notation that fits; `rest` is the text after the bold words."""
    bracket = text[:1] in ("[", "`")
    # The id may be in italics: *N-1*
    inner = text.lstrip("[`") if bracket else text.lstrip("*_")
    if LIKE_AN_ID.match(inner) and (after := _take_id(start, inner, bracket=bracket)) is not None:
        start.bracket = bracket
        return _coded(start, after, rest)
    if bracket and (tag := _tag(text, start.shape)):
        word, end = tag
        return _tagged(start, word, text[end:], rest)
    return _anonymous(start, text.strip(), rest) if start.shape is not Shape.PLAIN else None


def _take_id(start: Start, text: str, *, bracket: bool) -> str | None:
    """Take the id that begins the words and return what follows it; None if there is no id after all."""
    if text[:6] == "ISSUE-" and (match := CODES.match(text)):
        start.codes = _codes(match["codes"])
        return text[match.end() :]
    if native := native_code(text):
        after = text[len(native) :]
        behind = after.rstrip("*")
        if not behind or behind.startswith(AFTER_NATIVE) or (bracket and behind[0] in "]`"):
            start.native = native
            return after
    if native := own_code(text):
        after = text[len(native) :]
        behind = after.lstrip("*_`")
        ended = (start.bold and not behind) or (bracket and after[:1] in "]`")
        if ended or behind.startswith(AFTER_NATIVE):
            start.native, start.own = native, True
            return after.lstrip("_")
    return None


def _codes(text: str) -> tuple[str, ...]:
    """Return the codes at the beginning of a line, at most a hundred, which no real list exceeds."""
    if ONE_CODE.fullmatch(text):
        return (text,)
    return tuple(mention.code for mention in islice(code_mentions(text), MAX_CODES))


def without_signs(text: str) -> tuple[str, str]:
    """Return a text without the signs before it (🔴, ⚠️, ✅), and "x" or " " for a tick or cross in them."""
    if text[:1] < FIRST_SIGN:
        return text, ""
    found = ""
    for place, letter in enumerate(text):
        if letter in TICKS:
            found = "x"
        elif letter in CROSSES:
            found = " "
        elif letter != " " and (letter < FIRST_SIGN or letter.isalpha() or letter.isdecimal()):
            return text[place:], found
    return "", found


def _coded(start: Start, after: str, rest: str) -> Start:
    """Read a line that begins with an id; `after` is what follows the id, within the bold words if any."""
    words: list[str] = []
    notes: list[str] = []
    after = take_groups(after.lstrip("]`*"), words, notes)
    after = take_bars(after, words)
    closed = bool(start.bold or start.bracket or words or not after) or after[:1] in ":-–—"
    start.closed = closed or ((start.own or " " in start.native) and after.lstrip()[:1] in ("-", "–", "—"))
    title = after.lstrip(SEPARATORS).rstrip(" *")
    if not title:
        title, rest = take_groups(rest, words, notes).lstrip(SEPARATORS), ""
    title, start.trailing = take_end(title[:MAX_READ], words)
    start.closed = start.closed or start.trailing
    if title.startswith("**") and title.endswith("**"):
        title = title.strip("* ")
    start.coded, start.title, start.rest = True, take_prefix(title, words).strip(), rest
    start.words, start.note = tuple(words), " ".join(notes)
    return start


def _tag(text: str, shape: Shape) -> tuple[str, int] | None:
    """Return the tag at the beginning of a text that states a severity, and where the tags end (ARB-1)."""
    if (match := TAG.match(text)) and severity_in(match["word"]):
        if match["word"].isupper() or shape not in (Shape.PLAIN, Shape.BOLD):
            return match["word"], match.end()
    elif match := TAGS.match(text):
        severe = [tag for tag in match[0].strip("[]").split("][") if severity_in(tag)]
        return (severe[-1], match.end()) if severe else None
    elif shape is Shape.ITEM and (match := BRACKETED.match(text)) and read_severity(match["word"]):
        return match["word"], match.end()
    return None


def _tagged(start: Start, word: str, head: str, rest: str) -> Start:
    """Read a line that begins with a tag (ARB-1); `head` follows the tag, within the bold words if any."""
    title = f"{head} {rest}".strip().lstrip(":*").strip().strip("*").strip()
    if match := CODES.match(title.lstrip("*`[")):
        start.codes = _codes(match["codes"])
        title = title.lstrip("*`[")[match.end() :].lstrip(SEPARATORS)
    if start.shape is not Shape.HEADING:
        start.shape = Shape.TAG
    start.tag, start.words, start.title = word, (word,), title[:MAX_READ]
    start.coded = bool(start.codes)
    return start


def _comment(match: re.Match[str], text: str, indent: int = 0) -> Start:
    """Read a comment on code that begins with a word for its kind."""
    kind = match["kind"]
    said = [part.strip().lower() for part in (match["said"] or "").split(",")]
    stated = [BLOCKS.get(part, part) for part in said if part in BLOCKS or severity_in(part)]
    of_kind = BLOCKS.get(kind) or (kind if severity_in(kind) else "nit")
    words = stated[-1:] or ([] if kind in OF_ANY_SEVERITY else [of_kind])
    return Start(Shape.TAG, indent=indent, title=text[match.end() :][:MAX_READ], words=tuple(words), tag=kind)


def _severe_first(text: str) -> re.Match[str] | None:
    """Match the severity with which a paragraph begins."""
    if match := LOUD.match(text) or LOUD_WORD.match(text):
        return match
    return LOUD_OF_PLACE.match(text) if LINE_OF_FILE.search(text[:MAX_READ]) else None


def severity_first(text: str) -> Start | None:
    """Read a paragraph that begins with its severity in title case, whether or not it names a place."""
    match = LOUD_OF_PLACE.match(text)
    return _loud(match, text, 0) if match else None


def _loud(match: re.Match[str], text: str, indent: int) -> Start | None:
    """Read a paragraph that begins with its severity; one in the parentheses after it takes precedence."""
    title = text[match.end() :][:MAX_READ]
    if COUNT.fullmatch(title.strip(" .*")):
        return None
    more = match["more"] or ""
    word = more if severity_in(more) else match["word"]
    return Start(Shape.TAG, indent=indent, title=title, words=(word,), tag=match["word"])


def _anonymous(start: Start, head: str, rest: str) -> Start:
    """Read a line without an id that is a list item, bold or a heading."""
    start.closed = head.endswith(":") or rest.startswith(":")
    if start.bold:
        head = head.rstrip(": *")
        plain = head.lower()
        if (level := LEVELS.get(plain)) and LINE_OF_FILE.search(rest[:MAX_READ]):
            start.title, start.words = rest[:MAX_READ], (level,)
            return start
        if rest and plain in ISSUE_LABELS:
            return _labelled(start, rest)
        if start.closed or not rest:
            start.field = field_name(head)
        if start.field and start.shape is not Shape.HEADING:
            start.title, start.rest = head, rest
            return start
    return _titled(start, head, rest)


def _severe_word(label: str) -> str:
    """Return the word for the severity of a label; of one that only says whether it blocks, its meaning."""
    return label if severity_in(label) else severities_of(label, blocking=True)[0].value


def _labelled(start: Start, rest: str) -> Start:
    """Read a line whose title follows a label, as in `**Issue:** text`."""
    words: list[str] = []
    title, start.trailing = take_end(rest.lstrip(" :")[:MAX_READ], words)
    start.title, start.words, start.labelled = title.strip(" *"), tuple(words), True
    return start


def _titled(start: Start, head: str, rest: str) -> Start:
    """Read a line that begins with its title, or with a severity as in `**Minor:** text`."""
    words: list[str] = []
    before, start.trailing = take_end(head[:MAX_READ], words)
    title = take_prefix(before, words)
    if title == before and rest:
        is_remark = OBSERVING & set(title.lower().split())
        if len(title) < 40 and severities_of(title, blocking=True) and not is_remark:
            words.append(_severe_word(title))
            title, rest = rest.lstrip(" :-–—")[:MAX_READ], ""
        else:
            rest = take_groups(rest, words, []).strip()
            if rest and not start.trailing:
                rest, start.trailing = take_end(rest[:MAX_READ], words)
    if not title.strip(" *") and words and rest:  # **[High]** text
        title, rest = rest.lstrip(" :-–—")[:MAX_READ], ""
    start.title, start.words, start.rest = title.strip(" *"), tuple(words), rest
    return start

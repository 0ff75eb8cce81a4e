"""Reading a line that begins with the id of a finding, the program's or the reviewer's own (FND-1, ID-4)."""

import re
from collections import Counter
from collections.abc import Sequence

from disputes.protocol.reviews import inline_severities
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.headings import Section
from disputes.protocol.reviews.severity import on_scale
from disputes.protocol.text import identifiers
from disputes.protocol.text.documents import STATED, Line
from disputes.protocol.text.locations import is_place
from disputes.protocol.text.mentions import codes_in
from tasks.text.regex import regex

CODES = regex(rf"(?P<codes>{identifiers.CODE}{identifiers.MORE_CODES})")
ONE_CODE = regex(identifiers.CODE)
# A record whose fields are below it: "Finding F-01" alone on its line.
RECORD = regex(
    r"(?:Finding|Issue|Defect|Problem|Concern)[ \t]+#?(?P<id>[A-Z]{1,8}-?\d{1,4}|\d{1,3})[ \t]*"
    r"(?:[(\[](?P<said>[^()\[\]]{1,40})[)\]][ \t]*)?:?[ \t]*"
)
AFTER_NATIVE = (":", ".", ")", "]", " -", " –", " —", " (", " [", " |")
SEPARATORS = " \t:-–—*_.)]"
MAX_CODES = 100
LINE_OF_FILE = regex(r"L\d{1,6}")  # "L42", below a heading that names a file
LEGEND = regex(r"\bS[0-4]\s?=|\bS[1-4] ?(?:-|–|to|bis) ?S[1-4]\b")  # of a scale: "S1 = worst"


def without_false_ids(
    lines: Sequence[Line], starts: Sequence[Start | None], where: Sequence[Section]
) -> Sequence[Start | None]:
    """Return the first lines of findings, those without an id where it is a line of a file or a severity.

    An id stands before one finding; a severity, as in "S1 `sync.py:10` deletes the folder", stands before
    several, or the review explains it (SEV-9).
    """
    is_scale = _has_scale(lines, starts)
    for start, section in zip(starts, where, strict=True):
        if start and is_scale and start.own and (severity := on_scale(start.native)):
            start.tag, start.words = start.native, (severity.value,)
        elif not (start and LINE_OF_FILE.fullmatch(start.native) and is_place(section.title)):
            continue
        start.coded, start.own, start.native = False, False, ""
    return starts


def _has_scale(lines: Sequence[Line], starts: Sequence[Start | None]) -> bool:
    counts = Counter(start.native for start in starts if start and start.own and on_scale(start.native))
    if not counts:
        return False
    return max(counts.values()) > 1 or any(line.mode is STATED and LEGEND.search(line.text) for line in lines)


def read_record(match: re.Match[str], text: str, indent: int) -> Start:
    """Read a line that names a finding and nothing else, except for its severity in parentheses."""
    words = (match["said"],) if match["said"] and inline_severities.severity_in(match["said"]) else ()
    return Start(
        Shape.PLAIN, indent, title=text.strip(" :"), words=words, coded=True, native=match["id"], own=True,
        closed=True,
    )  # fmt: skip


def leads_with_id(text: str) -> bool:
    """Whether a text begins with an id; a reviewer's own id must be followed by a mark."""
    if not identifiers.LIKE_AN_ID.match(text):
        return False
    if text.startswith("ISSUE-") or identifiers.native_code(text):
        return True
    own = identifiers.own_code(text)
    return bool(own) and text[len(own) :].lstrip("*_`").startswith(AFTER_NATIVE)


def take_id(start: Start, text: str, *, bracket: bool) -> str | None:
    """Take the id that begins the words and return what follows it; None if there is no id after all."""
    if text[:6] == "ISSUE-" and (match := CODES.match(text)):
        start.codes = codes_in_order(match["codes"])
        return text[match.end() :]
    if native := identifiers.native_code(text):
        after = text[len(native) :]
        behind = after.rstrip("*")
        if not behind or behind.startswith(AFTER_NATIVE) or (bracket and behind[0] in "]`"):
            start.native = native
            return after
    if native := identifiers.own_code(text):
        after = text[len(native) :]
        behind = after.lstrip("*_`")
        ended = (start.bold and not behind) or (bracket and after[:1] in "]`")
        if ended or behind.startswith(AFTER_NATIVE):
            start.native, start.own = native, True
            return after.lstrip("_")
    return None


def codes_in_order(text: str) -> tuple[str, ...]:
    """Return the codes at the beginning of a line, at most a hundred, which no real list exceeds."""
    if ONE_CODE.fullmatch(text):
        return (text,)
    return tuple(codes_in(text)[:MAX_CODES])


def read_coded(start: Start, after: str, rest: str) -> Start:
    """Read a line that begins with an id; `after` is what follows the id, within the bold words if any."""
    words: list[str] = []
    notes: list[str] = []
    after = inline_severities.take_groups(after.lstrip("]`*"), words, notes)
    after = inline_severities.take_bars(after, words)
    closed = bool(start.bold or start.bracket or words or not after) or after[:1] in ":-–—"
    start.closed = closed or ((start.own or " " in start.native) and after.lstrip()[:1] in ("-", "–", "—"))
    title = after.lstrip(SEPARATORS).rstrip(" *")
    if not title:
        title, rest = inline_severities.take_groups(rest, words, notes).lstrip(SEPARATORS), ""
    title, start.trailing = inline_severities.take_end(title[: inline_severities.MAX_READ], words)
    start.closed = start.closed or start.trailing
    if title.startswith("**") and title.endswith("**"):
        title = title.strip("* ")
    start.coded, start.title, start.rest = True, inline_severities.take_prefix(title, words).strip(), rest
    start.words, start.note = tuple(words), " ".join(notes)
    return start

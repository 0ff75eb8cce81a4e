"""Reading a line without an id: its title, the severity beside it, or the label of a part (FND-1)."""

from disputes.protocol.reviews import inline_severities
from disputes.protocol.reviews.fields import field_name, field_of
from disputes.protocol.reviews.first_lines.places import LEVELS
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.headings import OBSERVING, severities_of
from disputes.protocol.text.locations import LINE_OF_FILE
from tasks.text.regex import regex

# A severity beside the first colon: "Second (also high): text" or, behind a place, "l. 15: (HIGH) text".
BESIDE_COLON = regex(
    r"(?:[^:()\[\]]{2,80}\((?P<spoken>[^()]{3,40})\):"
    r"|(?=[^:]{0,59}[\d./`])[^:()\[\]]{1,60}:\s+[(\[](?P<loud>[A-Z]{3,8})[)\]])\s+(?=\S)"
)
BESIDE_WORDS = frozenset(["critical", "high", "medium", "low", "major", "minor", "nit"])
ISSUE_LABELS = frozenset(["issue", "problem", "concern", "finding", "gap", "defect", "bug", "weakness"])


def read_plain_item(text: str, start: Start) -> Start:
    """Read a list item without an id, a tag or anything in bold, which most items are."""
    start.closed = text.endswith(":")
    if not start.numbered and (field := field_of(text)):
        start.title, start.field = text[: inline_severities.MAX_READ], field.name
        return start
    words: list[str] = []
    title, start.trailing = inline_severities.take_end(text[: inline_severities.MAX_READ], words)
    plain = inline_severities.take_prefix(title, words)
    # At the margin, a word without parentheses may be defined.
    start.leading = plain != title and (start.indent > 0 or title[:1] == "(")
    match = None if words or start.numbered else BESIDE_COLON.match(text[: inline_severities.MAX_READ])
    if match and (word := _one_severity(match["spoken"] or match["loud"])):
        words.append(word)
        start.leading = start.leading or bool(match["loud"])
    start.title = plain.strip(" *")
    start.words = tuple(words)
    return start


def _one_severity(said: str) -> str:
    """Return the one severity among words in passing; empty if there is none, more than one, or a denial."""
    words = said.lower().replace("!", " ").split()
    named = {*words} & BESIDE_WORDS
    return named.pop() if len(named) == 1 and "not" not in words else ""


def read_anonymous(start: Start, head: str, rest: str) -> Start:
    """Read a line without an id that is a list item, bold or a heading."""
    start.closed = head.endswith(":") or rest.startswith(":")
    if start.bold:
        head = head.rstrip(": *")
        plain = head.lower()
        if (level := LEVELS.get(plain)) and LINE_OF_FILE.search(rest[: inline_severities.MAX_READ]):
            start.title, start.words = rest[: inline_severities.MAX_READ], (level,)
            return start
        if rest and plain in ISSUE_LABELS:
            return _labelled(start, rest)
        if start.closed or not rest:
            start.field = field_name(head)
        if start.field and start.shape is not Shape.HEADING:
            start.title, start.rest = head, rest
            return start
    return _titled(start, head, rest)


def _labelled(start: Start, rest: str) -> Start:
    """Read a line whose title follows a label, as in `**Issue:** text`."""
    words: list[str] = []
    title, start.trailing = inline_severities.take_end(rest.lstrip(" :")[: inline_severities.MAX_READ], words)
    start.title, start.words, start.labelled = title.strip(" *"), tuple(words), True
    return start


def _titled(start: Start, head: str, rest: str) -> Start:
    """Read a line that begins with its title, or with a severity as in `**Minor:** text`."""
    words: list[str] = []
    before, start.trailing = inline_severities.take_end(head[: inline_severities.MAX_READ], words)
    title = inline_severities.take_prefix(before, words)
    if title == before and rest:
        is_remark = OBSERVING & set(title.lower().split())
        if len(title) < 40 and severities_of(title, blocking=True) and not is_remark:
            words.append(inline_severities.severe_word(title))
            title, rest = rest.lstrip(" :-–—")[: inline_severities.MAX_READ], ""
        else:
            rest = inline_severities.take_groups(rest, words, []).strip()
            if rest and not start.trailing:
                rest, start.trailing = inline_severities.take_end(rest[: inline_severities.MAX_READ], words)
    if not title.strip(" *") and words and rest:  # **[High]** text
        title, rest = rest.lstrip(" :-–—")[: inline_severities.MAX_READ], ""
    start.title, start.words, start.rest = title.strip(" *"), tuple(words), rest
    return start

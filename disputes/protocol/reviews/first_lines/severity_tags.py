"""Reading a line that begins with its severity: a tag, a badge, a word, or the kind of a comment (FND-1)."""

import re

from disputes.protocol.reviews.first_lines.ids import CODES, SEPARATORS, codes_in_order
from disputes.protocol.reviews.first_lines.start import COUNT, Shape, Start
from disputes.protocol.reviews.inline_severities import LOUD, MAX_READ, PREFIX, severity_in
from disputes.protocol.reviews.severity import on_scale, read_severity
from tasks.text.regex import regex

# ARB-1: tags in a row, of which a part states a severity: "[HIGH]", "[security][BLOCKING:design]".
TAGS = regex(r"(?:\[[A-Za-z][^\[\]\n]{0,40}\]){1,4}(?!\()[\s:–—-]*")
BETWEEN = regex(r"\]\[|\s?[:/,|–—]\s?| - ")
# The badge of a priority in bold before a title: **![P1 Badge](https://…) Title**
BADGED = regex(
    r"\*\*(?:<sub>){0,2}!\[(?P<word>[^\[\]]{1,40}?)(?: badge)?\]\([^()\s]{1,300}\)(?:</sub>){0,2}"
    r"[ \t]*(?P<title>[^*\s][^*]{0,400})\*\*\s*$",
    re.IGNORECASE,
)


def read_badged(text: str, indent: int) -> Start | None:
    """Read a title in bold behind the badge of its priority."""
    match = BADGED.match(text) if "![" in text[:16] else None
    if not match or not severity_in(match["word"]):
        return None
    return Start(Shape.TAG, indent, title=match["title"], words=(match["word"],), tag=match["word"])


def leading_tag(text: str, shape: Shape) -> tuple[str, int] | None:
    """Return the severity in the tags at the beginning of a text, and where these end (ARB-1).

    A tag that names several explains a scale. One alone that is not in capitals counts only in a list, in a
    heading, or before a colon or a dash.
    """
    if not (match := TAGS.match(text)):
        return None
    tags = [_severe_parts(tag) for tag in match[0].rstrip(" \t:–—-").strip("[]").split("][")]
    severe = next((words[0] for words in reversed(tags) if len(words) == 1), "")
    is_listed = shape not in (Shape.PLAIN, Shape.BOLD) and read_severity(severe) is not None
    is_sure = severe.isupper() or is_listed or len(BETWEEN.split(match[0])) > 1
    return (severe, match.end()) if severe and is_sure else None


def _severe_parts(tag: str) -> list[str]:
    told = [BLOCKS.get(part.lower(), part) for part in BETWEEN.split(tag)]
    return [word for word in told if severity_in(word) or on_scale(word)]


def read_tagged(start: Start, word: str, head: str, rest: str) -> Start:
    """Read a line that begins with a tag (ARB-1); `head` follows the tag, within the bold words if any."""
    title = f"{head} {rest}".strip().lstrip(":*").strip().strip("*").strip()
    if match := CODES.match(title.lstrip("*`[")):
        start.codes = codes_in_order(match["codes"])
        title = title.lstrip("*`[")[match.end() :].lstrip(SEPARATORS)
    if start.shape is not Shape.HEADING:
        start.shape = Shape.TAG
    start.tag, start.words, start.title = word, (on_scale(word) or word,), title[:MAX_READ]
    start.coded = bool(start.codes)
    return start


# --- A severity as the first word ---


def severe_first(text: str) -> re.Match[str] | None:
    """Match the severity with which a paragraph begins."""
    return LOUD.match(text) or (PREFIX.match(text) if text[:1].isupper() else None)


def read_loud(match: re.Match[str], text: str, indent: int) -> Start | None:
    """Read a paragraph that begins with its severity; one in the parentheses after it takes precedence."""
    title = text[match.end() :][:MAX_READ]
    if COUNT.fullmatch(title.strip(" .*")):
        return None
    more = match.groupdict().get("more") or ""
    word = more if severity_in(more) else match["word"]
    return Start(Shape.TAG, indent=indent, title=title, words=(word,), tag=match["word"])


# --- Comments on code ---

# Comments on code that begin with a word for their kind: "issue (blocking): …", "nitpick: …".
COMMENT = regex(
    r"(?P<kind>issue|problem|suggestion|todo|chore|polish|typo|nit(?:pick)?|(?:non-)?blocking|blocker)\s?(?:\((?P<said>[^()]{1,60})\))?:\s+"
)
# Kinds that are also the label of a part of a finding, unless something in parentheses follows.
LABELS_TOO = frozenset(["issue", "problem", "suggestion", "todo", "chore", "polish", "typo"])
# Kinds that say nothing about how severe a comment is.
OF_ANY_SEVERITY = frozenset(["issue", "problem"])
BLOCKS = {"blocking": "high", "non-blocking": "low"}


def kind_of_comment(text: str) -> re.Match[str] | None:
    """Match the word for its kind at the beginning of a comment on code."""
    match = COMMENT.match(text)
    return match if match and (match["said"] or match["kind"] not in LABELS_TOO) else None


def read_comment(match: re.Match[str], text: str, indent: int = 0) -> Start:
    """Read a comment on code that begins with a word for its kind."""
    kind = match["kind"]
    said = [part.strip().lower() for part in (match["said"] or "").split(",")]
    stated = [BLOCKS.get(part, part) for part in said if part in BLOCKS or severity_in(part)]
    of_kind = BLOCKS.get(kind) or (kind if severity_in(kind) else "nit")
    words = stated[-1:] or ([] if kind in OF_ANY_SEVERITY else [of_kind])
    return Start(Shape.TAG, indent=indent, title=text[match.end() :][:MAX_READ], words=tuple(words), tag=kind)

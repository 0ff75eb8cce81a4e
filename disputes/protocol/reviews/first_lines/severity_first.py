"""Reading a paragraph that begins with its severity: "HIGH: text" (FND-1)."""

import re

from disputes.protocol.reviews.first_lines.start import COUNT, Shape, Start
from disputes.protocol.reviews.inline_severities import LOUD, MAX_READ, severity_in
from disputes.protocol.text.locations import LINE_OF_FILE
from tasks.text.regex import regex

# The same in title case: words that only reviewers use, and others if one of such lines names a place.
LOUD_WORD = regex(r"(?P<word>Blocking|Blocker|Non-blocking|Nit(?:pick)?)(?P<more>)\s?:\s+(?=\S)")
WORDS_OF_ALL = ("Critical", "High", "Major", "Medium", "Moderate", "Low", "Minor")
LOUD_OF_PLACE = regex(rf"(?P<word>{'|'.join(WORDS_OF_ALL)})(?P<more>)\s?(?::|[-–—](?=\s))\s+(?=\S)")


def severe_first(text: str) -> re.Match[str] | None:
    """Match the severity with which a paragraph begins."""
    if match := LOUD.match(text) or LOUD_WORD.match(text):
        return match
    return LOUD_OF_PLACE.match(text) if LINE_OF_FILE.search(text[:MAX_READ]) else None


def severity_first(text: str) -> Start | None:
    """Read a paragraph that begins with its severity in title case, whether or not it names a place."""
    match = LOUD_OF_PLACE.match(text)
    return read_loud(match, text, 0) if match else None


def read_loud(match: re.Match[str], text: str, indent: int) -> Start | None:
    """Read a paragraph that begins with its severity; one in the parentheses after it takes precedence."""
    title = text[match.end() :][:MAX_READ]
    if COUNT.fullmatch(title.strip(" .*")):
        return None
    more = match["more"] or ""
    word = more if severity_in(more) else match["word"]
    return Start(Shape.TAG, indent=indent, title=title, words=(word,), tag=match["word"])

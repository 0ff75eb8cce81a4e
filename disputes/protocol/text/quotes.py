"""Putting what others wrote into a text of ours: on one line or quoted, so that it cannot break out.

Positions, titles and rulings are written by agents and people. In a record they may hold headings, fences,
tables, HTML and signs that turn the direction of writing; none of that may begin a line of the record.
"""

from collections.abc import Iterable

from tasks.text.counting import counted
from tasks.text.regex import regex

# Control characters, lone surrogates, and what reorders or hides the letters around it.
_UNSEEN = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
# What a renderer may take for HTML: a tag, a comment, an end of our own quote.
_TAG = regex(r"<(?=[A-Za-z/!?])")
_ESCAPED = regex(r"&(?=(?:amp;)*lt;)")
_INERT = regex(r"&amp;(?=(?:amp;)*lt;)|&lt;")
_CLOSING = regex(r"(?<=[ \t])#(?=#*$)")


def plain(text: str) -> str:
    """The text with uniform line ends, without invisible characters."""
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def cut(text: str, limit: int) -> str:
    """The text up to `limit` characters, and how many more there were."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} [… {counted(len(text) - limit, 'more character')}]"


def one_line(text: str, limit: int = 500) -> str:
    """The text on one line, so that nothing in it begins a line of ours."""
    return cut(" ".join(plain(text).split()), limit)


def quoted(text: str, limit: int) -> list[str]:
    """The text as lines of a Markdown quote, at most `limit` characters of it; no line where it is blank."""
    body = cut(plain(text).strip("\n"), limit)
    return [f"> {line}".rstrip() for line in body.split("\n")] if body.strip() else []


def unquoted(lines: Iterable[str]) -> str:
    """What `quoted` was given: the lines without their marks."""
    stripped = (line.lstrip() for line in lines)
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in stripped)


def inert(text: str) -> str:
    """The text for a file that renders as HTML: no tag in it is one. `readable` gives it back."""
    return _TAG.sub("&lt;", _ESCAPED.sub("&amp;", text))


def readable(text: str) -> str:
    """What `inert` was given."""
    return _INERT.sub(lambda found: "<" if found[0] == "&lt;" else "&", text)


def as_heading(text: str) -> str:
    """One line whose final marks Markdown does not take for the end of a heading."""
    return _CLOSING.sub(r"\\#", text)

"""Putting what others wrote into our own texts, on one line or quoted, so that it cannot break out.

Agents and people write positions, titles and rulings. These may contain headings, fences, tables, HTML and
characters that reverse the direction of writing; none of that may begin a line of a record.
"""

import re
from collections.abc import Iterable

from tasks.text import unseen
from tasks.text.counting import counted
from tasks.text.regex import regex

# What a renderer may take for HTML: a tag or a comment.
_TAG = regex(r"<(?=[A-Za-z/!?])")
_ESCAPED = regex(r"&(?=(?:amp;)*lt;)")
_INERT = regex(r"&amp;(?=(?:amp;)*lt;)|&lt;")
_CLOSING = regex(r"(?<=[ \t])#(?=#*$)")


def plain(text: str) -> str:
    """Return the text with uniform line ends and without invisible characters."""
    return unseen.plain(text.replace("\r\n", "\n").replace("\r", "\n"))


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text, followed by a note of how many were left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} [… {counted(len(text) - limit, 'more character')}]"


def one_line(text: str, limit: int = 500) -> str:
    """Return the text on one line, so that no part of it can begin a line of ours."""
    return cut(" ".join(plain(text).split()), limit)


def fenced(text: str, info: str = "text") -> str:
    """Return the text between fences that nothing in the text can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{text.rstrip()}\n{fence}"


def quoted(text: str, limit: int) -> list[str]:
    """Return up to `limit` characters of the text as lines of a Markdown quote; empty if it is blank."""
    body = cut(plain(text).strip("\n"), limit)
    return [f"> {line}".rstrip() for line in body.split("\n")] if body.strip() else []


def unquoted(lines: Iterable[str]) -> str:
    """Return the text of quoted lines without their marks, undoing `quoted`."""
    stripped = (line.lstrip() for line in lines)
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in stripped)


def inert(text: str) -> str:
    """Return the text with its tags escaped, for a file that is rendered as HTML; `readable` undoes it."""
    return _TAG.sub("&lt;", _ESCAPED.sub("&amp;", text))


def readable(text: str) -> str:
    """Return the original text of what `inert` has escaped."""
    return _INERT.sub(lambda found: "<" if found[0] == "&lt;" else "&", text)


def as_heading(text: str) -> str:
    """Escape the trailing # of a line, which Markdown would otherwise take for the end of a heading."""
    return _CLOSING.sub(r"\\#", text)

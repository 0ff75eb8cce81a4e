"""Reading YAML front matter: the data between two lines `---` at the beginning of a document.

No objects are constructed from it: every value stays text. Its size, its depth and the number of its values
are bounded; anchors and aliases are refused.
"""

import re
from collections.abc import Collection

from disputes.protocol.text.documents import DocumentError, Problem
from tasks.configuration.yaml_files import FaultyFile, Lines, read_plain
from tasks.text.regex import regex

SIZE_MAX = 64 * 1024  # characters
DEPTH_MAX = 5
VALUES_MAX = 5_000
MALFORMED = "malformed_front_matter"
_OPENS = regex(r"\A﻿?(?:[ \t]*\n)*---[ \t]*\n")
_CLOSES = regex(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY = regex(r"^([A-Za-z_]+)[ \t]*:", re.MULTILINE)


def read_front_matter(text: str, ours: Collection[str]) -> tuple[Lines, str] | None:
    """Return the front matter and the document below it, or None unless one of its keys is among `ours`.

    Blank lines stand for those above the document, so that its lines keep their numbers.
    Raises DocumentError, with line numbers of the whole document, if the front matter cannot be accepted.
    """
    text = text.replace("\r\n", "\n")
    opened = _OPENS.match(text)
    closed = _CLOSES.search(text, opened.end()) if opened else None
    if opened is None or closed is None:
        return None
    between = text[opened.end() : closed.start()]
    if {*ours}.isdisjoint(key.lower() for key in _KEY.findall(between)):
        return None
    above = "\n" * text.count("\n", 0, closed.end())
    return _read(between, text.count("\n", 0, opened.end())), above + text[closed.end() :]


def check_keys(data: Lines, known: Collection[str], where: str) -> None:
    """Raise DocumentError, naming every key that is not known, if there is one."""
    if unknown := sorted(set(data) - set(known)):
        reason = f"{where} has no {', '.join(unknown)}; its keys are {', '.join(known)}"
        raise DocumentError(MALFORMED, [Problem(data.line, reason)])


def _read(text: str, before: int) -> Lines:
    """Return the mapping in the front matter; `before` is the number of lines above it in the document."""
    try:
        data = read_plain(text, size=SIZE_MAX, depth=DEPTH_MAX, values=VALUES_MAX)
    except FaultyFile as error:
        problems = [Problem(before + fault.line, fault.message.rstrip(".")) for fault in error.faults]
        raise DocumentError(MALFORMED, problems) from error
    _shift(data, before)
    return data


def _shift(value: object, lines: int) -> None:
    """Add `lines` to the line numbers of all mappings in the value, to count from the top of the document."""
    if isinstance(value, Lines):
        value.line += lines
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _shift(each, lines)

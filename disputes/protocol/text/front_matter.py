"""YAML front matter: data between two lines `---` at the beginning of a document, as text and nothing else.

Nothing is constructed from it: every value is the text that stands there. Its size, its depth and the number
of its values are bounded; anchors and aliases are refused.
"""

import re
from collections.abc import Collection

from disputes.protocol.text.documents import DocumentError, Problem
from tasks.configuration.plain_yaml import Lines, read_plain
from tasks.configuration.yaml_files import FaultyFile
from tasks.text.regex import regex

SIZE_MAX = 64 * 1024  # characters
DEPTH_MAX = 5
VALUES_MAX = 5_000
MALFORMED = "malformed_front_matter"
_OPENS = regex(r"\A﻿?(?:[ \t]*\n)*---[ \t]*\n")
_CLOSES = regex(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY = regex(r"^([A-Za-z_]+)[ \t]*:", re.MULTILINE)


def read_front_matter(text: str, ours: Collection[str]) -> tuple[Lines, str] | None:
    """The front matter with one of `ours` among its keys, and the document below it; None without such.

    Raises DocumentError where it is none that can be taken, with the lines of the document.
    """
    text = text.replace("\r\n", "\n")
    opened = _OPENS.match(text)
    closed = _CLOSES.search(text, opened.end()) if opened else None
    if opened is None or closed is None:
        return None
    between = text[opened.end() : closed.start()]
    if {*ours}.isdisjoint(key.lower() for key in _KEY.findall(between)):
        return None
    return _read(between, text.count("\n", 0, opened.end())), text[closed.end() :]


def check_keys(data: Lines, known: Collection[str], where: str) -> None:
    """Raises DocumentError that names every key which is not known."""
    if unknown := sorted(set(data) - set(known)):
        reason = f"{where} has no {', '.join(unknown)}; its keys are {', '.join(known)}"
        raise DocumentError(MALFORMED, [Problem(data.line, reason)])


def _read(text: str, before: int) -> Lines:
    """The mapping that stands there; `before` lines of the document stand above it."""
    try:
        data = read_plain(text, size=SIZE_MAX, depth=DEPTH_MAX, values=VALUES_MAX)
    except FaultyFile as error:
        problems = [Problem(before + fault.line, fault.message.rstrip(".")) for fault in error.faults]
        raise DocumentError(MALFORMED, problems) from error
    _shift(data, before)
    return data


def _shift(value: object, lines: int) -> None:
    """Count the lines of all mappings in it from the beginning of the document."""
    if isinstance(value, Lines):
        value.line += lines
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _shift(each, lines)

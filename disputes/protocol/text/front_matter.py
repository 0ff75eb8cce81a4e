"""YAML front matter: data between two lines `---` at the beginning of a document, as text and nothing else.

Nothing is constructed from it: every value is the text that stands there. Its size, its depth and the number
of its values are bounded; anchors and aliases are refused.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any

import yaml

from disputes.protocol.text.documents import DocumentError, Problem
from tasks.configuration.yaml_files import FaultyFile, compose, line_of

SIZE_MAX = 64 * 1024  # characters
DEPTH_MAX = 5
VALUES_MAX = 5_000
MALFORMED = "malformed_front_matter"
_OPENS = re.compile(r"\A﻿?(?:[ \t]*\n)*---[ \t]*\n")
_CLOSES = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY = re.compile(r"^([A-Za-z_]+)[ \t]*:", re.MULTILINE)


class Lines(dict[str, Any]):
    """A mapping that knows on which line of the document it begins."""

    line = 0


def read_front_matter(text: str, ours: Collection[str]) -> tuple[Lines, str] | None:
    """The front matter with one of `ours` among its keys, and the document below it; None without such.

    Raises DocumentError where it is none that can be taken, with the lines of the document.
    """
    opened = _OPENS.match(text.replace("\r\n", "\n"))
    if opened is None:
        return None
    text = text.replace("\r\n", "\n")
    closed = _CLOSES.search(text, opened.end())
    if closed is None or not {key.lower() for key in _KEY.findall(text[opened.end() : closed.start()])} & {
        *ours
    }:
        return None
    before = text.count("\n", 0, opened.end())
    return _read(text[opened.end() : closed.start()], before), text[closed.end() :]


def check_keys(data: Lines, known: Collection[str], where: str) -> None:
    """Raises DocumentError that names every key which is not known."""
    if unknown := sorted(set(data) - set(known)):
        reason = f"{where} has no {', '.join(unknown)}; its keys are {', '.join(known)}"
        raise DocumentError(MALFORMED, [Problem(data.line, reason)])


def _read(text: str, before: int) -> Lines:
    """The mapping that stands there; `before` lines of the document stand above it."""
    try:
        root = compose(text, SIZE_MAX, is_plain=True)
    except FaultyFile as error:
        problems = [Problem(before + fault.line, fault.message.rstrip(".")) for fault in error.faults]
        raise DocumentError(MALFORMED, problems) from error
    if not isinstance(root, yaml.MappingNode):
        raise DocumentError(MALFORMED, [Problem(before + 1, "the front matter is no mapping")])
    data = _plain(root, before, 1, iter(range(VALUES_MAX)))
    assert isinstance(data, Lines)  # noqa: S101  (a mapping node becomes nothing else)
    return data


def _plain(node: yaml.Node, before: int, depth: int, room: Iterator[int]) -> Any:
    line = before + line_of(node)
    if depth > DEPTH_MAX:
        raise DocumentError(MALFORMED, [Problem(line, f"it is nested more than {DEPTH_MAX} deep")])
    if next(room, None) is None:
        raise DocumentError(MALFORMED, [Problem(line, f"it has more than {VALUES_MAX} values")])
    if isinstance(node, yaml.ScalarNode):
        return "" if node.tag.endswith(":null") else str(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each, before, depth + 1, room) for each in node.value]
    found = Lines()
    found.line = line
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if not name or name in found:
            reason = f"the key {name} stands twice" if name else "a key is no word"
            raise DocumentError(MALFORMED, [Problem(before + line_of(key), reason)])
        found[str(name)] = _plain(value, before, depth + 1, room)
    return found

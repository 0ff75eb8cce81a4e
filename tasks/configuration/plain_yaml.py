"""Core: YAML that agents write, read as texts, lists and mappings that know their lines; no other types."""

from collections.abc import Iterator
from typing import Any

import yaml

from tasks.configuration.yaml_files import Fault, FaultyFile, compose, line_of


class Lines(dict[str, Any]):
    """A mapping that knows the line on which it begins."""

    line = 0


def read_plain(text: str, *, size: int, depth: int, values: int) -> Lines:
    """Return the mapping in a YAML text, with every value as a text as it is written.

    The text may have at most `size` characters, `depth` levels and `values` values; anchors, aliases and
    duplicate keys are refused. Raises FaultyFile.
    """
    root = compose(text, size, is_plain=True)
    if not isinstance(root, yaml.MappingNode):
        raise FaultyFile([Fault(1, "it is no mapping.")])
    return _mapping(root, depth, iter(range(values)))


def _mapping(node: yaml.MappingNode, depth: int, room: Iterator[int]) -> Lines:
    found = Lines()
    found.line = line_of(node)
    for key, value in node.value:
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
        if not name or name in found:
            reason = f"the key {name} stands twice." if name else "a key is no word."
            raise FaultyFile([Fault(line_of(key), reason)])
        found[name] = _value(value, depth - 1, room)
    return found


def _value(node: yaml.Node, depth: int, room: Iterator[int]) -> Any:
    if depth < 1:
        raise FaultyFile([Fault(line_of(node), "it is nested too deeply.")])
    if next(room, None) is None:
        raise FaultyFile([Fault(line_of(node), "it has too many values.")])
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, depth, room)
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, depth - 1, room) for each in node.value]
    return "" if node.tag.endswith(":null") else str(node.value)

"""Core: YAML by people and agents, read so that everything knows its line; no objects are constructed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tasks.text.storable import storable

BRACKETS_MAX = 60  # open at once


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and on which line, counted from 1."""

    line: int
    message: str


class FaultyFile(ValueError):
    """A file that cannot be used; `faults` holds everything that is wrong with it, by line."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: fault.line))
        super().__init__("\n".join(f"line {fault.line}: {fault.message}" for fault in self.faults))

    def lines(self, name: str) -> list[str]:
        """Return one line of text for each fault; `name` is the name of the file."""
        return [f"{name}:{fault.line}: {fault.message}" for fault in self.faults]


class _Loader(yaml.SafeLoader):
    """Refuses endless opening brackets, over which PyYAML's scanner would take minutes.

    Whatever an escape spells, its texts are storable.
    """

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        node.value = storable(node.value)
        return node

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        if self.flow_level >= BRACKETS_MAX:
            raise RecursionError
        super().fetch_flow_collection_start(token)


class _PlainLoader(_Loader):
    """Refuses anchors and aliases too."""

    def fetch_anchor(self) -> None:
        raise yaml.scanner.ScannerError(None, None, "anchors and aliases are not taken", self.get_mark())

    fetch_alias = fetch_anchor


def compose(text: str, limit: int, *, is_plain: bool = False) -> yaml.Node | None:
    """Return the root node of the document; None if it is empty.

    `limit` is the most characters it may have; `is_plain` refuses anchors and aliases. Raises FaultyFile.
    """
    if len(text) > limit:
        raise FaultyFile([Fault(1, f"the file has {len(text)} characters; {limit} are the most.")])
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_PlainLoader if is_plain else _Loader)
        return node
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise FaultyFile([Fault(line, "there is a character that YAML does not allow.")]) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FaultyFile([Fault(mark.line + 1 if mark else 1, f"no YAML: {error.problem}.")]) from error
    except RecursionError as error:
        raise FaultyFile([Fault(1, "no YAML for people: it is nested too deeply.")]) from error


def line_of(node: yaml.Node) -> int:
    """Return the line on which the node begins, counted from 1."""
    return int(node.start_mark.line) + 1


# --- What agents write: texts, lists and mappings, and no other types ---------------------------------------


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

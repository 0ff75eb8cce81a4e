"""Core: the comments beside an artifact, as `<artifact>.meta.yaml` (ITM-1).

The format is that of the design: comments with the ids c001, c002, and so on, each with author, timestamp,
target or parent, content, status and resolution; above them, what the item says of a dispute between stages.
All faults of a file are reported at once, each with its line, and nothing in it is executed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import yaml

from tasks.configuration.yaml_files import Fault, FaultyFile, compose
from tasks.configuration.yaml_files import line_of as node_line
from tasks.text.regex import regex

SIZE_MAX = 1024 * 1024
COMMENTS_MAX = 2000
CONTENT_MAX = 20_000
AUTHOR_MAX = 120
TARGET_MAX = 300
SUFFIX = ".meta.yaml"
STATUSES = ("open", "resolved")
RESOLUTIONS = ("", "accepted", "rejected")
KEYS = ("id", "author", "timestamp", "target", "parent", "content", "status", "resolution")
ITEM_KEYS = ("issue", "dispute_rounds", "dispute_agents", "status", "flag", "comments")
_ID = regex(r"c[0-9]{3,6}\Z")
_PLAIN = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class MetaComment:
    """One comment of the file."""

    id: str
    author: str
    timestamp: datetime
    content: str
    target: str = ""
    parent: str = ""
    status: str = "open"
    resolution: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """What the file says of one item, and its comments, oldest first."""

    comments: tuple[MetaComment, ...] = ()
    issue: str = ""
    dispute_rounds: int = 0
    dispute_agents: tuple[str, ...] = ()
    status: str = ""
    flag: str = ""
    lines: dict[str, int] = field(default_factory=dict, compare=False)  # the line of each comment, by its id


def artifact_of(target: str) -> str:
    """Return the file that a target names, as tests/247.md in `tests/247.md::test_sum`; empty if none."""
    path = re.split(r"::|#", target.strip(), maxsplit=1)[0].strip()
    parts = path.split("/")
    safe = path and not path.startswith(("/", "~", "-")) and ".." not in parts and "" not in parts
    named = bool(safe) and "." in parts[-1] and re.fullmatch(r"[\w./@+ -]{1,200}", path) is not None
    return path if named and "." not in parts else ""


def artifact_in(text: str) -> str:
    """Return the artifact that the first line of an exported file names; empty if it names none."""
    named = re.match(r"# Artifact: ([^\n]{1,200})\n", text)
    return named[1] if named and artifact_of(named[1]) == named[1] else ""


# --- Writing ----------------------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and everything else in YAML's usual form."""


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    block = "\n" in text and all(line.isprintable() and line == line.rstrip() for line in text.split("\n"))
    plain = text.isprintable() or block
    return dumper.represent_scalar(f"{_PLAIN}str", text, style="|" if block else None if plain else '"')


_Dumper.add_representer(str, _text)


def write_meta(item: Item, artifact: str = "") -> str:
    """Return the text of the file; `read_meta` reads it back to an equal item."""
    head: dict[str, Any] = {key: value for key in ITEM_KEYS if (value := getattr(item, key))}
    head["comments"] = [_row(comment) for comment in item.comments]
    text: str = yaml.dump(head, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    name = artifact.replace("\n", " ")
    return f"# Artifact: {name}\n# Metadata: {name}{SUFFIX}\n\n{text}" if name else text


def _row(comment: MetaComment) -> dict[str, Any]:
    row: dict[str, Any] = {key: value for key in KEYS if (value := getattr(comment, key))}
    return row | {"timestamp": comment.timestamp.astimezone(UTC).replace(tzinfo=None)}


def numbered(comments: Iterable[MetaComment]) -> tuple[MetaComment, ...]:
    """Return the comments with the ids c001, c002, ... in order; the ids of their parents follow."""
    every = list(comments)
    names = {comment.id: f"c{number:03d}" for number, comment in enumerate(every, 1)}
    return tuple(
        replace(comment, id=names[comment.id], parent=names.get(comment.parent, "")) for comment in every
    )


# --- Reading ----------------------------------------------------------------------------------------------


def read_meta(text: str) -> Item:
    """Return the item in a file. Raises FaultyFile with all that is wrong; then nothing may be used."""
    node = compose(text, SIZE_MAX)
    return _Reader().item(node)


class _Reader:
    """One walk over the nodes: mappings, lists and scalars under known keys, and nothing below them."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(self, node: yaml.Node, message: str) -> None:
        self.faults.append(Fault(node_line(node), message))

    def item(self, node: yaml.Node | None) -> Item:
        values: dict[str, Any] = {}
        comments: list[MetaComment] = []
        lines: dict[str, int] = {}
        for key, value in self.entries(node, ITEM_KEYS, "the file") if node is not None else ():
            if key == "comments":
                comments, lines = self.comments(value)
            elif key == "dispute_agents":
                values[key] = tuple(self.texts(value))
            elif key == "dispute_rounds":
                values[key] = self.number(value)
            else:
                values[key] = self.text(value, key, TARGET_MAX)
        self.check_parents(comments, lines)
        if self.faults:
            raise FaultyFile(self.faults)
        return Item(tuple(comments), lines=lines, **values)

    def entries(self, node: yaml.Node, known: Sequence[str], what: str) -> Iterator[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            self.fault(node, f"{what} holds keys with values: `key: value`.")
            return
        seen: set[str] = set()
        for name, value in node.value:
            word = name.value if isinstance(name, yaml.ScalarNode) else None
            if word is None or word not in known:
                shown = f"{word[:40]} is" if word else "that key is"
                self.fault(name, f"{what}: {shown} unknown. Known are {', '.join(known)}.")
            elif word in seen:
                self.fault(name, f"{what}: {word} stands there twice.")
            else:
                seen.add(word)
                yield word, value

    def comments(self, node: yaml.Node) -> tuple[list[MetaComment], dict[str, int]]:
        found: list[MetaComment] = []
        lines: dict[str, int] = {}
        if not isinstance(node, yaml.SequenceNode):
            self.fault(node, "comments is a list: `- id: c001` for each.")
            return found, lines
        if len(node.value) > COMMENTS_MAX:
            self.fault(node, f"there are {len(node.value)} comments; {COMMENTS_MAX} are the most.")
            return found, lines
        for entry in node.value:
            comment = self.comment(entry)
            if comment and comment.id in lines:
                self.fault(entry, f"{comment.id} stands there twice.")
            elif comment:
                found.append(comment)
                lines[comment.id] = node_line(entry)
        return found, lines

    def comment(self, node: yaml.Node) -> MetaComment | None:
        before = len(self.faults)
        values: dict[str, Any] = {}
        for key, value in self.entries(node, KEYS, "a comment"):
            if key == "timestamp":
                values[key] = self.time(value)
            else:
                most = {"content": CONTENT_MAX, "target": TARGET_MAX}.get(key, AUTHOR_MAX)
                values[key] = self.text(value, key, most, lines=key == "content")
        for key in ("id", "author", "timestamp", "content"):
            if not values.get(key) and len(self.faults) == before:
                self.fault(node, f"a comment has no {key}.")
        if len(self.faults) == before:
            if not _ID.match(values["id"]):
                self.fault(node, f"{values['id'][:20]!r} is no id; c001 is one.")
            for key, known in (("status", STATUSES), ("resolution", RESOLUTIONS)):
                if values.get(key, known[0]) not in known:
                    self.fault(node, f"{values['id']}: {key} is one of {', '.join(filter(None, known))}.")
        return MetaComment(**values) if len(self.faults) == before else None

    def check_parents(self, comments: list[MetaComment], lines: dict[str, int]) -> None:
        """Report comments whose parent is not above them."""
        seen: set[str] = set()
        for comment in comments:
            if comment.parent and comment.parent not in seen:
                where = lines[comment.id]
                self.faults.append(
                    Fault(where, f"{comment.id} answers {comment.parent}, which is not above it.")
                )
            seen.add(comment.id)

    def text(self, node: yaml.Node, key: str, most: int, *, lines: bool = False) -> str:
        if not isinstance(node, yaml.ScalarNode):
            self.fault(node, f"{key} is a text.")
            return ""
        text = "" if node.tag == f"{_PLAIN}null" else str(node.value)
        if len(text) > most:
            self.fault(node, f"{key} has {len(text)} characters; {most} are the most.")
        elif not lines and "\n" in text:
            self.fault(node, f"{key} is one line of text.")
        return text

    def texts(self, node: yaml.Node) -> list[str]:
        if not isinstance(node, yaml.SequenceNode) or len(node.value) > COMMENTS_MAX:
            self.fault(node, "dispute_agents is a list of names.")
            return []
        return [self.text(each, "dispute_agents", AUTHOR_MAX) for each in node.value]

    def number(self, node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode) and re.fullmatch("[0-9]{1,5}", node.value):
            return int(node.value)
        self.fault(node, "dispute_rounds is a whole number.")
        return 0

    def time(self, node: yaml.Node) -> datetime | None:
        """Return the time in UTC, which is assumed if no zone is named; None if it is invalid."""
        if isinstance(node, yaml.ScalarNode):
            loader = yaml.SafeLoader("")
            try:
                value = loader.construct_object(node)
                value = datetime.fromisoformat(value) if isinstance(value, str) else value
                if isinstance(value, date) and not isinstance(value, datetime):
                    value = datetime(value.year, value.month, value.day, tzinfo=UTC)
                if isinstance(value, datetime) and 1970 < value.year < 9000:
                    return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
            except (yaml.YAMLError, ValueError, OverflowError, TypeError, KeyError):
                pass
            finally:
                loader.dispose()
        self.fault(node, "timestamp is a moment such as 2024-01-17T14:30:00.")
        return None

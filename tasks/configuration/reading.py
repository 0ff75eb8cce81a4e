"""Core: reads the settings of a project, and agents, from a YAML file.

The files of the designs are read as they are: their keys, their nesting, their capitals, and values in the
annotated form `{_description: ..., value: 7}`. All faults are reported at once, each with its line.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import yaml

from tasks.configuration import schema
from tasks.configuration.policy import SETTINGS, ProjectSettings, completed
from tasks.configuration.yaml_files import Fault, FaultyFile, compose
from tasks.configuration.yaml_files import line_of as node_line
from tasks.states import Severity

SIZE_MAX = 256 * 1024
PLACES = {entry.path or key: key for key, entry in SETTINGS.items()}
SECTIONS = {path.rsplit(".", back)[0] for path in PLACES for back in range(1, path.count(".") + 1)}
# What is not mandatory is optional; a file may list both, and then they must not contradict each other.
OPTIONAL = {
    path.replace(".mandatory", ".optional"): key
    for path, key in PLACES.items()
    if path.endswith(".mandatory")
}
AGENTS = "agents"
KIND, KINDS = (
    "kind",
    schema.Choice(("code", "documents")),
)  # of the project: a column of its row, not a setting
AGENT_KEYS: dict[str, schema.Kind] = {
    "name": schema.Text(),
    "type": schema.Text(),
    "command": schema.Text(),
    "role": schema.Choice(("coder", "reviewer", "judge", "mediator")),
    "provider": schema.Text(),
    "model": schema.Text(),
    "vendor": schema.Text(),
    "tier": schema.Text(),
    "instructions": schema.Text(),
    "domains": schema.Texts(),
    "watches": schema.Texts(),
    "focus": schema.Text(),
    "priority": schema.Whole(-1000, 1000),
    "slots": schema.Whole(1, 1000),
    "pass": schema.Texts(),
    "cassettes": schema.Text(),
    "program": schema.Text(),
    "base_url": schema.Text(),
    "key": schema.Text(),
    "sign_in_file": schema.Text(),
    "account": schema.Text(),
    "hosts": schema.Texts(),
    "again": schema.Texts(),
    "active": schema.Flag(),
}
# The keys that say how an agent is started; it may have at most one of them.
STARTS = ("command", "cassettes", "provider")


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """An agent as a file describes it: the keys that the file gives, checked, and the line of each."""

    values: dict[str, Any]
    line: int
    lines: dict[str, int] = field(default_factory=dict)

    def fault(self, key: str, message: str) -> Fault:
        """Return the fault at the line of this key."""
        return Fault(self.lines.get(key, self.line), f"agents, {self.values.get('name', '?')}: {message}")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The contents of a file: settings by key, each valid by itself, and agents."""

    values: dict[str, Any]
    agents: tuple[AgentEntry, ...]
    lines: dict[str, int]
    kind: str = ""  # of the project; empty if the file does not say it

    def over(self, base: ProjectSettings) -> ProjectSettings:
        """Return the settings `base` overlaid with the file's. Raises FaultyFile if they conflict."""
        try:
            return base.replaced(self.values)
        except schema.SettingsError as error:
            raise FaultyFile([Fault(self._line_of(error, base), str(error))]) from error

    def _line_of(self, error: schema.SettingsError, base: ProjectSettings) -> int:
        """Return the line of the error's key, or of the key without which there would be no error.

        If two values do not go together, the file may contain only one of them, under another key.
        """
        if error.key in self.lines:
            return self.lines[error.key]
        for key in self.values:
            try:
                base.replaced({other: value for other, value in self.values.items() if other != key})
            except schema.SettingsError:
                continue
            return self.lines[key]
        return 1


# --- Reading ----------------------------------------------------------------------------------------------


def read_settings(text: str) -> SettingsFile:
    """Return the contents of a YAML file. Raises FaultyFile with all faults; then nothing may be used."""
    reader = _Reader()
    root = compose(text, SIZE_MAX)
    if root is not None:
        reader.section(root, "")
    reader.reconcile()
    if reader.faults:
        raise FaultyFile(reader.faults)
    return SettingsFile(reader.values, tuple(reader.agents), reader.lines, reader.kind)


def read_value(kind: schema.Kind, text: str, key: str) -> Any:
    """Return one value written in YAML, such as a ladder. Raises FaultyFile."""
    reader = _Reader()
    node = compose(text, SIZE_MAX)
    value = None if node is None else reader.plain(node, key)
    if not reader.faults:
        try:
            return kind.check(key, kind.read(value))
        except schema.SettingsError as error:
            reader.faults.append(Fault(reader.line_of(error.key, 1), str(error)))
    raise FaultyFile(reader.faults)


def _is_annotated(node: yaml.Node) -> bool:
    """Whether the node is a value with notes beside it: `{_description: ..., _default: 7, value: 7}`."""
    if not isinstance(node, yaml.MappingNode):
        return False
    names = {name.value for name, _ in node.value if isinstance(name, yaml.ScalarNode)}
    return (
        len(names) == len(node.value)
        and all(n == "value" or n.startswith("_") for n in names)
        and names != set()
    )


class _Reader:
    """One walk over the nodes, which does not go below a faulty one, so that aliases cannot blow it up."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.agents: list[AgentEntry] = []
        self.kind = ""
        self.lines: dict[str, int] = {}  # by the program's own keys, such as policy.low
        self.faults: list[Fault] = []
        self.optional: dict[str, tuple[list[str], int]] = {}

    def fault(self, node: yaml.Node, message: str) -> None:
        self.faults.append(Fault(node_line(node), message))

    def line_of(self, key: str, otherwise: int) -> int:
        """Return the line of the key, or else of the nearest key around it, or else `otherwise`."""
        while key:
            if key in self.lines:
                return self.lines[key]
            key = key.rpartition(".")[0]
        return otherwise

    def entries(self, node: yaml.Node, where: str) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yield each entry's name, the name's node and the value's node; report duplicate names."""
        if not isinstance(node, yaml.MappingNode):
            self.fault(node, f"{where or 'the file'} holds keys with values: `key: value`.")
            return
        seen: set[str] = set()
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                self.fault(name, f"{where or 'the file'} has a key that is no word.")
            elif name.value in seen:
                self.fault(name, f"{_join(where, name.value)} stands there twice.")
            else:
                seen.add(name.value)
                yield name.value, name, value

    def section(self, node: yaml.Node, where: str) -> None:
        """Read a mapping of settings and further sections. An empty section is ignored."""
        if where and isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return
        for word, name, value in self.entries(node, where):
            path = _join(where, word)
            if word.startswith("_"):
                continue  # a note
            if path in PLACES:
                self.setting(PLACES[path], path, name, value)
            elif path in OPTIONAL:
                self.note_optional(path, name, value)
            elif path in SECTIONS:
                self.section(value, path)
            elif path == AGENTS:
                self.read_agents(value)
            elif path == KIND:
                self.read_kind(name, value)
            else:
                self.fault(name, f"{path} is unknown.{_meant(path)}")

    def read_kind(self, name: yaml.Node, node: yaml.Node) -> None:
        self.lines[KIND] = node_line(name)
        value, ok = self.value(KINDS, KIND, KIND, node)
        if ok:
            try:
                self.kind = KINDS.check(KIND, value)
            except schema.SettingsError as error:
                self.faults.append(Fault(node_line(name), str(error)))

    def setting(self, key: str, path: str, name: yaml.Node, node: yaml.Node) -> None:
        kind = SETTINGS[key].kind
        self.lines[key] = node_line(name)
        value, ok = self.value(kind, key, path, node)
        if not ok:
            return
        try:
            checked = kind.check(key, completed(key, value))
        except schema.SettingsError as error:
            self.faults.append(Fault(self.line_of(error.key, node_line(name)), _in_file(error, key, path)))
            return
        self.values[key] = value if isinstance(kind, schema.PerSeverity) else kind.plain(checked)

    def value(self, kind: schema.Kind, key: str, path: str, node: yaml.Node) -> tuple[Any, bool]:
        """Return the value in the program's spelling, and whether it could be read at all."""
        if not isinstance(kind, schema.Ladders) and _is_annotated(node):
            inner = [value for name, value in node.value if name.value == "value"]
            if len(inner) != 1:
                self.fault(node, f"{path} has notes and not one value.")
                return None, False
            node = inner[0]
        before = len(self.faults)
        value = kind.read(self.plain(node, key))
        return value, len(self.faults) == before

    def plain(self, node: yaml.Node, key: str, depth: int = 3) -> Any:
        """Return the node as Python values; nesting deeper than any setting has is a fault."""
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, key)
        if depth == 0:
            self.fault(node, f"{key} is nested too deeply.")
            return None
        if isinstance(node, yaml.SequenceNode):
            items = []
            for number, item in enumerate(node.value, 1):
                self.lines[f"{key}.{number}"] = node_line(item)
                inside = f"{key}.{number}" if isinstance(item, yaml.MappingNode) else key
                items.append(self.plain(item, inside, depth - 1))
            return items
        found = {}
        for word, name, value in self.entries(node, key):
            self.lines[f"{key}.{word}"] = node_line(name)
            found[word] = self.plain(value, f"{key}.{word}", depth - 1)
        return found

    def scalar(self, node: yaml.ScalarNode, key: str) -> Any:
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError, TypeError, KeyError):
            self.fault(node, f"{key} holds a value that cannot be read.")
            return None
        finally:
            loader.dispose()

    def note_optional(self, path: str, name: yaml.Node, node: yaml.Node) -> None:
        key = OPTIONAL[path]
        kind = SETTINGS[key].kind
        value, ok = self.value(kind, key, path, node)
        if not ok:
            return
        try:
            kind.check(key, value)
        except schema.SettingsError as error:
            self.fault(name, _in_file(error, key, path))
            return
        self.optional[key] = (value, node_line(name))

    def reconcile(self) -> None:
        """Check that mandatory and optional severities do not overlap, and add CRITICAL if HIGH is mandatory.

        The designs do not have CRITICAL, so it goes with HIGH unless the file names it.
        """
        for key, (words, line) in self.optional.items():
            path = SETTINGS[key].path
            if key not in self.values:
                self.faults.append(Fault(line, f"{path} has to stand beside what is optional."))
            elif both := sorted(set(words) & set(self.values[key])):
                self.faults.append(Fault(line, f"{', '.join(both)} cannot be both mandatory and optional."))
        named = self.values.get("mandatory", [])
        optional, _ = self.optional.get("mandatory", ([], 0))
        if Severity.HIGH in named and Severity.CRITICAL not in [*named, *optional]:
            self.values["mandatory"] = [Severity.CRITICAL.value, *named]

    # --- Agents

    def read_agents(self, node: yaml.Node) -> None:
        if not isinstance(node, yaml.SequenceNode):
            self.fault(node, "agents is a list: `- name: ...` for each.")
            return
        for item in node.value:
            entry = self.agent(item)
            if entry.values.get("name") in {other.values["name"] for other in self.agents}:
                self.faults.append(entry.fault("name", "stands there twice."))
            elif "name" in entry.values:
                self.agents.append(entry)

    def agent(self, node: yaml.Node) -> AgentEntry:
        entry = AgentEntry({}, node_line(node))
        before = len(self.faults)
        for word, name, value in self.entries(node, AGENTS):
            entry.lines[word] = node_line(name)
            if word not in AGENT_KEYS:
                close = get_close_matches(word, AGENT_KEYS, 1)
                hint = f" Did you mean {close[0]}?" if close else f" Known are {', '.join(AGENT_KEYS)}."
                self.fault(name, f"agents: {word} is unknown.{hint}")
                continue
            kind = AGENT_KEYS[word]
            said, ok = self.value(kind, word, f"agents.{word}", value)
            if ok:
                try:
                    entry.values[word] = kind.check(word, said)
                except schema.SettingsError as error:
                    self.fault(name, f"agents.{error}")
        if len(self.faults) == before:
            self.faults += _faults_of(entry)
        return entry


def _faults_of(entry: AgentEntry) -> Iterator[Fault]:
    for key in ("name", "role"):
        if not entry.values.get(key):
            yield entry.fault(key, f"{key} is missing.")
    starts = [key for key in STARTS if key in entry.values]
    if len(starts) > 1:
        yield entry.fault(starts[-1], f"an agent has a {starts[0]} or {starts[-1]}, not both.")
    try:
        if "command" in entry.values and not shlex.split(entry.values["command"]):
            yield entry.fault("command", "command is empty.")
    except ValueError as error:
        yield entry.fault("command", f"command cannot be split into words: {error}.")


def _join(where: str, word: str) -> str:
    return f"{where}.{word}" if where else word


def _meant(path: str) -> str:
    """Return a hint for a key that is unknown in its place; empty if there is none."""
    own_name = path.rpartition(".")[2]
    if own_name in SETTINGS and SETTINGS[own_name].path:
        return f" It is written {SETTINGS[own_name].path}."
    close = get_close_matches(path, [*PLACES, *SECTIONS, *OPTIONAL, AGENTS], 1)
    return f" Did you mean {close[0]}?" if close else ""


def _in_file(error: schema.SettingsError, key: str, path: str) -> str:
    """Return the error's message with the key as it is written in the file."""
    message = str(error)
    return f"{path}{message.removeprefix(key)}" if message.startswith(key) else f"{path}: {message}"

"""Core: writes the settings of a project, and agents, as a YAML file that `reading` reads."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import yaml

from tasks.configuration.policy import GROUPS, SETTINGS, ProjectSettings, default_of
from tasks.configuration.reading import KIND, OPTIONAL, PLACES
from tasks.configuration.schema import Words


def write_settings(
    settings: ProjectSettings,
    agents: Sequence[Mapping[str, Any]] = (),
    title: str = "",
    kind: str = "",
) -> str:
    """Return every setting with its help, as YAML that `read_settings` reads back to the same values."""
    lines = [f"# {title}"] if title else []
    if kind:
        lines += ["", "# What the project's tasks are: code or documents.", f"{KIND}: {kind}"]
    done: list[str] = []  # the sections around the current line
    for path in _in_order():
        *sections, word = path.split(".")
        while done != sections[: len(done)]:
            done.pop()
        if not done:
            lines.append("")
        for name in sections[len(done) :]:
            lines.append(f"{'  ' * len(done)}{name}:")
            done.append(name)
        indent = "  " * len(done)
        lines += [f"{indent}# {line}" for line in _comment(path, 100 - len(indent))]
        lines += [f"{indent}{line}" for line in _entry(word, _value(path, settings))]
    if agents:
        lines += ["", "agents:", *(f"  {line}" for line in _dump([dict(agent) for agent in agents]))]
    return "\n".join(lines).strip() + "\n"


def write_reference() -> str:
    """Return every setting with its default, range and help as Markdown tables, one for each group."""
    lines: list[str] = []
    for group in GROUPS:
        lines += [f"### {group}", "", "| Key | Default | Accepts | What it does |", "|---|---|---|---|"]
        for key, entry in SETTINGS.items():
            if entry.group == group:
                name = f"`{key}`" + (f", in a file `{entry.path}`" if entry.path else "")
                lines.append(f"| {name} | {default_of(key)} | {entry.kind.says()} | {entry.help} |")
        lines.append("")
    return "\n".join(lines)


def _in_order() -> list[str]:
    """Return the paths by group, with sections kept together and optional lists after mandatory ones."""
    paths = [entry.path or key for group in GROUPS for key, entry in SETTINGS.items() if entry.group == group]
    for optional, key in OPTIONAL.items():
        paths.insert(paths.index(SETTINGS[key].path) + 1, optional)
    first = {path.partition(".")[0]: number for number, path in reversed(list(enumerate(paths)))}
    second = {path.rpartition(".")[0]: number for number, path in reversed(list(enumerate(paths)))}
    return sorted(paths, key=lambda path: (first[path.partition(".")[0]], second[path.rpartition(".")[0]]))


def _value(path: str, settings: ProjectSettings) -> Any:
    if path in OPTIONAL:
        kind, named = SETTINGS[OPTIONAL[path]].kind, getattr(settings, OPTIONAL[path])
        return [word for word in kind.words if word not in named] if isinstance(kind, Words) else []
    return settings.plain(PLACES[path])


def _comment(path: str, width: int) -> list[str]:
    if path in OPTIONAL:
        return ["The others."]
    return wrap(f"{SETTINGS[PLACES[path]].help} Default: {default_of(PLACES[path])}.", width)


def _entry(word: str, value: Any) -> list[str]:
    if isinstance(value, list):
        return [f"{word}: {_dump(value, flow=True)[0]}"]
    return _dump({word: int(value) if isinstance(value, float) and value.is_integer() else value})


class _Dumper(yaml.SafeDumper):
    """Quotes texts that contain unprintable characters or line ends, which YAML would fold or drop."""


def _quoted(dumper: _Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _quoted)


def _dump(value: Any, *, flow: bool = False) -> list[str]:
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=flow
    )
    return text.removesuffix("\n").split("\n")

"""Core: the jobs described by the files of continuous integration services.

The files are hostile: they are read as YAML nodes within bounds, no tag creates an object, and the expansion
of aliases is bounded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from agents.recipes import matrix
from agents.recipes.matrix import OTHER_SYSTEM
from agents.recipes.tree import Tree, at, strings, table
from tasks.configuration.yaml_files import FaultyFile, compose
from tasks.text.regex import regex

FILES = 8  # files read
CHARACTERS = 60_000  # characters of one file
NODES = 8_000  # YAML nodes read from one file
DEPTH = 12
JOBS = 40
STEPS = 40


SHELL = regex(r"(?:script\s[^;|&]{0,40})?\b(?:ba)?sh\b")  # `script` only lends it a terminal
# Events of which at least one starts a workflow that says something about a change.
CHANGES = {"push", "pull_request", "pull_request_target", "merge_group", "workflow_call", "workflow_dispatch"}
# Conditions of a step that runs on Linux, and of one that runs only on other systems.
NOT = r"(?i)(?:!=\s*|!\s*(?:startsWith|contains)\([^()]{0,60},\s*)['\"]?"
HERE = regex(rf"{NOT}(?:windows|macos|darwin)|ubuntu|linux|success\(\)")
ELSEWHERE = regex(rf"{NOT}(?:ubuntu|linux)")


@dataclass(frozen=True, slots=True)
class Script:
    """One script of a job, where it runs, and the variables that are set for it."""

    text: str
    name: str = ""
    folder: str = ""
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """Steps that run one after another on a fresh machine."""

    file: str
    name: str
    steps: list[Script] = field(default_factory=list)
    has_python: bool = False  # it sets up Python for whatever its steps call


def jobs(tree: Tree) -> Iterator[Job]:
    """Yield the jobs of every service whose files are in the repository, up to a bound."""
    rows = (
        (r"\.github/workflows/[^/]+\.ya?ml", _github),
        (r"\.gitlab-ci\.ya?ml", _gitlab),
        (r"\.travis\.ya?ml", _travis),
        (r"\.circleci/config\.ya?ml", _circle),
        (r"\.?azure-pipelines[\w.-]*\.ya?ml|\.azure-pipelines/[^/]+\.ya?ml", _azure),
        (r"\.cirrus\.ya?ml", _cirrus),
        (r"\.builds?/[^/]+\.ya?ml|\.build\.ya?ml", _sourcehut),
    )
    seen = 0
    for pattern, read_jobs in rows:
        for path in tree.matching(pattern):
            seen += 1
            if seen > FILES:
                return
            for number, job in enumerate(read_jobs(path, load(tree.text(path)))):
                if number >= JOBS:
                    break
                yield job


def load(text: str) -> dict[str, Any]:
    """Return a YAML file as tables, lists and strings; every scalar is text, so "3.10" stays what it is.

    The result is empty if the text is no such file. Whatever exceeds the bounds is left out.
    """
    try:
        root = compose(text, CHARACTERS)
    except (FaultyFile, yaml.YAMLError, ValueError):
        return {}
    return table(_Reader(NODES).value(root, DEPTH))


class _Reader:
    """Reads values from YAML nodes within a budget; an alias costs as much as what it refers to."""

    def __init__(self, nodes: int) -> None:
        self.left = nodes

    def value(self, node: yaml.Node | None, depth: int) -> Any:
        self.left -= 1
        if self.left < 0 or depth < 0:
            return None
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth - 1) for item in node.value if self.left > 0]
        if isinstance(node, yaml.MappingNode):
            return self._table(node, depth)
        return None

    def _table(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, below in node.value:
            if self.left <= 0:
                break
            if not isinstance(key, yaml.ScalarNode):
                continue
            value = self.value(below, depth - 1)
            if key.value == "<<":  # the table's own keys take precedence over merged ones
                for merged in value if isinstance(value, list) else [value]:
                    found = {**table(merged), **found}
            else:
                found[str(key.value)] = value
        return found


def _github(path: str, data: dict[str, Any]) -> Iterator[Job]:
    events = strings(data.get("on")) or list(table(data.get("on")))
    if events and not CHANGES & set(events):
        return
    for key, job in table(data.get("jobs")).items():
        machines = _machines(job)
        if machines and all(OTHER_SYSTEM.search(machine) for machine in machines):
            continue
        steps = at(job, "steps")
        known = matrix.values_of(at(job, "strategy", "matrix"))
        found = [_github_step(step, job, data, known) for step in steps] if isinstance(steps, list) else []
        used = [str(at(step, "uses")) for step in steps] if isinstance(steps, list) else []
        has_python = any(name.startswith("actions/setup-python@") for name in used)
        yield Job(path, str(at(job, "name") or key), [step for step in found if step], has_python)


def _machines(job: Any) -> list[str]:
    """Return what is known of the machines that a job runs on, one after another; empty if nothing is."""
    runs_on = " ".join(strings(at(job, "runs-on")))
    varied = matrix.VALUE.fullmatch(runs_on)
    if not varied:
        return [] if "${{" in runs_on or not runs_on else [runs_on]
    combinations = at(job, "strategy", "matrix")
    name, _, below = varied[1].partition(".")
    listed, included = at(combinations, name), at(combinations, "include")
    values = listed if isinstance(listed, list) else []
    values = values + [at(row, name) for row in (included if isinstance(included, list) else [])]
    return [text for value in values for text in strings(at(value, below) if below else value)]


def _github_step(step: Any, job: Any, data: dict[str, Any], known: dict[str, str]) -> Script | None:
    """Return what the step runs in a shell on Linux, or None if it does something else.

    `known` has the values of the job's matrix.
    """
    step = matrix.filled(step, known)
    defaults = matrix.filled(at(job, "defaults", "run") or at(data, "defaults", "run"), known)
    text, condition = at(step, "run"), str(at(step, "if") or "")
    shell = str(at(step, "shell") or at(defaults, "shell") or "bash")
    if not isinstance(text, str) or not SHELL.match(shell):
        return None
    if at(step, "if") is not None and (ELSEWHERE.search(condition) or not HERE.search(condition)):
        return None
    folder = str(at(step, "working-directory") or at(defaults, "working-directory") or "")
    variables = _variables(
        table(at(data, "env")), table(matrix.filled(at(job, "env"), known)), table(at(step, "env"))
    )
    return Script(text, str(at(step, "name") or ""), folder, variables)


def _gitlab(path: str, data: dict[str, Any]) -> Iterator[Job]:
    before = at(data, "before_script") or at(data, "default", "before_script")
    for key, job in data.items():
        job = {**table(data.get(str(at(job, "extends")))), **table(job)}
        runners = " ".join(strings(job.get("tags")))
        if not job.get("script") or key.startswith(".") or re.search(r"(?i)windows|macos", runners):
            continue
        variables = _variables(table(data.get("variables")), table(job.get("variables")))
        lines = [*_texts(job.get("before_script") or before), *_texts(job.get("script"))]
        yield Job(path, key, [Script(line, key, "", variables) for line in lines])


def _travis(path: str, data: dict[str, Any]) -> Iterator[Job]:
    phases = ("before_install", "install", "before_script", "script")
    lines = [Script(line, phase) for phase in phases for line in _texts(data.get(phase))]
    if data.get("script"):
        yield Job(path, "script", lines)


def _circle(path: str, data: dict[str, Any]) -> Iterator[Job]:
    for key, job in table(data.get("jobs")).items():
        steps = []
        for step in at(job, "steps") if isinstance(at(job, "steps"), list) else []:
            run = at(step, "run")
            text = run if isinstance(run, str) else at(run, "command")
            if isinstance(text, str):
                folder = str(at(run, "working_directory") or "")
                steps.append(
                    Script(
                        text, str(at(run, "name") or ""), folder, _variables(table(at(run, "environment")))
                    )
                )
        yield Job(path, key, steps)


def _azure(path: str, data: dict[str, Any]) -> Iterator[Job]:
    """Yield the jobs of a file in which lists of steps are found in stages, in jobs or at the top."""
    queue: list[tuple[Any, str]] = [(data, "")]
    for _ in range(400):
        if not queue:
            return
        value, name = queue.pop(0)
        below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        label = str(at(value, "displayName") or at(value, "job") or name)
        steps = at(value, "steps")
        if isinstance(steps, list):
            found = [
                Script(text, str(at(step, "displayName") or ""), str(at(step, "workingDirectory") or ""),
                     _variables(table(at(step, "env"))))
                for step in steps if isinstance(text := at(step, "script") or at(step, "bash"), str)
            ]  # fmt: skip
            yield Job(path, label, found)
        queue += [(item, label) for item in below if isinstance(item, dict | list)]


def _cirrus(path: str, data: dict[str, Any]) -> Iterator[Job]:
    for key, job in data.items():
        if key.endswith("task") and not re.search(r"(?i)freebsd|windows|macos", str(sorted(table(job)))):
            lines = [
                Script(text, name)
                for name, value in table(job).items() if name.endswith("_script")
                for text in _texts(value)
            ]  # fmt: skip
            yield Job(path, str(at(job, "name") or key), lines)


def _sourcehut(path: str, data: dict[str, Any]) -> Iterator[Job]:
    tasks = data.get("tasks")
    steps = [
        Script(text, name)
        for task in (tasks if isinstance(tasks, list) else [])
        for name, text in table(task).items() if isinstance(text, str)
    ]  # fmt: skip
    yield Job(path, "tasks", steps)


def _texts(value: object) -> list[str]:
    """Return the scripts of a list that may contain lists, as services let people write them."""
    if isinstance(value, list):
        return [text for item in value[:STEPS] for text in strings(item)]
    return strings(value)


def _variables(*tables: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return plain variables that a script may want: no expressions, and no names of secrets or images."""
    merged: dict[str, Any] = {}
    for one in tables:
        merged |= one
    return tuple(
        (name, value)
        for name, value in list(merged.items())[:20]
        if re.fullmatch(r"[A-Za-z_]\w{0,60}", name)
        and isinstance(value, str)
        and re.fullmatch(r"[\w .,:/=+@%-]{0,200}", value)
        and not re.search(
            r"(?i)token|secret|password|key|colou?r|docker|container|^(PIP|CARGO|UV|NPM|RUSTUP)_|^\w*FLAGS$|_VERSION$|^(PATH|HOME|CI|SHELL|IFS|ENV|BASH_ENV|LD_\w+)$",
            name,
        )
    )

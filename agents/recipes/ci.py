"""Core: what the repository's own continuous integration runs, read from its files and only ever proposed.

The files are hostile: they are read as nodes within bounds, no tag makes anything, and aliases are not expanded
without end. What needs secrets, another system, root or a registry to publish to is left out; so is whatever holds
an expression of the service, which nobody here can fill in.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from agents.recipes.node import manager_of
from agents.recipes.ranks import Candidate, Rank
from agents.recipes.recipe import Recipe
from agents.recipes.tree import Tree, at, strings, table, words
from tasks.yaml_files import FaultyFile, compose

KIND = "ci"
FILES = 8  # workflow files that are read
CHARACTERS = 60_000  # of one file
NODES = 8_000  # that are taken out of one file
DEPTH = 12
JOBS = 40
STEPS = 40
LINES = 40  # of one step
BEST = 2  # recipes that are proposed


@dataclass(frozen=True, slots=True)
class Step:
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
    steps: list[Step] = field(default_factory=list)


def candidates(tree: Tree) -> list[Candidate]:
    """The best of what the repository's own files run as tests."""
    rated = []
    for job in _jobs(tree):
        recipe, dropped = _recipe(tree, job)
        if recipe:
            rated.append((_strangeness(job) + dropped, recipe))
    rated.sort(key=lambda pair: pair[0])
    best = list(dict.fromkeys(recipe for _, recipe in rated))[:BEST]
    return [Candidate(Rank.CI, KIND, recipe) for recipe in best]


def _strangeness(job: Job) -> int:
    """How far a job seems from the plain tests on a plain system."""
    odd = re.compile(
        r"(?i)lint|docs?\b|release|publish|deploy|nightly|cron|schedule|coverage|windows|macos|bench|fuzz|wasm|\barm"
        r"|cross|sanit|valgrind|integration|e2e|browser|style|format|types|mypy|minimal|msrv|oldest|pypy|downstream"
        r"|stale|label|codeql|cygwin|mingw|freebsd|emscripten|android|ios\b"
    )
    plain = re.compile(r"(?i)test|\bci\b|build|check|main")
    return 5 * len(odd.findall(f"{job.file} {job.name}")) + (
        0 if plain.search(f"{job.file} {job.name}") else 2
    )


# --- The files --------------------------------------------------------------------------------------------


def _jobs(tree: Tree) -> Iterator[Job]:
    rows = (
        (r"\.github/workflows/[^/]+\.ya?ml", _github),
        (r"\.gitlab-ci\.ya?ml", _gitlab),
        (r"\.travis\.ya?ml", _travis),
        (r"\.circleci/config\.ya?ml", _circle),
        (r"\.?azure-pipelines[\w.-]*\.ya?ml|\.azure-pipelines/[^/]+\.ya?ml", _azure),
        (r"\.cirrus\.ya?ml", _cirrus),
        (r"\.builds?/[^/]+\.ya?ml|\.build\.ya?ml", _sourcehut),
    )
    read = 0
    for pattern, jobs in rows:
        for path in tree.matching(pattern):
            read += 1
            if read > FILES:
                return
            for number, job in enumerate(jobs(path, load(tree.text(path)))):
                if number >= JOBS:
                    break
                yield job


def load(text: str) -> dict[str, Any]:
    """A YAML file of tables, lists and strings; every scalar is text, and "3.10" stays what it is.

    Empty where it is no such file. What lies beyond the bounds is left out.
    """
    try:
        root = compose(text, CHARACTERS)
    except (FaultyFile, yaml.YAMLError, ValueError):
        return {}
    return table(_Reader(NODES).value(root, DEPTH))


class _Reader:
    """Takes values out of nodes, and no more of them than it may; an alias costs what it stands for."""

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
            if key.value == "<<":  # what is merged in gives way to what stands there itself
                for merged in value if isinstance(value, list) else [value]:
                    found = {**table(merged), **found}
            else:
                found[str(key.value)] = value
        return found


def _github(path: str, data: dict[str, Any]) -> Iterator[Job]:
    for key, job in table(data.get("jobs")).items():
        runs_on = " ".join(strings(at(job, "runs-on"))) or "linux"
        if re.search(r"(?i)windows|macos|mac-", runs_on) and "${{" not in runs_on:
            continue
        defaults = at(job, "defaults", "run") or at(data, "defaults", "run")
        steps = []
        for step in at(job, "steps") or [] if isinstance(at(job, "steps"), list) else []:
            text, condition = at(step, "run"), str(at(step, "if") or "")
            shell = str(at(step, "shell") or at(defaults, "shell") or "bash")
            if not isinstance(text, str) or not re.match(r"(ba)?sh\b", shell):
                continue
            if condition and not re.search(r"(?i)ubuntu|linux|success\(\)", condition):
                continue
            folder = str(at(step, "working-directory") or at(defaults, "working-directory") or "")
            variables = _variables(table(at(data, "env")), table(at(job, "env")), table(at(step, "env")))
            steps.append(Step(text, str(at(step, "name") or ""), folder, variables))
        yield Job(path, str(at(job, "name") or key), steps)


def _gitlab(path: str, data: dict[str, Any]) -> Iterator[Job]:
    before = at(data, "before_script") or at(data, "default", "before_script")
    for key, job in data.items():
        job = {**table(data.get(str(at(job, "extends")))), **table(job)}
        if not job.get("script") or key.startswith("."):
            continue
        variables = _variables(table(data.get("variables")), table(job.get("variables")))
        lines = [*_texts(job.get("before_script") or before), *_texts(job.get("script"))]
        yield Job(path, key, [Step(line, key, "", variables) for line in lines])


def _travis(path: str, data: dict[str, Any]) -> Iterator[Job]:
    phases = ("before_install", "install", "before_script", "script")
    lines = [Step(line, phase) for phase in phases for line in _texts(data.get(phase))]
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
                    Step(text, str(at(run, "name") or ""), folder, _variables(table(at(run, "environment"))))
                )
        yield Job(path, key, steps)


def _azure(path: str, data: dict[str, Any]) -> Iterator[Job]:
    """Lists of steps lie in stages, in jobs or at the top."""
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
                Step(text, str(at(step, "displayName") or ""), str(at(step, "workingDirectory") or ""),
                     _variables(table(at(step, "env"))))
                for step in steps if isinstance(text := at(step, "script") or at(step, "bash"), str)
            ]  # fmt: skip
            yield Job(path, label, found)
        queue += [(item, label) for item in below if isinstance(item, dict | list)]


def _cirrus(path: str, data: dict[str, Any]) -> Iterator[Job]:
    for key, job in data.items():
        if key.endswith("task") and not re.search(r"(?i)freebsd|windows|macos", str(sorted(table(job)))):
            lines = [
                Step(text, name)
                for name, value in table(job).items() if name.endswith("_script")
                for text in _texts(value)
            ]  # fmt: skip
            yield Job(path, str(at(job, "name") or key), lines)


def _sourcehut(path: str, data: dict[str, Any]) -> Iterator[Job]:
    tasks = data.get("tasks")
    steps = [
        Step(text, name)
        for task in (tasks if isinstance(tasks, list) else [])
        for name, text in table(task).items() if isinstance(text, str)
    ]  # fmt: skip
    yield Job(path, "tasks", steps)


def _texts(value: object) -> list[str]:
    """The scripts of a list that may hold lists, as services let people write them."""
    if isinstance(value, list):
        return [text for item in value[:STEPS] for text in strings(item)]
    return strings(value)


def _variables(*tables: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Plain variables that a script may want; no expression, and nothing that is called a secret."""
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
            r"(?i)token|secret|password|key|^(PATH|HOME|CI|SHELL|IFS|ENV|BASH_ENV|LD_\w+)$", name
        )
    )


# --- From steps to a recipe -------------------------------------------------------------------------------

# What nobody wants to run to see whether tests pass.
BANNED = re.compile(
    r"(?i)\$\{\{|\$\[\[|<<\s*(pipeline|parameters)|\$\(\w+\)\s*$|\bsecrets?\b|\btoken\b"
    r"|\b(docker|podman|buildah|kubectl|helm|terraform|aws|gcloud|gsutil|az|gh|hub|twine|codecov|coveralls|sonar\S*"
    r"|ssh|scp|sftp|rsync|gpg|brew|choco|apt|apt-get|aptitude|yum|dnf|apk|pacman|zypper|snap|systemctl|service|su|sudo"
    r"|wget|nvm|rvm|asdf|conda|mamba|micromamba|crontab|shutdown|reboot|mkfs|dd|sysctl|modprobe|mount|chown)\b"
    r"|\bcurl\b|\bgit\s+(push|tag|commit|config|remote|clone|fetch|checkout|lfs)\b|\b(publish|deploy|release|upload)\b"
    r"|(?<![\w-])semantic-release|\bcargo\s+(install|publish)|\brustup\b|\bcargo\s+binstall"
    r"|\$\{?(GITHUB|CI|RUNNER|BUILD|SYSTEM|AGENT|TRAVIS|CIRCLE|MATRIX)_\w+|(make|ninja|cmake --build \S+ --target)\s+install"
    r"|\brm\s+-\w*r\w*\s+(/|~|\$)|>\s*/(?!dev/null)"
)
# The shell's own constructs, which cannot be taken apart line by line.
CONSTRUCT = re.compile(
    r"^\s*(if|for|while|until|case|function|select|\{|\()\b|<<-?\s*['\"]?\w|\(\)\s*\{|^\s*[{(]"
)
TEST = re.compile(
    r"(?<![\w/.-])(pytest|py\.test|tox|nox|unittest|nosetests|stestr|trial|ctest|phpunit|prove|rspec|busted|bats|behat|pest"
    r"|testthat)\b(?!\s*(=|<|>|\[))|\bcoverage\s+run\b|\bmanage\.py\s+test\b|\b\w*runtests?\.py\b|\brun_tests?(\.\w+)?\b"
    r"|\b(npm|pnpm|yarn|bun)\s+(run\s+|-r\s+|--recursive\s+)?(t|tst|test[\w:-]*|unit[\w:-]*|ci:test|tests)\b"
    r"|\b(make|gmake|just|task|ninja|rake|composer|ant|bazel|deno|zig build|zig|swift|dotnet|mix|lein|sbt|stack|cabal"
    r"|dune|rebar3|crystal|nimble|dart|flutter|Build)\b(\s+-\S+(\s+(?=\S+\s)[\w./-]+)?)*\s+['\"]?(test[\w:-]*|tests|check|spec|runtest"
    r"|unittests?|eunit)\b|\b(cargo|go)\s+(test|nextest)\b|\b(mvnw?|gradlew?)\b.*\b(test|verify|check|build|package|install)\b"
    r"|\bmeson\s+test\b|(^|\s)(\./|sh |bash )?[\w./-]*\b(test|tests|check|run[-_]tests?|unit[-_]?tests?)\.(sh|py|rb|pl)\b"
    r"|\bhatch\s+(run\s+(\S+:)?\S*test\S*|test)|\bnode\s+--test|\b(npx|pnpm|yarn)\s+(jest|vitest|mocha|ava|tap)\b"
    r"|\bcmake\s+--build\s+.*--target\s+(test|check)\b|(^|\s)\./[\w/.-]*tests?(?=\s|$)"
)
SETUP = re.compile(
    r"\b(pip3?|uv|poetry|pdm|pipenv|pipx|flit)\s+(install|sync|pip|lock|tool|add|venv)\b|\bpython3?\s+(-m\s+(pip|build|venv)|setup\.py)"
    r"|\b(npm|pnpm|yarn|bun)\b(\s+(ci|i|install|run\s+[\w:-]*(build|compile|generate|prepare|bootstrap)[\w:-]*|build|bootstrap)\b|\s*$|\s+--)"
    r"|\bbundle\s+(install|config|update)|\bgem\s+install|\bcomposer\s+(install|update)|\bcpan(m|\b)|\bgo\s+(mod|build|get|generate|vet)\b"
    r"|\bcargo\s+(build|fetch|check)|\bmix\s+(deps|compile|local)|(^|\s)(sh |bash )?(\./|\.\./)?(configure|autogen|bootstrap|buildconf)\b(\.sh)?"
    r"|\bautoreconf\b|^\s*(cmake|meson|make|ninja|mkdir|cd|export|pushd|qmake)\b|\b(mvnw?|gradlew?)\b|\bgit\s+submodule\b"
    r"|\bdotnet\s+(restore|build)|\b(swift|zig|dune|stack|cabal)\s+(build|update|package|setup)\b|\bperl\s+(Makefile|Build)\.PL"
)
NEEDED = (
    "tox",
    "nox",
    "uv",
    "poetry",
    "pdm",
    "hatch",
    "pipenv",
)  # that an action of the service would install
VARIABLE = re.compile(r"export\s+[A-Za-z_]\w*=[\w./:-]*")


def _recipe(tree: Tree, job: Job) -> tuple[Recipe | None, int]:
    """The recipe that a job amounts to, and how many of its telling lines had to be left out."""
    before: list[str] = []
    tests: list[str] = []
    said, dropped = "", 0
    for step in job.steps[:STEPS]:
        lines, lost = _lines(step)
        dropped += lost
        tested = any(TEST.search(line) for line in lines)
        kept = [line for line in lines if TEST.search(line) or (SETUP.search(line) and (tested or not tests))]
        if not any(not re.match(r"(cd|export|mkdir|pushd)\b", line) for line in kept):
            continue
        command = _placed(tree, step, kept)
        if tested:
            tests.append(command)
            said = said or step.name
        else:
            before.append(command)
    if not tests or len(tests) > 4:
        return None, dropped
    prepare = _with_tools(before, tests)
    where = f"{job.file}, step {said}" if said else f"{job.file}, job {job.name}"
    return Recipe(prepare, "", " && ".join(tests), " ".join(where.split())[:120]), dropped


def _lines(step: Step) -> tuple[list[str], int]:
    """The plain commands of a script, and how many that told something were left out."""
    text = step.text[:8000].replace("\\\n", " ")
    found, lost = [], 0
    if (
        CONSTRUCT.search(text)
        and len(text.splitlines()) > 1
        and any(map(CONSTRUCT.search, text.splitlines()))
    ):
        return [], 3 if TEST.search(text) or SETUP.search(text) else 0
    for line in text.splitlines()[:LINES]:
        line = " ".join(re.sub(r"(^|\s)#.*$", "", line).split())
        if not line or re.match(
            r"(set|echo|printf|which|type|true|:|date|pwd|ls|env|cat|python3? --version)\b", line
        ):
            continue
        telling = bool(TEST.search(line) or SETUP.search(line))
        if BANNED.search(line) or CONSTRUCT.search(line) or not _whole(line):
            lost += 2 if TEST.search(line) else int(telling)
        elif telling and (not line.startswith("export") or VARIABLE.fullmatch(line)):
            found.append(line)
    return found, lost


def _whole(line: str) -> bool:
    """Whether a line is a command of its own, with its quotes closed."""
    try:
        shlex.split(line)
    except ValueError:
        return False
    return len(line) <= 500 and not line.endswith(("&&", "||", "|", "&", "\\"))


def _placed(tree: Tree, step: Step, lines: list[str]) -> str:
    """The lines as one command, in the step's folder and with its variables."""
    command = " && ".join(_here(tree, line) for line in lines)
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in step.variables)
    parts = [f"cd {words(step.folder)}"] if re.fullmatch(r"[\w./-]{1,100}", step.folder) else []
    parts += [f"export {exports}"] if exports else []
    apart = parts or any(re.match(r"(cd|export|pushd)\b", line) for line in lines) or "||" in command
    return f"({' && '.join([*parts, command])})" if apart else command


def _here(tree: Tree, line: str) -> str:
    """The line as it runs in an environment of our own, without the service's ready-made programs."""
    line = re.sub(r"\buv\s+pip\s+install(\s+--system)?\b", "pip install", line)
    line = re.sub(r"\bpipx\s+install\b", "pip install", line)
    line = re.sub(r"(?<![\w-])(--user|--break-system-packages)(?![\w-])\s*", "", line).strip()
    if re.match(r"(pnpm|yarn|bun)\b", line) and "package.json" in tree:
        call = manager_of(tree).run.removesuffix(" run")
        name = line.split(" ", 1)[0]
        if name in call or name == "yarn" and "cli-dist" in call:
            line = call + line[len(name) :]
    return line


def _with_tools(before: list[str], tests: list[str]) -> str:
    """The steps before the tests, with the programs installed that a service has ready."""
    said = " && ".join(before)
    called = f"{said} {' '.join(tests)}"
    missing = [
        name for name in NEEDED
        if re.search(rf"(?:^|[\s(]){name}\s", f"{called} ")
        and not re.search(rf"\bpip3?\s+install\b[^&]*\b{name}\b", said)
    ]  # fmt: skip
    install = words("pip", "install", *missing) if missing else ""
    return " && ".join(part for part in (install, said) if part)

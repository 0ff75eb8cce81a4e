"""Core: what a Python project says its tests and developers need, wherever it says so.

The same thing may be written in a dozen places: extras, dependency groups, requirements files, the tables of
poetry, pdm, hatch and pipenv. Each becomes a `Set` that pip can install.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from posixpath import basename, dirname

from agents.recipes.tree import Tree, at, once, strings, table
from tasks.text.regex import regex

REQUIREMENTS = 80  # of one set, when they are spelled out
INCLUDES = 5  # groups and files that name others
# A requirement that can be repeated in a command: a name, extras, versions, a marker; no address, no path.
REQUIREMENT = regex(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,80})\s*(\[[\w\s,.-]{1,80}\])?"
    r"\s*(\(?[<>=!~][^;@\n'\"$`\\]{0,80}\)?)?\s*(;[^\n@$`\\]{1,200})?"
)
SEPARATORS = regex(r"[-_.]+")
TESTS = regex(r"(^|[-_.])(unit|all)?[-_]?(tests?|testing|unittests?|pytest)([-_.]|$)", re.IGNORECASE)
DEVELOPMENT = regex(r"(^|[-_.])(dev|devel|develop|development|developer|ci|all|full)([-_.]|$)", re.I)
# Tests need nothing from a set with such a name, even if the name also contains a word like test.
OTHER = regex(
    r"(^|[-_.])(docs?|documentation|lint|linting|linters?|typing|types|mypy|format|style|release|publish"
    r"|min|minimal|minimum|oldest|lowest|bench|benchmarks?|build|gpu|cuda|prod|production|deploy|docker|mutation"
    r"|fuzz|cov|coverage|pyright|ty|pyrefly|qa|pre-commit|debug|profile|windows|macos|pypy|conda|examples?|py2|py27|readthedocs|rtd)([-_.]|$)",
    re.IGNORECASE,
)


class Use(IntEnum):
    """What a set is for, as far as its name or its content tells."""

    TESTS = 0
    HAS_PYTEST = 1
    DEVELOPMENT = 2
    RUNTIME = 3
    OTHER = 4


@dataclass(frozen=True, slots=True)
class Set:
    """Requirements that belong together.

    `kind` is "extra", "group", "file" or "listed"; `where` names the place for people.
    """

    kind: str
    name: str
    where: str
    requirements: tuple[str, ...]

    @property
    def distributions(self) -> set[str]:
        """The normalized names of the distributions it requires."""
        return {normal(requirement) for requirement in self.requirements} - {""}

    @property
    def use(self) -> Use:
        """What the set is for."""
        label = self.name
        if self.kind == "file":
            label = re.sub(r"(^|[-_./])requirements?([-_./]|\.txt$|$)", "-", label.removesuffix(".txt"))
        if TESTS.search(label) and not OTHER.search(label):
            return Use.TESTS
        if OTHER.search(label):
            return Use.OTHER
        if "pytest" in self.distributions:
            return Use.HAS_PYTEST
        if DEVELOPMENT.search(label):
            return Use.DEVELOPMENT
        return Use.RUNTIME if self.kind == "file" and not label.strip("-./") else Use.OTHER


def normal(requirement: str) -> str:
    """Return the name that a requirement is about, normalized as the package index compares names."""
    found = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
    return SEPARATORS.sub("-", found[1]).lower() if found else ""


def spelled(requirements: Iterable[str]) -> list[str]:
    """Return those requirements that can be written in a command, as they are spelled."""
    found = (REQUIREMENT.fullmatch(" ".join(requirement.split())) for requirement in requirements)
    return once(match[0].strip() for match in found if match)[:REQUIREMENTS]


def sets(tree: Tree) -> list[Set]:
    """Return everything that the project declares, in the order in which the places are read."""
    found = [
        *_extras(tree), *_groups(tree), *_files(tree), *_poetry(tree), *_pdm(tree), *_hatch(tree),
        *_pipenv(tree), *_tox(tree),
    ]  # fmt: skip
    first: dict[tuple[str, str], Set] = {}
    for one in found:
        first.setdefault((one.kind, one.name), one)
    return list(first.values())


def runtime(tree: Tree) -> list[str]:
    """Return what the package itself requires, as far as that is declared."""
    project = tree.toml("pyproject.toml")
    declared = [
        *strings(at(project, "project", "dependencies")),
        *table(at(project, "tool", "poetry", "dependencies")),
        *_lines(tree.ini("setup.cfg").get("options", {}).get("install_requires", "")),
    ]
    return declared + strings(_setup_arguments(tree).get("install_requires"))


# --- Extras -----------------------------------------------------------------------------------------------


def _extras(tree: Tree) -> Iterator[Set]:
    project = tree.toml("pyproject.toml")
    places: list[tuple[str, dict[str, object]]] = [
        ("pyproject.toml", table(at(project, "project", "optional-dependencies"))),
        ("pyproject.toml", table(at(project, "tool", "poetry", "extras"))),
        ("pyproject.toml", table(at(project, "tool", "flit", "metadata", "requires-extra"))),
    ]
    config = tree.ini("setup.cfg")
    places.append(("setup.cfg", {k: _lines(v) for k, v in config.get("options.extras_require", {}).items()}))
    arguments = _setup_arguments(tree)
    places.append(("setup.py", table(arguments.get("extras_require"))))
    for where, extras in places:
        for name, content in extras.items():
            if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]{0,60}", name):
                yield Set("extra", name, where, tuple(strings(content)))
    asked = strings(arguments.get("tests_require")) + _lines(
        config.get("options", {}).get("tests_require", "")
    )
    if asked:
        yield Set("listed", "tests_require", "setup.py", tuple(asked))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def _setup_arguments(tree: Tree) -> dict[str, object]:
    """Return the arguments of setup() that are written as plain values; nothing in the file is run."""
    text = tree.text("setup.py")
    if not text or len(text) > 60_000:
        return {}
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    names: dict[str, object] = {}
    found: dict[str, object] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = _plain(node.value, names)
    try:
        calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    except RecursionError:
        return {}
    for call in calls:
        if isinstance(call.func, ast.Name | ast.Attribute):
            for keyword in call.keywords:
                if keyword.arg in ("extras_require", "tests_require", "install_requires"):
                    found.setdefault(keyword.arg, _plain(keyword.value, names))
    return found


def _plain(node: ast.AST, names: dict[str, object], depth: int = 0) -> object:
    """Return a value of strings, lists and tables, or None.

    A name stands for the plain value that was assigned to it before.
    """
    if depth > 6:
        return None
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return names.get(name)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            values = [_plain(item, names, depth + 1) for item in items[:REQUIREMENTS]]
            return [value for value in values if isinstance(value, str)]
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return (strings(_plain(left, names, depth + 1)) + strings(_plain(right, names, depth + 1)))[
                :REQUIREMENTS
            ]
        case ast.Dict(keys=keys, values=below):
            pairs = [
                (key.value, _plain(value, names, depth + 1))
                for key, value in zip(keys, below, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
            return dict(pairs[:REQUIREMENTS])
    return None


# --- Groups and files -------------------------------------------------------------------------------------


def _groups(tree: Tree) -> Iterator[Set]:
    groups = table(tree.toml("pyproject.toml").get("dependency-groups"))
    for name in groups:
        if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,60}", name):
            yield Set("group", name, "pyproject.toml", tuple(_group(groups, name, INCLUDES)))


def _group(groups: dict[str, object], name: str, depth: int) -> list[str]:
    content = groups.get(name)
    found: list[str] = []
    for item in content[:REQUIREMENTS] if isinstance(content, list) else []:
        if isinstance(item, str):
            found.append(item)
        elif depth and isinstance(included := at(item, "include-group"), str):
            found += _group(groups, included, depth - 1)
        if len(found) > REQUIREMENTS:
            break
    return found[:REQUIREMENTS]


FILES = (
    r"[\w.-]*requirements?[\w.-]*\.txt|requirements?/[\w.-]+\.txt"
    r"|(tests?|requirements?|ci|dev)/[\w.-]*requirements?[\w.-]*\.txt|dev-?deps\.txt|(test|dev)[\w-]*\.txt"
)


def _files(tree: Tree) -> Iterator[Set]:
    for path in tree.matching(FILES)[:12]:
        text = tree.text(path)
        if re.search(r"(?m)^\s*[A-Za-z0-9][\w.-]*\s*([\[<>=!~;#@]|$)|^\s*(-r|-e)\s", text):
            yield Set("file", path, path, tuple(_file(tree, path, set())))


def _file(tree: Tree, path: str, seen: set[str]) -> list[str]:
    found: list[str] = []
    if path in seen or len(seen) > INCLUDES:
        return found
    seen.add(path)
    for line in tree.text(path).splitlines()[:400]:
        line = re.split(r"\s#|\s--hash|^#", line)[0].strip()
        if included := re.fullmatch(r"(?:-r|--requirement)[\s=]*(\S+)", line):
            found += _file(tree, _beside(path, included[1]), seen)
        elif line and not line.startswith("-"):
            found.append(line)
        if len(found) > 4 * REQUIREMENTS:
            break
    return found[: 4 * REQUIREMENTS]


def _beside(path: str, name: str) -> str:
    folder = dirname(path)
    while name.startswith("../"):
        name, folder = name[3:], dirname(folder)
    return f"{folder}/{name}".lstrip("/")


# --- The tables of tools ----------------------------------------------------------------------------------


def _poetry(tree: Tree) -> Iterator[Set]:
    """Yield the sets of poetry, names only: pip cannot read versions in poetry's own notation."""
    poetry = table(at(tree.toml("pyproject.toml"), "tool", "poetry"))
    groups = {"dev": poetry.get("dev-dependencies")}
    groups |= {name: at(group, "dependencies") for name, group in table(poetry.get("group")).items()}
    for name, content in groups.items():
        names = [key for key in table(content) if key.lower() != "python"]
        if names:
            yield Set("listed", name, "pyproject.toml, poetry", tuple(names))


def _pdm(tree: Tree) -> Iterator[Set]:
    for name, content in table(at(tree.toml("pyproject.toml"), "tool", "pdm", "dev-dependencies")).items():
        yield Set("listed", f"{name}", "pyproject.toml, pdm", tuple(strings(content)))


def _hatch(tree: Tree) -> Iterator[Set]:
    project = tree.toml("pyproject.toml")
    environments = table(at(project, "tool", "hatch", "envs")) or table(tree.toml("hatch.toml").get("envs"))
    for name, content in environments.items():
        asked = strings(at(content, "dependencies")) + strings(at(content, "extra-dependencies"))
        if asked:
            label = "dev" if name == "default" else name
            yield Set("listed", label, "pyproject.toml, hatch", tuple(asked))


def _pipenv(tree: Tree) -> Iterator[Set]:
    pipfile = tree.toml("Pipfile")
    for key, name in (("dev-packages", "dev"), ("packages", "packages")):
        if content := table(pipfile.get(key)):
            yield Set("listed", name, "Pipfile", tuple(content))


def _tox(tree: Tree) -> Iterator[Set]:
    """Yield the plain requirements of tox's own environment, without its factors and substitutions."""
    config = tree.ini("tox.ini") or {
        name.removeprefix("tox:"): content for name, content in tree.ini("setup.cfg").items()
    }
    lines = _lines(config.get("testenv", {}).get("deps", ""))
    plain = [line for line in lines if not re.search(r"[{}]|^-|^[\w,.!-]+:\s", line)]
    if plain:
        yield Set("listed", "test", "tox.ini", tuple(plain))


def label(one: Set) -> str:
    """Return the name of a set as people see it."""
    return {"extra": f"extra {one.name}", "group": f"group {one.name}", "file": basename(one.name)}.get(
        one.kind, f"{one.where}: {one.name}"
    )

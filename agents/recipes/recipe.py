"""Core: the commands that could verify a repository, how likely they are, and what proposing them reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from tasks.text.regex import regex


@dataclass(frozen=True, slots=True)
class Recipe:
    """Shell commands that could prepare, build and test a repository; empty if there is none.

    Each is given to `/bin/sh -c` at the top of a clean checkout. `prepare` brings dependencies into the
    environment and may use the network. `source` says to people where the recipe was read from. `tools` are
    the programs that the host must have, not counting what a Python environment brings along.
    """

    prepare: str = ""
    build: str = ""
    test: str = ""
    source: str = ""
    tools: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, str, str]:
        """The three commands in the order in which they run."""
        return self.prepare, self.build, self.test


class RepositoryFiles(Protocol):
    """One commit of a repository, as far as a recipe can be read from it."""

    @property
    def names(self) -> Sequence[str]:
        """Every path in the commit's tree, with parts divided by "/", up to the implementation's bound."""

    def read(self, path: str) -> str | None:
        """Return the text of a file, bounded in length, or None if there is none."""


# Programs that come from a Python environment, or that make one of their own with its help.
PYTHON = regex(
    r"(?<![\w./-])(?:python|pip|pypy)[\d.]*(?![\w-])"
    r"|(?<![\w./-])(?:pytest|py\.test|tox|nox|uvx?|poetry|pdm|hatch|flit|pipenv|pipx|pre-commit|coverage"
    r"|maturin|sphinx-build|mypy|ruff|stestr|zope-testrunner|trial|nosetests)(?![\w-])"
)

# A Python that is named by its place brings the modules that it runs.
PLACED = regex(r"(?<!\S)[\w.~-]*/[\w./~-]*py(?:thon|py)[\d.]*(?:[ \t]+-[a-zA-Z]+)*[ \t]+-m[ \t]+\S+")
PYTEST = regex(r"(?<![\w./-])py\.?test(?![\w.-])")


def needs_python(text: str) -> bool:
    """Whether the commands in this text need a Python environment with pip."""
    return PYTHON.search(PLACED.sub("", text)) is not None


def needs_pytest(text: str) -> bool:
    """Whether the commands in this text call for pytest in a Python environment of the run's own."""
    return PYTEST.search(PLACED.sub("", text)) is not None


PYTHON_ITSELF = regex(r"\bpython[\d.]*")  # does not need pip by itself


def needs_pip(text: str) -> bool:
    """Whether the commands in this text install something with pip, or call what pip has to install."""
    return needs_python(PYTHON_ITSELF.sub("", text))


class Rank(IntEnum):
    """The order in which candidates are tried, lowest first."""

    DIRECT = 0  # the project declares its tests and what they need
    CI = 1  # its own continuous integration does this
    WIDER = 2  # the declared way, with more installed or less demanded
    GUESS = 3  # there are tests, but how they are run is a guess
    BUILD = 4  # nothing is tested


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recipe and how likely it is; `kind` names its ecosystem, so that its share can be compared.

    `folder` is where its package lies, if that is below the top. `is_apart` means that there are packages of
    the same ecosystem within it whose tests it does not run.
    """

    rank: Rank
    kind: str
    recipe: Recipe
    folder: str = ""
    is_apart: bool = False


def candidate(
    kind: str, prepare: str, build: str, test: str, source: str, rank: Rank = Rank.DIRECT
) -> Candidate:
    """Return a candidate with these commands; whatever its rank, one that tests nothing only builds."""
    return Candidate(rank if test else Rank.BUILD, kind, Recipe(prepare, build, test, source))

"""Core: the commands that could verify a repository, and the access to it that proposing them takes."""

from collections.abc import Sequence
from dataclasses import dataclass
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


def needs_python(text: str) -> bool:
    """Whether the commands in this text need a Python environment with pip."""
    return PYTHON.search(text) is not None

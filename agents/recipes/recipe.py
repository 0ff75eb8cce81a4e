"""Core: the commands that could verify a repository, and what is asked of a repository to propose them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tasks.text.regex import regex


@dataclass(frozen=True, slots=True)
class Recipe:
    """Shell commands that could prepare, build and test a repository; empty where there is none.

    Each is given to `/bin/sh -c` at the top of a clean checkout. `prepare` brings dependencies into the
    environment and may use the network. `source` says to people where it was read from. `tools` are the
    programs that the host must have; what a Python environment brings along is not among them.
    """

    prepare: str = ""
    build: str = ""
    test: str = ""
    source: str = ""
    tools: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, str, str]:
        """What is run, in its order."""
        return self.prepare, self.build, self.test


class RepositoryFiles(Protocol):
    """One commit of a repository, as far as a recipe can be read from it."""

    @property
    def names(self) -> Sequence[str]:
        """Every path in the commit's tree, parts divided by "/"; bounded by who offers it."""

    def read(self, path: str) -> str | None:
        """The text of a file, bounded; None where there is none."""


# Programs that come from a Python environment, or make one of their own with its help.
PYTHON = regex(
    r"(?<![\w./-])(?:python|pip|pypy)[\d.]*(?![\w-])"
    r"|(?<![\w./-])(?:pytest|py\.test|tox|nox|uvx?|poetry|pdm|hatch|flit|pipenv|pipx|pre-commit|coverage"
    r"|maturin|sphinx-build|mypy|ruff|stestr|zope-testrunner|trial|nosetests)(?![\w-])"
)


def needs_python(text: str) -> bool:
    """Whether the commands in this text want a Python environment with pip in it."""
    return PYTHON.search(text) is not None

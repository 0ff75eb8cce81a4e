"""Core: one recipe for several languages or packages, so that green tests of one do not pass for all."""

from collections.abc import Callable, Iterator

from agents.recipes.ci import GLOBALLY
from agents.recipes.ranks import Candidate, Rank
from agents.recipes.recipe import Recipe, needs_python
from agents.recipes.toolchains import missing, programs
from agents.recipes.tree import then
from tasks.text.regex import regex

SHOWN = 6  # sources that are named
BY_NPX = regex(r"\bnpx --yes (\S+) install\b")  # a manager of packages that the host may lack


def together(main: list[Candidate], which: Callable[[str], str | None], longest: int) -> Iterator[Recipe]:
    """Yield one recipe for all main languages and packages that declare their tests, if there are several.

    If this host lacks a program for one of them, a recipe for the others follows. No command is longer than
    `longest` characters: the last packages are left out, and the source says how many.
    """
    first: dict[tuple[str, str], Recipe] = {}
    for one in main:
        if one.rank == Rank.DIRECT:
            first.setdefault((one.kind, one.folder), one.recipe)
    parts = list(first.values())
    there = [part for part in parts if not missing(programs(*part.commands), which)]
    for some in (parts, there):
        fitting = list(some)
        while any(len(command) > longest for command in _joined(fitting).commands):
            fitting.pop()
        if len(fitting) > 1:
            yield _joined(fitting, len(some) - len(fitting))


def _joined(parts: list[Recipe], left_out: int = 0) -> Recipe:
    """Return the recipe that runs all tests and is red if some are.

    What is red in one language keeps no other from being run, so that people who accept a branch of which one
    half is red still hear of the other half.
    """
    sources = [part.source for part in parts]
    more = [f"{len(sources) - SHOWN} more"] if len(sources) > SHOWN else []
    said = "; ".join([*sources[:SHOWN], *more])
    tests = " ".join(f"({part.test}) || red=$?;" for part in parts)
    return Recipe(
        then(_manager(parts), *(_in_its_folder(part.prepare) for part in parts)),
        then(*(_in_its_folder(part.build) for part in parts)),
        f"red=0; {tests} exit $red",
        f"{said}, without {left_out} others" if left_out else said,
    )


def _manager(parts: list[Recipe]) -> str:
    """Return a command that installs what npx alone can call, for a build in Python that calls it by name."""
    found = next((match for part in parts if (match := BY_NPX.search(part.prepare))), None)
    is_shared = found and any(needs_python(" ".join(part.commands)) for part in parts)
    return f"{GLOBALLY} install --global {found[1]}" if found and is_shared else ""


def _in_its_folder(command: str) -> str:
    """Return the command so that its folder is not that of the next one."""
    return f"({command})" if command.startswith("cd ") else command

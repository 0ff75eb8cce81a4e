"""Core: one recipe for several languages, so that green tests of one do not pass for all."""

from collections.abc import Callable, Iterator

from agents.recipes.ci import GLOBALLY
from agents.recipes.ranks import Candidate, Rank
from agents.recipes.recipe import Recipe, needs_python
from agents.recipes.toolchains import missing, programs
from agents.recipes.tree import then
from tasks.text.regex import regex

BY_NPX = regex(r"\bnpx --yes (\S+) install\b")  # a manager of packages that the host may lack


def together(main: list[Candidate], which: Callable[[str], str | None]) -> Iterator[Recipe]:
    """Yield one recipe for all of the main languages that declare their tests, if there are several.

    If this host lacks a program for one of them, a recipe for the others follows.
    """
    first: dict[str, Recipe] = {}
    for one in main:
        if one.rank == Rank.DIRECT:
            first.setdefault(one.kind, one.recipe)
    parts = list(first.values())
    there = [part for part in parts if not missing(programs(*part.commands), which)]
    yield from (_joined(some) for some in (parts, there) if len(some) > 1)


def _joined(parts: list[Recipe]) -> Recipe:
    """Return the recipe that runs all tests and is red if some are.

    What is red in one language keeps no other from being run, so that people who accept a branch of which one
    half is red still hear of the other half.
    """
    tests = " ".join(f"({part.test}) || red=$?;" for part in parts)
    return Recipe(
        then(_manager(parts), *(_in_its_folder(part.prepare) for part in parts)),
        then(*(_in_its_folder(part.build) for part in parts)),
        f"red=0; {tests} exit $red",
        "; ".join(part.source for part in parts),
    )


def _manager(parts: list[Recipe]) -> str:
    """Return a command that installs what npx alone can call, for a build in Python that calls it by name."""
    found = next((match for part in parts if (match := BY_NPX.search(part.prepare))), None)
    is_shared = found and any(needs_python(" ".join(part.commands)) for part in parts)
    return f"{GLOBALLY} install --global {found[1]}" if found and is_shared else ""


def _in_its_folder(command: str) -> str:
    """Return the command so that its folder is not that of the next one."""
    return f"({command})" if command.startswith("cd ") else command

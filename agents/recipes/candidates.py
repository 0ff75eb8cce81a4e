"""Core: what to try on a repository's untouched base, likeliest first."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from posixpath import dirname, splitext

from agents.recipes import ci, native, node, python
from agents.recipes.languages import LANGUAGES
from agents.recipes.recipe import Candidate, Rank, Recipe, RepositoryFiles, needs_python
from agents.recipes.rows import rows
from agents.recipes.toolchains import missing, programs
from agents.recipes.tree import FOREIGN, Tree, then, words
from tasks.text.regex import regex

MOST = 8
LONGEST = 2000  # characters of one command
SHOWN = 6  # sources that are named
SILENT = regex(r" --no-(?:audit|fund|progress)\b")  # options that do not change what a command does
FOLDERS = 100  # folders below the top that are searched
ECOSYSTEMS: tuple[Callable[[Tree], Iterator[Candidate]], ...] = (
    python.candidates, node.candidates, *LANGUAGES, rows, native.candidates,
)  # fmt: skip
# The suffixes of each ecosystem's files; the ecosystem with most of the code is the project's own.
SUFFIXES = {
    "python": "py pyx pyi", "node": "js cjs mjs jsx ts cts mts tsx vue svelte elm res resi", "rust": "rs",
    "go": "go", "jvm": "java kt kts groovy clj cljc cljs", "ruby": "rb", "php": "php", "perl": "pl pm t xs",
    "native": "c h cc cpp cxx hpp hh hxx s S f f90 m mm cu vala asm l y", "elixir": "ex exs",
    "erlang": "erl hrl", "ocaml": "ml mli", "haskell": "hs lhs", "swift": "swift", "dotnet": "cs fs vb",
    "zig": "zig", "julia": "jl", "dart": "dart", "scala": "scala", "crystal": "cr", "d": "d di",
    "racket": "rkt scrbl", "nim": "nim", "lua": "lua", "shell": "sh bats bash", "r": "R r",
    "gleam": "gleam", "solidity": "sol", "powershell": "ps1 psm1", "ada": "adb ads", "terraform": "tf",
    "nix": "nix", "godot": "gd", "lisp": "lisp lsp", "tcl": "tcl", "vhdl": "vhd vhdl sv",
}  # fmt: skip
KINDS = {f".{suffix}": kind for kind, suffixes in SUFFIXES.items() for suffix in suffixes.split()}
MINOR = 3  # an ecosystem with less than one part in this many of the main one's files stands back
# What shows that a folder below the top is a project of its own.
MANIFEST = (
    r"([^/]+/){1,3}(pyproject\.toml|setup\.(py|cfg)|requirements\.txt|Pipfile|manage\.py|package\.json|deno\.jsonc?"
    r"|Cargo\.toml|go\.mod|CMakeLists\.txt|meson\.build|Makefile|configure|pom\.xml|build\.gradle(\.kts)?|build\.sbt"
    r"|Gemfile|[^/]+\.gemspec|composer\.json|mix\.exs|rebar\.config|dune-project|stack\.yaml|[^/]+\.cabal"
    r"|info\.rkt|dub\.(json|sdl)|elm\.json|deps\.edn|Package\.swift|gleam\.toml|foundry\.toml|[^/]+\.(sln|slnx|csproj|fsproj)|build\.zig|Project\.toml|pubspec\.yaml|project\.clj|shard\.yml)"
)


def candidates(
    repository: RepositoryFiles, which: Callable[[str], str | None] = shutil.which
) -> list[Recipe]:
    """Return what to try on the untouched base, likeliest first, at most MOST recipes.

    The result is empty for a project of documents. Recipes that only build are proposed only if none is found
    that tests, so that a recipe whose tests are red is not passed over for one that runs none.
    """
    tree = Tree(repository)
    shares = _shares(tree)
    found, declared = _described(tree, shares)
    found += ci.candidates(tree)
    tested = [one for one in found if one.rank < Rank.BUILD]
    chosen = _main(tested, shares) if tested else _builds(found, shares)
    order = sorted(chosen, key=lambda one: (one.rank, -shares[one.kind]))
    declared.sort(key=lambda one: -shares[one.kind])
    recipes: dict[tuple[str, ...], Recipe] = {}
    for proposed in (*together(_main(declared, shares), which), *(one.recipe for one in order)):
        recipe = replace(proposed, tools=programs(*proposed.commands))
        if any(recipe.commands) and all(len(command) <= LONGEST for command in recipe.commands):
            recipes.setdefault(tuple(SILENT.sub("", command) for command in recipe.commands), recipe)
    return list(recipes.values())[:MOST]


def _described(tree: Tree, shares: Counter[str]) -> tuple[list[Candidate], list[Candidate]]:
    """Return what the files of the ecosystems propose, and which of it the project declares."""
    found = _of(tree)
    declared = [one for one in found if one.rank == Rank.DIRECT]
    at_top = {one.kind for one in declared if not one.is_apart}
    is_whole = declared and _main_kinds(shares) <= at_top
    below = [] if is_whole else _of_folders(tree)
    if not declared:
        found += [replace(one, rank=max(one.rank, Rank.WIDER)) for one in below]
    # What the top declares of a language holds for all of it.
    declared += [one for one in below if one.rank == Rank.DIRECT and one.kind not in at_top]
    return found, declared


def _of(tree: Tree) -> list[Candidate]:
    return [one for ecosystem in ECOSYSTEMS for one in ecosystem(tree)]


def _of_folders(tree: Tree) -> list[Candidate]:
    """Return what the packages below the top propose; asked if the top is not sure of every main language."""
    sizes = Counter({dirname(path): 0 for path in tree.matching(MANIFEST, own=True)})
    for name in tree.names:
        parts = name.split("/")[:-1]
        sizes.update({"/".join(parts[:depth]) for depth in (1, 2, 3)} & sizes.keys())
    found: list[Candidate] = []
    for folder, _ in sizes.most_common(FOLDERS):
        outer = {one.kind for one in found if not one.is_apart and folder.startswith(f"{one.folder}/")}
        for one in _of(tree.below(folder)):
            if one.rank < Rank.BUILD and one.kind not in outer:
                found.append(replace(one, recipe=_moved(one.recipe, folder), folder=folder))
    return found


def _moved(recipe: Recipe, folder: str) -> Recipe:
    """Return the same recipe, to be called from the top."""
    start = f"cd {words(folder)} && "
    commands = [start + command if command else "" for command in recipe.commands]
    return Recipe(commands[0], commands[1], commands[2], f"{folder}/{recipe.source}")


def _shares(tree: Tree) -> Counter[str]:
    """Count the project's own files in the languages of each ecosystem."""
    counted: Counter[str] = Counter()
    for name in tree.names:
        kind = KINDS.get(splitext(name)[1])
        if kind and not FOREIGN.search(name) and not re.search(r"\.min\.js$", name):
            counted[kind] += 1
    return counted


def _main_kinds(shares: Counter[str]) -> set[str]:
    most = max(shares.values(), default=0)
    return {kind for kind, count in shares.items() if count * MINOR >= most}


def _main(tested: list[Candidate], shares: Counter[str]) -> list[Candidate]:
    """Return the candidates that test, without those of ecosystems that are only a small part.

    Green tests of a small part would say little. A Makefile can call anything, so if most code is in another
    language, its target for tests stays as a guess.
    """
    most = max((shares[one.kind] for one in tested), default=0)
    found = []
    for one in tested:
        if one.kind == ci.KIND or shares[one.kind] * MINOR >= most:
            found.append(one)
        elif one.kind == native.KIND and not one.recipe.build:
            found.append(replace(one, rank=Rank.GUESS))
    return found


def _builds(found: list[Candidate], shares: Counter[str]) -> list[Candidate]:
    """Return the candidates that build, without those of ecosystems that are only a small part of all code.

    A Makefile or a flake can call anything, and the project's own continuous integration knows best.
    """
    most, whole = max(shares.values(), default=0), {ci.KIND, native.KIND, "nix"}
    return [one for one in found if one.kind in whole or shares[one.kind] * MINOR >= most]


# --- One recipe for several languages or packages, so that green tests of one do not pass for all -----------

BY_NPX = regex(r"\bnpx --yes (\S+) install\b")  # a manager of packages that the host may lack


def together(main: list[Candidate], which: Callable[[str], str | None]) -> Iterator[Recipe]:
    """Yield one recipe for all main languages and packages that declare their tests, if there are several.

    If this host lacks a program for one of them, a recipe for the others follows. No command is longer than
    LONGEST characters: the last packages are left out, and the source says how many.
    """
    first: dict[tuple[str, str], Recipe] = {}
    for one in main:
        if one.rank == Rank.DIRECT:
            first.setdefault((one.kind, one.folder), one.recipe)
    parts = list(first.values())
    there = [part for part in parts if not missing(programs(*part.commands), which)]
    for some in (parts, there):
        fitting = list(some)
        while any(len(command) > LONGEST for command in _joined(fitting).commands):
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
        then(_manager(parts), *map(_in_its_folder, _siblings([part.prepare for part in parts]))),
        then(*(_in_its_folder(part.build) for part in parts)),
        f"red=0; {tests} exit $red",
        f"{said}, without {left_out} others" if left_out else said,
    )


def _manager(parts: list[Recipe]) -> str:
    """Return a command that installs what npx alone can call, for a build in Python that calls it by name."""
    found = next((match for part in parts if (match := BY_NPX.search(part.prepare))), None)
    is_shared = found and any(needs_python(" ".join(part.commands)) for part in parts)
    return f"{ci.GLOBALLY} install --global {found[1]}" if found and is_shared else ""


RACO = regex(r"cd (\S+) && (raco pkg install [\w -]+)")


def _siblings(prepares: list[str]) -> list[str]:
    """Return the commands with one call for all packages of Racket, which may need each other.

    A call for one alone would fetch the others as they are published, if not fail for lack of them.
    """
    found = [match for one in prepares if (match := RACO.fullmatch(one))]
    if len(found) < 2:
        return prepares
    rest = [one for one in prepares if not RACO.fullmatch(one)]
    return [*rest, " ".join([found[0][2], *(f"{match[1]}/" for match in found)])]


def _in_its_folder(command: str) -> str:
    """Return the command so that its folder is not that of the next one."""
    return f"({command})" if command.startswith("cd ") else command

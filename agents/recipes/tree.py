"""Core: a repository's files as the rules ask for them. Every text is hostile: broken ones are empty ones."""

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from posixpath import basename, dirname, splitext
from shlex import quote
from typing import Any

from agents.recipes.recipe import RepositoryFiles
from tasks.text.regex import regex

NAMES = 50_000  # paths looked at
CHARACTERS = 200_000  # of one file
PARTS = 60  # of a dotted key
READS = 160  # different files read for one repository
PATH = regex(r"[^\x00-\x1f\x7f]{1,200}")

# Where there is code that is not the project's own, or that its tests do not need.
FOREIGN = regex(
    r"(^|/)(node_modules|vendor|vendored|_vendor|third[_-]?party|thirdparty|3rdparty|external|extern|deps"
    r"|dist|docs?|examples?|samples?|static|site|website|fixtures|testdata|test-data|debian|\.[^/]+)/",
    re.IGNORECASE,
)


class Tree:
    """The files below one folder of a repository; paths are relative to it."""

    def __init__(self, repository: RepositoryFiles) -> None:
        paths = (name for name in list(repository.names)[:NAMES] if isinstance(name, str))
        self.names = tuple(sorted({name for name in paths if PATH.fullmatch(name)}))
        self.folder = ""
        self._files = frozenset(self.names)
        self._folders = _folders(self.names)
        self._store = _Store(repository.read)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def below(self, folder: str) -> "Tree":
        """The same repository, seen from one of its folders."""
        tree = Tree.__new__(Tree)
        start = f"{folder}/"
        tree.names = tuple(name[len(start) :] for name in self.names if name.startswith(start))
        tree.folder = f"{self.folder}{start}"
        tree._files = frozenset(tree.names)
        tree._folders = _folders(tree.names)
        tree._store = self._store
        return tree

    def is_folder(self, path: str) -> bool:
        """Whether anything lies below this path."""
        return path in self._folders

    def first(self, *paths: str) -> str:
        """The first of these files that there is, else nothing."""
        return next((path for path in paths if path in self._files), "")

    def matching(self, pattern: str, *, own: bool = False) -> list[str]:
        """The paths that a regular expression fits whole, shallow first; `own` leaves foreign code out."""
        rule = re.compile(pattern)
        found = [name for name in self.names if rule.fullmatch(name) and not (own and FOREIGN.search(name))]
        return sorted(found, key=lambda name: (name.count("/"), name))

    def text(self, path: str) -> str:
        """A file's text, cut to a bound; empty where there is none."""
        return self._store.text(self.folder + path) if path in self._files else ""

    def json(self, path: str) -> dict[str, Any]:
        """A JSON file that holds an object; empty where it does not."""
        return _table(json.loads, self.text(path).removeprefix("\ufeff"))

    def toml(self, path: str) -> dict[str, Any]:
        """A TOML file; empty where it is none."""
        text = self.text(path).removeprefix("\ufeff")
        return {} if _chained(text) else _table(tomllib.loads, text)

    def ini(self, path: str) -> dict[str, dict[str, str]]:
        """The sections of an INI file; empty where it is none."""
        parser = configparser.RawConfigParser(strict=False, interpolation=None)
        try:
            parser.read_string(self.text(path))
        except (configparser.Error, ValueError):
            return {}
        return {name: dict(parser.items(name)) for name in parser.sections()}


class _Store:
    """Reads each file once, and not without end."""

    def __init__(self, read: Callable[[str], str | None]) -> None:
        self.read = read
        self.texts: dict[str, str] = {}

    def text(self, path: str) -> str:
        if path not in self.texts and len(self.texts) < READS:
            self.texts[path] = (self.read(path) or "")[:CHARACTERS]
        return self.texts.get(path, "")


def _folders(names: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for name in names:
        while (name := dirname(name)) and name not in found:
            found.add(name)
    return frozenset(found)


def _chained(text: str) -> bool:
    """Whether a TOML file has a key of so many parts that reading it, in square time, would not end."""
    for line in text.splitlines():
        joined = " ".join(line.split()).replace(" .", ".").replace(". ", ".")
        if any(piece.count(".") > PARTS for piece in re.split(r"[ =,]", joined)):
            return True
    return False


def _table(load: Callable[[str], object], text: str) -> dict[str, Any]:
    try:
        found = load(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# --- Values of unknown kind -------------------------------------------------------------------------------


def at(value: object, *keys: str) -> Any:
    """What lies in nested tables under these keys; None where the way ends."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def table(value: object) -> dict[str, Any]:
    """The value where it is a table, else an empty one."""
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """The strings of a list, or the one string; nothing of anything else."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


# --- Words ------------------------------------------------------------------------------------------------


def name_of(path: str) -> str:
    """The last part of a path, without its ending."""
    return splitext(basename(path))[0]


def words(*parts: str) -> str:
    """A command of these arguments, each quoted where the shell asks for it."""
    return " ".join(quote(part) for part in parts)


def then(*commands: str) -> str:
    """One command of several, each run only after the one before it; empty ones left out."""
    return " && ".join(command for command in commands if command)


def once(items: Iterator[str] | list[str]) -> list[str]:
    """Each string once, in the order of first mention."""
    return list(dict.fromkeys(items))

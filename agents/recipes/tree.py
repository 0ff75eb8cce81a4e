"""Core: a repository's files as the rules need them; all text is hostile, a broken file is empty."""

import configparser
import re
from collections.abc import Callable, Iterator
from posixpath import basename, dirname, splitext
from shlex import quote
from typing import Any

from agents.recipes.recipe import RepositoryFiles
from tasks.text.regex import regex
from tasks.text.storable import read_json
from tasks.text.toml import read_toml

NAMES = 50_000  # paths considered
CHARACTERS = 200_000  # characters of one file
READS = 160  # different files read for one repository
PATH = regex(r"[^\x00-\x1f\x7f]{1,200}")

# Folders whose code is not the project's own, or is not needed by its tests.
FOREIGN = regex(
    r"(^|/)(node_modules|vendor|vendored|_vendor|third[_-]?party|thirdparty|3rdparty|external|extern|deps"
    r"|dist|docs?|([\w-]+[-_])?(examples?|samples?)|static|site|website|fixtures|testdata|test-data|debian|\.[^/]+)/",
    re.IGNORECASE,
)


class Tree:
    """The files below one folder of a repository; paths are relative to that folder."""

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
        """Return the same repository, seen from one of its folders."""
        tree = Tree.__new__(Tree)
        start = f"{folder}/"
        tree.names = tuple(name[len(start) :] for name in self.names if name.startswith(start))
        tree.folder = f"{self.folder}{start}"
        tree._files = frozenset(tree.names)
        tree._folders = _folders(tree.names)
        tree._store = self._store
        return tree

    def is_folder(self, path: str) -> bool:
        """Whether there is anything below this path."""
        return path in self._folders

    def first(self, *paths: str) -> str:
        """Return the first of these files that exists; empty if none does."""
        return next((path for path in paths if path in self._files), "")

    def matching(self, pattern: str, *, own: bool = False) -> list[str]:
        """Return the paths that match a regular expression as a whole, the shallowest first.

        `own` leaves foreign code out.
        """
        rule = re.compile(pattern)
        found = [name for name in self.names if rule.fullmatch(name) and not (own and FOREIGN.search(name))]
        return sorted(found, key=lambda name: (name.count("/"), name))

    def text(self, path: str) -> str:
        """Return a file's text, cut to a bound; empty if there is no such file."""
        return self._store.text(self.folder + path) if path in self._files else ""

    def above(self, path: str) -> str:
        """Return the text of a file at the top of the whole repository; empty if there is no such file."""
        return self._store.text(path)

    def json(self, path: str) -> dict[str, Any]:
        """Return a JSON file that holds an object; empty for anything else."""
        return _table(read_json, self.text(path).removeprefix("\ufeff"))

    def toml(self, path: str) -> dict[str, Any]:
        """Return a TOML file as a table; empty if it is none."""
        return self._store.toml(self.folder + path) if path in self._files else {}

    def ini(self, path: str) -> dict[str, dict[str, str]]:
        """Return the sections of an INI file; empty if it is none."""
        parser = configparser.RawConfigParser(strict=False, interpolation=None)
        try:
            parser.read_string(self.text(path))
        except (configparser.Error, ValueError):
            return {}
        return {name: dict(parser.items(name)) for name in parser.sections()}


class _Store:
    """Reads each file only once, also as a table, and only a bounded number of files."""

    def __init__(self, read: Callable[[str], str | None]) -> None:
        self.read = read
        self.texts: dict[str, str] = {}
        self.tables: dict[str, dict[str, Any]] = {}

    def text(self, path: str) -> str:
        if path not in self.texts and len(self.texts) < READS:
            self.texts[path] = (self.read(path) or "")[:CHARACTERS]
        return self.texts.get(path, "")

    def toml(self, path: str) -> dict[str, Any]:
        if path not in self.tables:
            text = self.text(path).removeprefix("\ufeff")
            self.tables[path] = _table(read_toml, text)
        return self.tables[path]


def _folders(names: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for name in names:
        while (name := dirname(name)) and name not in found:
            found.add(name)
    return frozenset(found)


def _table(load: Callable[[str], object], text: str) -> dict[str, Any]:
    try:
        found = load(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# --- Values of unknown type -------------------------------------------------------------------------------


def at(value: object, *keys: str) -> Any:
    """Return the value in nested tables under these keys, or None if a key is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def table(value: object) -> dict[str, Any]:
    """Return the value if it is a table, or else an empty one."""
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """Return the strings of a list, or the one string as a list; empty for anything else."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


# --- Words ------------------------------------------------------------------------------------------------


def name_of(path: str) -> str:
    """Return the last part of a path, without its suffix."""
    return splitext(basename(path))[0]


def words(*parts: str) -> str:
    """Return a command with these arguments, each quoted if the shell requires it."""
    return " ".join(quote(part) for part in parts)


def then(*commands: str) -> str:
    """Return one command that runs several, each only if the one before succeeded; skip empty ones."""
    return " && ".join(command for command in commands if command)


def once(items: Iterator[str] | list[str]) -> list[str]:
    """Return each string once, in the order of first mention."""
    return list(dict.fromkeys(items))

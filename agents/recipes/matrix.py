"""Core: the one combination of a job's matrix that is taken for all of them."""

from typing import Any

from agents.recipes.tree import table
from tasks.text.regex import regex

KEYS = 20  # values of one matrix
ROWS = 40  # combinations that are listed
NAME = regex(r"[\w-]{1,60}")
VALUE = regex(r"\$\{\{\s*matrix\.([\w-]{1,60}(?:\.[\w-]{1,60})?)\s*\}\}")
OTHER_SYSTEM = regex(r"(?i)windows|macos|mac-")
# What a script can hold as it is, wherever it stands.
PLAIN = regex(r"[\w .,:/=+@-]{1,200}")
# Names what the service installs, which is not what this host has.
VERSION = regex(
    r"(?i)(?:v|go|jdk|pypy|python|node|ruby|php)?-?\d+(?:\.[\dx]+)*[\w.-]{0,10}|.*-dev|lts.*|latest|stable|nightly"
)


def values_of(matrix: object) -> dict[str, str]:
    """Return the first plain value of each name in a matrix, of rows that some service runs on Linux.

    A version is not taken, and neither is what an expression makes: a name without a value stays unknown.
    What is set only in other rows than the one that is taken is empty.
    """
    listed = {name: value for name, value in table(matrix).items() if isinstance(value, list)}
    rows = [row for row in listed.pop("include", [])[:ROWS] if isinstance(row, dict)]
    listed.pop("exclude", None)
    found: dict[str, str] = {}
    for name, values in list(listed.items())[:KEYS]:
        found |= next((_plain({name: value}) for value in values[:ROWS] if _fits({name: value}, {})), {})
    chosen = next((row for row in rows if _fits(row, found)), {})
    elsewhere = {name: "" for row in rows for name in list(row)[:KEYS] if name not in chosen | listed}
    return {**(elsewhere if found or chosen else {}), **_plain(chosen), **found}


def _fits(row: dict[str, Any], chosen: dict[str, str]) -> bool:
    """Whether a row runs on Linux and contradicts nothing that is chosen already."""
    own = _plain(row)
    is_elsewhere = any(OTHER_SYSTEM.search(value) for value in own.values())
    return not is_elsewhere and all(chosen.get(name, value) == value for name, value in own.items())


def _plain(row: dict[str, Any]) -> dict[str, str]:
    """Return the row's values that are plain text, those of a table under their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in list(row.items())[:KEYS]:
        below = (
            {f"{name}.{key}": text for key, text in list(value.items())[:KEYS]}
            if isinstance(value, dict)
            else {}
        )
        flat |= below or {name: value}
    return {
        name: value
        for name, value in flat.items()
        if isinstance(value, str) and all(NAME.fullmatch(part) for part in name.split("."))
        and PLAIN.fullmatch(value)
    }  # fmt: skip


def filled(value: Any, known: dict[str, str]) -> Any:
    """Return the value with what is known of the matrix put into its texts; versions stay expressions."""
    if isinstance(value, str):
        return VALUE.sub(lambda match: _of(match[1], known, match[0]), value)
    if isinstance(value, dict):
        return {key: filled(below, known) for key, below in value.items()}
    return value


def _of(name: str, known: dict[str, str], unknown: str) -> str:
    value = known.get(name, unknown)
    return unknown if VERSION.fullmatch(value) else value

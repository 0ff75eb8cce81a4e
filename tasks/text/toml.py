"""Core: TOML that strangers wrote."""

import tomllib
from typing import Any

from tasks.text.regex import regex

PARTS = 60  # of a key; Python's reader takes time that grows with the square of these
QUOTED = regex(r""""(?:[^"\\]|\\.)*(?:"|\\?$)|'[^']*(?:'|$)""")  # one that does not end goes on to the end
APART = regex(r"[ =,\[\]{}]")


def read_toml(text: str) -> dict[str, Any]:
    """Return what the text holds. Raises ValueError if it is no TOML, or RecursionError."""
    if _is_chained(text):
        raise ValueError(f"a key has more than {PARTS} parts")
    return tomllib.loads(text)


def _is_chained(text: str) -> bool:
    """Whether a key has so many parts that reading it would not end."""
    for line in (each for each in text.split("\n") if each.count(".") > PARTS):
        joined = " ".join(QUOTED.sub("_", line).split()).replace(" .", ".").replace(". ", ".")
        if any(piece.count(".") > PARTS for piece in APART.split(joined)):
            return True
    return False

"""Reading documents that are data, JSON or YAML, as a whole or in their only fence."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from disputes.protocol.text.documents import FENCED, Line
from tasks.configuration.yaml_files import FaultyFile, read_plain
from tasks.text.regex import regex
from tasks.text.storable import read_json

YAML_MAX = 64 * 1024  # characters
DEPTH_MAX = 8
VALUES_MAX = 5_000
FENCES = frozenset(["json", "yaml", "yml"])
# The first entry of a list of mappings.
ENTRY = regex(r"- (?:severity|priority|title|file|path|location|id|code|finding)[ \t]*:")
KEY = regex(r"[A-Za-z_]+[ \t]*:")


class Data(NamedTuple):
    """The mapping in a document, its keys in lower-case words; one of its lists; and the text around it."""

    keys: dict[str, Any]
    entries: list[Any]
    prose: str


def data_in(text: str, lines: Sequence[Line], lists: Collection[str]) -> Data | None:
    """Return the data that a document is or has in its only fence; None without a list under one of the keys.

    `lines` are those of the scanned text. What cannot be read as data is none.
    """
    if not (text.lstrip()[:1] in ("[", "-") or any(name in text for name in lists)):
        return None
    keys, prose = _mapping(text, lists), ""
    if keys is None:
        inside, prose = _only_fence(lines)
        keys = _mapping(inside, lists)
    entries = next((keys[name] for name in lists if isinstance(keys.get(name), list)), None) if keys else None
    return None if keys is None or entries is None else Data(keys, entries[:VALUES_MAX], prose)


def as_words(key: str) -> str:
    """Return a key as words in lower case: `line_range` as "line range"."""
    return key.lower().replace("_", " ").replace("-", " ").strip()


def _mapping(text: str, lists: Collection[str]) -> dict[str, Any] | None:
    text = text.strip()
    try:
        if text.startswith("{"):
            data = read_json(text)
        elif text.startswith("["):
            data = {next(iter(lists)): read_json(text)}
        elif ENTRY.match(text):
            data = read_plain(
                f"{next(iter(lists))}:\n{text}", size=YAML_MAX, depth=DEPTH_MAX, values=VALUES_MAX
            )
        elif KEY.match(text) and any(f"\n{name}:" in f"\n{text}" for name in lists):
            data = read_plain(text, size=YAML_MAX, depth=DEPTH_MAX, values=VALUES_MAX)
        else:
            return None
    except (ValueError, RecursionError, FaultyFile):
        return None
    return {as_words(name): value for name, value in data.items()}


def _only_fence(lines: Sequence[Line]) -> tuple[str, str]:
    """Return the text in the only fence for data, and the text around it; two empty texts without one."""
    fenced = [line for line in lines if line.mode is FENCED]
    if len(fenced) < 3 or fenced[0].text.strip("`~ \t").lower() not in FENCES:
        return "", ""
    if fenced[-1].number - fenced[0].number + 1 != len(fenced):
        return "", ""
    prose = "\n".join(line.text for line in lines if line.mode is not FENCED)
    return "\n".join(line.text for line in fenced[1:-1]), prose

"""Reading documents that are data, JSON or YAML, as a whole, in fences, or among their lines."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from disputes.protocol.text.documents import FENCED, STATED, Line
from tasks.configuration.yaml_files import FaultyFile, read_plain
from tasks.text.regex import regex
from tasks.text.storable import read_json
from tasks.text.toml import read_toml

YAML_MAX = 64 * 1024  # characters
DEPTH_MAX = 8
VALUES_MAX = 5_000
FENCES = frozenset(["json", "jsonl", "ndjson", "json5", "jsonc", "yaml", "yml", "toml"])
# The first entry of a list of mappings.
ENTRY = regex(r"- (?:severity|priority|title|file|path|location|id|code|finding)[ \t]*:")
KEY = regex(r"[A-Za-z_]+[ \t]*:")
NESTED = regex(r"[A-Za-z_]+[ \t]*:[ \t]*\n[ \t]+\S")  # a mapping in a mapping
JSON_FIRST = regex(r"\{|\[\s*(?:\{|$)")
TEXTS_MAX = 3
BRACES = {"{": "}", "[": "]"}
COMMENT = regex(r"^[ \t]*//.*$", re.MULTILINE)
TABLE = regex(r"(?:^|\n)\[\[")  # of TOML


class Data(NamedTuple):
    """The mapping in a document, its keys in lower-case words; one of its lists; and the text around it."""

    keys: dict[str, Any]
    entries: list[Any]
    prose: str


Pick = Callable[[Mapping[str, Any]], list[Any] | None]


def data_in(text: str, lines: Sequence[Line], lists: Collection[str], pick: Pick) -> Data | None:
    """Return the data that a document is, or has in fences or in a JSON text among its lines; None without.

    Only a mapping counts in which one of the keys of `lists` occurs and `pick` finds a list. `lines` are
    those of the scanned text. What cannot be read as data is none.
    """
    if not (text.lstrip()[:1] in ("[", "-") or any(name in text for name in lists)):
        return None
    whole = _mapping(text, lists)
    if whole is not None:
        entries = pick(whole)
        return None if entries is None else Data(whole, entries[:VALUES_MAX], "")
    keys: dict[str, Any] = {}
    found: list[Any] = []
    inside: set[int] = set()
    for first, last, part in sorted([*_fences(lines), *_texts(lines)]):
        mapping = _mapping(part, lists)
        entries = None if mapping is None else pick(mapping)
        if mapping is not None and entries is not None and (not inside or all(map(_is_mapping, entries))):
            keys, found = {**mapping, **keys}, found + entries
            inside.update(range(first, last + 1))
    if not inside:
        return None
    prose = "\n".join(
        "" if index in inside or line.mode is FENCED else line.text for index, line in enumerate(lines)
    )
    return Data(keys, found[:VALUES_MAX], prose)


def _is_mapping(entry: object) -> bool:
    return isinstance(entry, Mapping)


def as_words(key: str) -> str:
    """Return a key as words in lower case: `line_range` as "line range"."""
    return key.lower().replace("_", " ").replace("-", " ").strip()


def _mapping(text: str, lists: Collection[str]) -> dict[str, Any] | None:
    text = text.strip()
    try:
        if text[:1] in BRACES and text[-1:] == BRACES[text[:1]]:
            data = _in_braces(text, next(iter(lists)))
        elif TABLE.search(text):
            data = read_toml(text)
        elif ENTRY.match(text):
            data = _yaml(f"{next(iter(lists))}:\n{text}")
        elif KEY.match(text) and (NESTED.match(text) or any(f"\n{name}:" in f"\n{text}" for name in lists)):
            data = _yaml(text)
        else:
            return None
    except (ValueError, RecursionError, FaultyFile):
        return None
    return {as_words(name): value for name, value in data.items()}


def _yaml(text: str) -> dict[str, Any]:
    return read_plain(text, size=YAML_MAX, depth=DEPTH_MAX, values=VALUES_MAX)


def _in_braces(text: str, name: str) -> dict[str, Any]:
    """Return the mapping in a text in braces; a list, or a mapping on each line, stands under this name.

    Besides JSON that is JSON with single quotes, comments or trailing commas, which YAML allows.
    """
    try:
        data = read_json(text)
    except ValueError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) > 1 and all(line[:1] == "{" and line.rstrip()[-1] == "}" for line in lines):
            every = [read_json(line) for line in lines]
            keys = {key: said for each in every if "severity" not in each for key, said in each.items()}
            if not keys or "verdict" in keys:
                return {**keys, name: [each for each in every if "severity" in each]}
            raise
        plain = COMMENT.sub("", text)
        whole = plain if text[0] == "{" else f"{name}: {plain}"
        return _yaml(whole)
    return data if isinstance(data, dict) else {name: data}


def _fences(lines: Sequence[Line]) -> Iterator[tuple[int, int, str]]:
    """Yield the fences for data: the indexes of their first and last line, and what is in them."""
    opened = -1
    for index, line in enumerate(lines):
        mark = line.text.strip()
        if line.mode is not FENCED or mark[:3] not in ("```", "~~~"):
            continue
        if opened < 0:
            opened = index
        elif not mark.strip("`~"):
            if lines[opened].text.strip("`~ \t").lower() in FENCES:
                yield opened, index, "\n".join(each.text for each in lines[opened + 1 : index])
            opened = -1


def _texts(lines: Sequence[Line]) -> Iterator[tuple[int, int, str]]:
    """Yield the JSON texts that begin a line: the indexes of their first and last line, and the text."""
    at = (index for index, line in enumerate(lines) if line.mode is STATED and JSON_FIRST.match(line.text))
    for first in islice(at, TEXTS_MAX):
        text = "\n".join(line.text for line in lines[first:])
        try:
            end = json.JSONDecoder().raw_decode(text)[1]
        except (ValueError, RecursionError):
            continue
        if not text[end:].partition("\n")[0].strip():
            yield first, first + text.count("\n", 0, end), text[:end]

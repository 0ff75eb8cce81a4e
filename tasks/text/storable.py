"""Core: text that every database holds, read from JSON and YAML, whose escapes can spell what is no text."""

import json
from typing import Any

from tasks.text.regex import regex

# NUL, which PostgreSQL does not take, and halves of characters, which nothing can encode; also whole pairs.
_ESCAPED = regex(r"\\u(?:0000|[dD][89a-fA-F])")
_ESCAPED_BYTES = regex(rb"\\u(?:0000|[dD][89a-fA-F])")
_UNSTORABLE = regex("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return the text without NUL, with pairs of halves joined and a mark in place of each single one."""
    if not _UNSTORABLE.search(text):
        return text
    return text.replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_json(text: str | bytes) -> Any:
    """Return what JSON by anybody holds, in storable texts. Raises ValueError and RecursionError."""
    escaped = _ESCAPED_BYTES.search(text) if isinstance(text, bytes) else _ESCAPED.search(text)
    value = json.loads(text)
    return all_storable(value) if escaped else value


def all_storable(value: Any) -> Any:
    """Return what JSON can hold with every text and name in it storable. Raises RecursionError."""
    match value:
        case str():
            return storable(value)
        case list():
            return [all_storable(each) for each in value]
        case dict():
            return {storable(name): all_storable(each) for name, each in value.items()}
    return value

"""Text from a run's log, made fit for rows and pages."""

import os
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from django.conf import settings

from agents.hosts import processes
from agents.models import Agent
from tasks.text.regex import regex

UNSEEN = rb"(?:\x1b\[[0-9;]{0,20}[A-Za-z]|[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f])*"  # by a terminal, and on pages
TOKEN = regex(rb"stx_(?:" + UNSEEN + rb"[A-Za-z0-9_-]){20,}")
SECRET = regex(r"(?i)\w*(?:key|token|secret|passw|credential)\w*")  # what a variable that holds one is called
IN_ADDRESS = regex(r"[A-Za-z][\w+.-]*://[^/\s:@]*:([^/\s@]+)@.*")
# A word of a file that is no name in JSON, and no part of an address or a path.
LIKE_A_KEY = regex(rb"(?<![\w.~+/=:-])[0-9A-Za-z][\w.~+/=-]{19,}+(?!\"\s*:)")
FILE_MAX, WORDS_MAX = 256 * 1024, 200
SHORTEST = 8  # a shorter value stands in too many words that are none


def clean(raw: bytes, agent: Agent | None = None) -> str:
    """Return the text for a row, with secrets masked, NULs removed and broken bytes replaced.

    Secrets are tokens, what this host's own variables hold, and what the sign-in file of the agent holds: a
    run may see some of them, and everybody who may see the run reads its log.
    """
    raw = TOKEN.sub(b"stx_***", raw.replace(b"\0", b""))
    for secret in _secrets(agent):
        raw = raw.replace(secret, b"***")
    return raw.decode("utf-8", "replace")


def _secrets(agent: Agent | None) -> list[bytes]:
    """Return the keys, tokens and passwords that this process or the agent has, the longest first.

    A variable that names a file or a folder holds no secret itself; a file does.
    """
    named = {value for name, value in os.environ.items() if SECRET.fullmatch(name)}
    places = {value for value in named if os.path.isabs(value) and os.path.exists(value)}
    found = named - places | {settings.SECRET_KEY, str(settings.DATABASES["default"].get("PASSWORD") or "")}
    found |= {told[1] for value in os.environ.values() if (told := IN_ADDRESS.fullmatch(value))}
    files = {*places, str(agent.settings.get("sign_in_file") or "")} if agent else places
    of_files = {each for file in files for each in _held(file)}
    of_variables = {os.fsencode(each) for each in found if len(each) >= SHORTEST}
    return sorted(of_variables | of_files, key=len, reverse=True)


def _held(place: str) -> list[bytes]:
    """Return what looks like a key or a token in a file of this host; nothing of a folder."""
    try:
        about = os.stat(place)
        return _words_of(place, about.st_mtime_ns, about.st_size) if S_ISREG(about.st_mode) else []
    except OSError:
        return []


@lru_cache(maxsize=32)
def _words_of(place: str, changed: int, size: int) -> list[bytes]:
    with open(place, "rb") as file:
        text = file.read(FILE_MAX).strip()
    if SHORTEST <= len(text) == len(text.split()[0]):  # nothing but a password
        return [text]
    return sorted(set(LIKE_A_KEY.findall(text)))[:WORDS_MAX]


def read(path: Path, begin: Any, end: Any, most: int) -> bytes:
    """Return the last `most` bytes between two offsets of a regular file; empty if it cannot be read.

    The offsets are not trusted beyond the file's size, because a run may have forged them.
    """
    try:
        with processes.open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            last = min(end, size) if isinstance(end, int) and end > 0 else size
            first = begin if isinstance(begin, int) and 0 <= begin <= last else 0
            first = max(first, last - most)
            file.seek(first)
            return file.read(last - first)
    except OSError:
        return b""

"""Text from a run's log, made fit for rows and pages."""

import os
from pathlib import Path
from typing import Any

from agents.hosts import processes
from tasks.text.regex import regex

UNSEEN = rb"(?:\x1b\[[0-9;]{0,20}[A-Za-z]|[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f])*"  # by a terminal, and on pages
TOKEN = regex(rb"stx_(?:" + UNSEEN + rb"[A-Za-z0-9_-]){20,}")
SECRET = regex(r"(?i)\w*(?:key|token|secret|passw|credential)\w*")  # what a variable that holds one is called
IN_ADDRESS = regex(r"[A-Za-z][\w+.-]*://[^/\s:@]*:([^/\s@]+)@.*")
SHORTEST = 8  # a shorter value stands in too many words that are none


def clean(raw: bytes) -> str:
    """Return the text for a row, with secrets masked, NULs removed and broken bytes replaced.

    Secrets are tokens, and what this host's own variables hold: a run may see some of them, and everybody
    who may see the run reads its log.
    """
    raw = TOKEN.sub(b"stx_***", raw.replace(b"\0", b""))
    for secret in _secrets():
        raw = raw.replace(secret, b"***")
    return raw.decode("utf-8", "replace")


def _secrets() -> list[bytes]:
    """Return the keys, tokens and passwords among this process's variables, the longest first."""
    found = {value for name, value in os.environ.items() if SECRET.fullmatch(name)}
    found |= {told[1] for value in os.environ.values() if (told := IN_ADDRESS.fullmatch(value))}
    return sorted({os.fsencode(each) for each in found if len(each) >= SHORTEST}, key=len, reverse=True)


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

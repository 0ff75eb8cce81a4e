"""Text from a run's log, made fit for rows and pages."""

import os
from pathlib import Path
from typing import Any

from agents.hosts import processes
from tasks.text.regex import regex

UNSEEN = rb"(?:\x1b\[[0-9;]{0,20}[A-Za-z]|[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f])*"  # by a terminal, and on pages
TOKEN = regex(rb"stx_(?:" + UNSEEN + rb"[A-Za-z0-9_-]){20,}")


def clean(raw: bytes) -> str:
    """Return the text for a row, with tokens masked, NULs removed and broken bytes replaced."""
    return TOKEN.sub(b"stx_***", raw.replace(b"\0", b"")).decode("utf-8", "replace")


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

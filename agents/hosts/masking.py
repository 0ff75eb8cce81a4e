"""Text out of a run's log, fit for rows and pages."""

import os
from pathlib import Path
from typing import Any

from agents.hosts import processes
from tasks.text.regex import regex

TOKEN = regex(rb"stx_[A-Za-z0-9_-]{20,}")


def clean(raw: bytes) -> str:
    """Text for a row: tokens masked, NULs gone, broken bytes replaced."""
    return TOKEN.sub(b"stx_***", raw).replace(b"\0", b"").decode("utf-8", "replace")


def read(path: Path, begin: Any, end: Any, most: int) -> bytes:
    """The last `most` bytes between two offsets of a regular file; empty where there is none.

    The offsets are believed no further than the file reaches: a run may have forged them.
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

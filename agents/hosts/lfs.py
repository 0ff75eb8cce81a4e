"""Core: the files of a clone that Git LFS keeps elsewhere, so that only pointers to them are there."""

from pathlib import Path

from agents.hosts import processes
from agents.hosts.git.commands import run
from tasks.text.counting import counted

ATTRIBUTES_MAX = 256 * 1024  # bytes of the file that says which files Git LFS keeps
POINTER_MAX = 1024  # bytes
POINTER = b"version https://git-lfs.github.com/spec/"
LISTED_MAX = 4 * 1024 * 1024  # bytes of names that are read
LOOKED_AT = 5000  # files


def said_of(clone: Path) -> str:
    """Return a line that says how many files are only pointers, and names one; empty if none is.

    Git LFS writes which files it keeps into the attributes at the top. A repository that has none there is
    not looked at, since every run waits for this.
    """
    try:
        attributes = processes.read_small(clone / ".gitattributes", ATTRIBUTES_MAX)
    except OSError:
        return ""
    if b"filter=lfs" not in attributes:
        return ""
    found = _pointers(clone)
    if not found:
        return ""
    return f"Git LFS keeps {counted(len(found), 'file')} whose content is not fetched, such as {found[0]}\n"


def _pointers(clone: Path) -> list[str]:
    listed = run(clone, "ls-files", "-z", "--", ":(attr:filter=lfs)", limit=LISTED_MAX, may_cut=True)
    names = listed.stdout.decode("utf-8", "replace").split("\0")[:LOOKED_AT]
    return [name for name in names if name.isprintable() and _is_pointer(clone / name)]


def _is_pointer(path: Path) -> bool:
    try:
        return processes.read_small(path, POINTER_MAX).startswith(POINTER)
    except OSError:
        return False

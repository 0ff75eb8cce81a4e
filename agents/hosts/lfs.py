"""Core: files that Git LFS keeps elsewhere: only pointers to them are in a clone and belong into a commit."""

from collections.abc import Iterable
from pathlib import Path

from agents.hosts import processes
from agents.hosts.git.commands import run
from agents.hosts.git.repository import Repository
from tasks.text.counting import counted

ATTRIBUTES_MAX = 256 * 1024  # bytes of the file that says which files Git LFS keeps
POINTER_MAX = 1024  # bytes
POINTER = b"version https://git-lfs.github.com/spec/"
LISTED_MAX = 4 * 1024 * 1024  # bytes of names that are read
LOOKED_AT = 5000  # files
WHOLE_MAX = 500  # files of one commit that are looked at, each of which costs a process of git


def is_used(clone: Path) -> bool:
    """Whether the attributes at the top of a clone name the filter of Git LFS."""
    try:
        return b"filter=lfs" in processes.read_small(clone / ".gitattributes", ATTRIBUTES_MAX)
    except OSError:
        return False


def said_of(clone: Path) -> str:
    """Return a line that says how many files are only pointers, and names one; empty if none is.

    Git LFS writes which files it keeps into the attributes at the top. A repository that has none there is
    not looked at, since every run waits for this.
    """
    if not is_used(clone):
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


def whole(mirror: Repository, sha: str, fork: str, paths: Iterable[str]) -> list[str]:
    """Return which of these paths hold content in a commit that Git LFS is to keep, and did not at the fork.

    No clone has the filter that would make pointers of them, and nothing here brings content to the server of
    Git LFS. An empty file has no pointer. As above, the attributes at the top tell whether to look.
    """
    if "filter=lfs" not in (mirror.read(sha, ".gitattributes", ATTRIBUTES_MAX) or ""):
        return []
    kept = mirror.filtered(sha, "lfs", sorted(set(paths)))[:WHOLE_MAX]
    return [path for path in kept if _is_whole(mirror, sha, path) and not _is_whole(mirror, fork, path)]


def _is_whole(mirror: Repository, sha: str, path: str) -> bool:
    begins = mirror.read(sha, path, POINTER_MAX)
    return bool(begins) and not begins.startswith(POINTER.decode()) and mirror.is_file(sha, path)

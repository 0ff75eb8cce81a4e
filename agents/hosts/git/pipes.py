"""Core: refusing pipes and devices where git expects files, because it would wait there until its timeout."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from agents.hosts.git.commands import GitError

# What git opens in a clone's git folder when a commit is fetched from it, found by trial. Which objects it
# opens depends on the commit. Branches are not included, because the commit is asked for by its hash.
OPENED = (
    "HEAD", "commondir", "config", "config.worktree", "packed-refs", "shallow", "info/attributes",
    "info/grafts", "objects/*/*", "objects/info/commit-graphs/*", "refs/*",
)  # fmt: skip
FOLDERS = ("refs", "refs/tags", "objects", "objects/*", "objects/info/commit-graphs")
TAGS = "refs/tags"  # git looks through it for names of the objects that it sends
OPENED_IN_TREE = (".gitattributes", ".gitignore")


def refuse_pipes(clone: Path) -> None:
    """Refuse an agent's clone that has pipes where git reads to fetch a commit from it. Raises GitError.

    So is one with a link in place of a folder, since what is read here would not be what git sees.
    """
    folder = clone / ".git"
    for path in (folder, *(path for pattern in FOLDERS for path in folder.glob(pattern))):
        if path.is_symlink() and path.is_dir():
            raise GitError("your clone", f"{path.relative_to(clone)} is a link, where git makes a folder")
    named = (path for pattern in OPENED for path in folder.glob(pattern))
    _refuse(clone, named, follow_symlinks=True)
    _refuse(clone, _files_below(folder / TAGS), follow_symlinks=True)


def refuse_pipes_in_tree(tree: Path) -> None:
    """Refuse a work tree that has pipes where git reads to look through it. Raises GitError.

    Git follows no links there.
    """
    told = (path for path in _files_below(tree) if path.name in OPENED_IN_TREE)
    _refuse(tree, told, follow_symlinks=False)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield all files however deep they lie; os.walk gives up if folders are nested a thousand deep."""
    left = [str(folder)]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                else:
                    yield Path(entry.path)


def _refuse(clone: Path, paths: Iterable[Path], *, follow_symlinks: bool) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # a link that leads nowhere
            mode = path.stat(follow_symlinks=follow_symlinks).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
                raise GitError(
                    "your clone", f"{path.relative_to(clone)} is no file, and git would wait at it"
                )

"""Core: mending a mirror that a crash or a bad disk has damaged, so that the remote is not blamed for it.

Whatever the remote has is fetched again. What only this host has is taken over as far as it can be read; the
rest is in bundles in the database, and the callers restore it from there.
"""

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from agents.hosts import processes
from agents.hosts.git.commands import GitError, run, text
from agents.hosts.git.mirror import Mirror
from agents.hosts.git.remotes import HostTrouble, Interrupted, Unreachable

log = logging.getLogger(__name__)

LOCK_OLD = 150.0  # seconds: no command of ours may take longer
LOCK_YOUNG = 1.0  # seconds: if no git is at work there, a lock older than this was left by a killed one
CHECK_SECONDS = 300.0
NEARLY_FULL = 5  # a disk of which less than one part in so many is free
TAKEN_OVER_IN = 240.0  # seconds for copying what only this host has


class MendingMirror(Mirror):
    """A mirror that checks and mends itself when git fails."""

    def fetch_target(self) -> str:
        """Fetch the target branch and return its head. Raises Unreachable and HostTrouble."""
        try:
            return super().fetch_target()
        except Interrupted:
            raise
        except GitError as error:
            if not self.mend(error):
                raise
        return super().fetch_target()

    @contextlib.contextmanager
    def mended(self) -> Iterator[None]:
        """Mend this mirror if git fails in the block because of it; the next try finds it whole.

        Raises HostTrouble if the mirror was damaged or its disk is full, and any other GitError as it came.
        """
        try:
            yield
        except Unreachable:
            raise
        except GitError as error:
            if self.mend(error):
                raise HostTrouble("mirror", "was damaged, and is whole again") from error
            if error.is_of_disk() and self.is_short_of_room():
                raise HostTrouble(error.what, error.text, code=error.code) from error
            raise

    def is_short_of_room(self) -> bool:
        """Whether git may well have failed for its disk: an agent's clone can make git say what it likes."""
        disk = os.statvfs(self.path.parent)
        is_short = disk.f_bavail < disk.f_blocks // NEARLY_FULL or disk.f_favail < disk.f_files // NEARLY_FULL
        return is_short or bool(disk.f_flag & os.ST_RDONLY)

    def mend(self, error: GitError) -> bool:
        """Whether something was wrong with this mirror when git failed, and has been mended.

        Raises HostTrouble if the mirror cannot be mended.
        """
        self.forget()
        if isinstance(error, Interrupted) or not self.path.exists():
            return False
        with self.one_at_a_time():
            if _clear_locks(self.path, error.text):
                return True
            if not _is_damaged(self.path, error):
                return False
            log.warning("The mirror %s is damaged and made again: %s", self.path, str(error).splitlines()[0])
            try:
                _begin_again(self.path)
                if _is_damaged(self.path, error):
                    _rebuild(self)
            except (GitError, OSError) as again:
                raise HostTrouble(
                    "mirror", f"{self.path.name} is damaged and cannot be mended: {again}"
                ) from again
        return True


def _clear_locks(path: Path, said: str) -> bool:
    """Remove locks whose holder was killed; return whether there were any."""
    if ".lock" not in said and "lock ref" not in said:
        return False
    found = [*path.glob("*.lock"), *(path / "refs").rglob("*.lock")]
    is_left = not processes.of_git_at(path)
    old = [
        lock for lock in found
        if _age(lock) > LOCK_OLD or (is_left and abs(_age(lock)) > LOCK_YOUNG)  # a clock may step back
    ]  # fmt: skip
    for lock in old:
        log.warning("Removing %s, which nobody holds any more.", lock)
        lock.unlink(missing_ok=True)
    return bool(old)


def _age(path: Path) -> float:
    with contextlib.suppress(OSError):
        return time.time() - path.stat().st_mtime
    return 0.0


def _is_damaged(path: Path, error: GitError) -> bool:
    """Whether the mirror is no repository, lacks what its refs name or, on a hint by git, fails a check."""
    try:
        text(path, "rev-parse", "--is-bare-repository")
        named = "".join(f"{sha}\n" for sha, _ in _refs(path)).encode()
        if b" missing" in run(path, "cat-file", "--batch-check", stdin=named).stdout:
            return True
    except GitError:
        return True
    if not isinstance(error, HostTrouble) and "object" not in error.text and "pack" not in error.text:
        return False
    try:
        run(path, "fsck", "--connectivity-only", "--no-dangling", "--no-progress", timeout=CHECK_SECONDS)
    except GitError as problem:
        return problem.code is not None
    return False


def _refs(path: Path) -> Iterator[tuple[str, str]]:
    for line in text(path, "for-each-ref", "--format=%(objectname) %(refname)").splitlines():
        sha, _, ref = line.partition(" ")
        yield sha, ref


def _begin_again(path: Path) -> None:
    """Run `git init` again if git sees no repository; what is there stays. Raises GitError."""
    try:
        text(path, "rev-parse", "--is-bare-repository")
    except GitError:
        (path / "HEAD").unlink(missing_ok=True)
        (path / "config").unlink(missing_ok=True)
        run(path.parent, "init", "--quiet", "--bare", str(path))


def _rebuild(mirror: Mirror) -> None:
    """Put a new repository in the mirror's place. Raises GitError and OSError if it cannot be written."""
    new, old = (mirror.path.with_name(f"{mirror.path.name}.{word}") for word in ("new", "damaged"))
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    fresh = Mirror(new, mirror.url, mirror.branch, mirror.network)
    fresh.ensure()
    with contextlib.suppress(GitError):  # if the remote is away, what is here has to do
        fresh.fetch_target()
    _take_over(mirror.path, fresh)
    fresh.lock.unlink(missing_ok=True)
    mirror.path.rename(old)
    new.rename(mirror.path)


def _take_over(damaged: Path, fresh: Mirror) -> None:
    """Copy what is intact among the refs that only the damaged repository has."""
    try:
        refs = [(sha, ref) for sha, ref in _refs(damaged) if ref != fresh.target_ref]
    except GitError:
        return
    until, lost = time.monotonic() + TAKEN_OVER_IN, 0
    for sha, ref in reversed(refs):
        try:
            if time.monotonic() > until:
                raise GitError("git fetch", "there is no time for it")
            if fresh.has(sha):
                fresh.keep(sha, ref)
            else:
                fresh.take(damaged, sha, ref)
        except GitError:
            lost += 1
    if lost:
        log.warning("%d of %d refs of %s could not be read.", lost, len(refs), damaged)

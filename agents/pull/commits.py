"""The commits that pulled agents bring: read in a separate repository, then fetched like any others.

Git checks the objects of a bundle less strictly than those of a fetch. So a bundle is opened in an empty
repository that borrows the mirror's objects and is measured there; the mirror then fetches the one commit
from it, with fsck.
"""

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from agents.hosts import paths
from agents.hosts.git.commands import GitError, run, text
from agents.hosts.git.mirror import Mirror
from agents.models import PullBundle, Run
from agents.pull.leases import HAND_IN_REF, base_ref
from tasks.models import Bundle, Submission

UNPACKED_MAX = 256 * 1024 * 1024  # bytes of all new objects together
OBJECTS_MAX = 100_000
WORK = "refs/heads/work"


@contextlib.contextmanager
def opened(mirror: Mirror, data: bytes, ref: str) -> Iterator[Path]:
    """Provide a repository in which `WORK` is what the bundle calls `ref`. Raises GitError."""
    folder = paths.folder("pulled") / uuid.uuid4().hex
    folder.mkdir(mode=0o700)
    try:
        repository, file = folder / "work.git", folder / "work.bundle"
        file.write_bytes(data)
        run(folder, "init", "--quiet", "--bare", "--template=", str(repository))
        (repository / "objects" / "info").mkdir(exist_ok=True)
        (repository / "objects" / "info" / "alternates").write_text(f"{mirror.path / 'objects'}\n")
        run(
            repository, "-c", "core.bigFileThreshold=8m", "fetch", "--quiet", "--no-tags",
            "--no-recurse-submodules", "--no-write-fetch-head", "--end-of-options", str(file),
            f"+{ref}:{WORK}", timeout=120,
        )  # fmt: skip
        yield repository
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def take(run_: Run, submission: Submission, mirror: Mirror, ref: str) -> None:
    """Bring the submission's commit from its bundle into the mirror, under `ref`. Raises GitError."""
    sha = submission.sha
    brought = Bundle.objects.filter(submission=submission).first()
    if brought is None:
        if sha != run_.base_sha:
            raise GitError("your commit", "came without a bundle")
        mirror.keep(sha, ref)
        return
    with opened(mirror, bytes(brought.data), HAND_IN_REF) as repository:
        if text(repository, "rev-parse", WORK) != sha:
            raise GitError("your bundle", f"ends with another commit than {sha[:12]}")
        _measure(repository, sha, run_.base_sha)
        mirror.take(repository, sha, ref)


def _measure(repository: Path, sha: str, base: str) -> None:
    """Raise GitError if the bundle unpacks to too many objects or too many bytes."""
    names = run(repository, "rev-list", "--objects", "--no-object-names", sha, f"^{base}").stdout
    if names.count(b"\n") > OBJECTS_MAX:
        raise GitError("your commit", f"brings more than {OBJECTS_MAX} objects")
    sizes = run(repository, "cat-file", "--batch-check=%(objectsize)", stdin=names).stdout.split()
    if sum(int(size) for size in sizes if size.isdigit()) > UNPACKED_MAX:
        raise GitError("your commit", f"unpacks to more than {UNPACKED_MAX // 1024 // 1024} MiB")


def bring_base(run_: Run, mirror: Mirror) -> None:
    """Make sure that this host has the commit that the run began at. Raises GitError, Unreachable."""
    base = run_.base_sha
    if mirror.has(base):
        return
    mirror.fetch_target()
    if mirror.has(base):
        return
    given = PullBundle.objects.filter(run=run_).first()
    if given is None or not given.base:
        raise GitError(f"commit {base[:12]}", "is on no host and not on the remote")
    with opened(mirror, bytes(given.base), base_ref(run_.pk)) as repository:
        mirror.take(repository, base, base_ref(run_.pk))

"""The caches of package managers and compilers.

Each run has a cache of its own in its folder. A run that builds begins with a copy of what the trials of the
target branch left, which is everybody's code; so no run reads what the commit of another task wrote.
"""

import os
import subprocess
from pathlib import Path

from django.conf import settings

from agents.hosts import paths
from agents.hosts.shims.weight import measure

NAME = "cache"  # in a run's folder
BUILDERS = {"coder", "verifier"}
SHARE = 8  # this part of what a run may take, for what is copied to each
SECONDS = 300.0  # to copy it


def kept_of(project: int) -> Path:
    """Return the folder of what the trials of this project left on this host; nothing need be there."""
    return Path(settings.HOME) / "env" / str(project) / "base" / NAME


def prepare(project: int, folder: Path, role: str) -> Path:
    """Make the cache of the run in this folder, and return it. If the copy fails, the cache is empty."""
    own, kept = folder / NAME, kept_of(project)
    if role in BUILDERS and kept.is_dir() and not own.exists():
        os.utime(kept.parent)  # notes when it was used last
        copy = ["cp", "--archive", "--reflink=auto", "--", str(kept), str(own)]
        try:
            subprocess.run(copy, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True)
        except (OSError, subprocess.SubprocessError):  # a trial has replaced it meanwhile
            paths.remove(own)
    own.mkdir(parents=True, exist_ok=True)
    own.chmod(0o700)
    return own


def keep(project: int, folder: Path) -> None:
    """Keep the cache of a trial for the runs to come; if it has grown too large, they begin without one."""
    own, kept = folder / NAME, kept_of(project)
    if not own.is_dir() or own.is_symlink():
        return
    most = (settings.RUN_DISK_MAX_BYTES // SHARE, settings.RUN_FILES_MAX // SHARE)
    sizes = measure([str(own)], *most)
    paths.remove_at_once(kept)
    if all(size <= limit for size, limit in zip(sizes, most, strict=True)):
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        own.rename(kept)
        os.utime(kept.parent)

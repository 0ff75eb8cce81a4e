"""Where things lie on an agent host: below the data folder, readable by its owner only."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

from django.conf import settings

from agents.hosts.git.memory import Size
from agents.hosts.git.remotes import Network
from agents.hosts.mending import MendingMirror
from agents.models import Run
from tasks.models import Project

SOCKET_PATH_MAX = 100
RESERVE = 8, 512 * 1024  # files, and the bytes of each
FILE_SIZE = 4096  # bytes that a file takes at least, in what we reckon of a disk


def room() -> int:
    """Return how many bytes the data folder's disk has left; one that takes few more files has little."""
    disk = os.statvfs(settings.HOME)
    free = disk.f_bavail * disk.f_frsize
    return min(free, disk.f_favail * FILE_SIZE) if disk.f_files else free  # some disks do not count files


def keep_reserve() -> None:
    """Hold back a little of the disk, in several files, so that neither bytes nor files run out.

    A run that has filled the disk is ended in the database, and only then is removed what it wrote.
    """
    reserve, (number, size) = folder("host") / "reserve", RESERVE
    if reserve.exists():
        return
    reserve.mkdir(mode=0o700)
    for name in range(number):
        (reserve / str(name)).write_bytes(os.urandom(size))


def use_reserve() -> None:
    """Give up what was held back if there is hardly anything left of the disk."""
    if room() < RESERVE[1]:
        shutil.rmtree(settings.HOME / "host" / "reserve", ignore_errors=True)


def folder(*parts: str) -> Path:
    """Return a folder below the data folder, and create it with mode 0700 if it does not exist."""
    path = settings.HOME.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(path)


def run_folder(run_pk: int) -> Path:
    return Path(settings.HOME) / "runs" / str(run_pk)


def make_anew(path: Path) -> None:
    """Make a folder and leave nothing in it, whatever a run or a trial left in it.

    The old one is moved aside first: a beat may be writing its lease while it is removed. Raises OSError.
    """
    remove_at_once(path)
    path.mkdir(parents=True, mode=0o700)


def remove_at_once(path: Path) -> None:
    """Move the path aside and remove it there, so that nobody sees half of it. Raises OSError."""
    if path.exists():
        aside = folder("going") / uuid.uuid4().hex
        path.rename(aside)
        remove(aside)


def remove(path: Path) -> None:
    """Remove the path, whatever an agent turned it into. What cannot be removed stays."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        try:
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():
                _open_up(path)
                shutil.rmtree(path, ignore_errors=True)
        except RecursionError:  # folders are nested too deeply
            subprocess.run(["rm", "-rf", "--", str(path)], check=False, timeout=600)


def _open_up(path: Path) -> None:
    """Let the owner write to every folder in it, so that what lies there can be removed. Follows no links."""
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
    for folder, below, _ in os.walk(path):
        for name in below:
            inner = os.path.join(folder, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)


def clone_of(run: Run) -> Path:
    return run_folder(run.pk) / "clone"


def host_lock() -> Path:
    """Return the lock file that is held by the one process that reconciles this host's runs."""
    return folder("host") / "reconcile.lock"


def resident_lock() -> Path:
    """Return the lock file that run_orchestrator holds for as long as it lives."""
    return folder("host") / "resident.lock"


def bell_socket() -> Path:
    """Return the path of the loop's datagram socket, a short one if the data folder's path is too long."""
    path = f"{settings.HOME}/host/bell"
    if len(path) <= SOCKET_PATH_MAX:
        return Path(path)
    short = hashlib.sha256(path.encode()).hexdigest()[:16]
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"steroids-{short}"


def network() -> Network:
    """Say how git may reach remotes: with the operator's ssh agent and credential file, and nothing else."""
    seen = {name: os.environ[name] for name in ("HOME", "SSH_AUTH_SOCK") if name in os.environ}
    credentials = Path(settings.HOME) / "git-credentials"
    return Network(
        protocols=tuple(settings.GIT_PROTOCOLS),
        timeout=settings.DURATIONS["git_network"],
        credentials=credentials if credentials.exists() else None,
        environment=seen,
    )


def largest_checkout() -> Size:
    """Return how large a checkout may be, which no run could hold if it were larger."""
    return Size(settings.RUN_FILES_MAX, settings.RUN_DISK_MAX_BYTES)


def mirror(project: Project) -> MendingMirror:
    """Return the project's trusted repository on this host. Raises GitError if the branch name is invalid."""
    path = folder("mirrors") / f"{project.pk}.git"
    return MendingMirror(path, project.repo_url, project.target_branch, network())

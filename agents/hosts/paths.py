"""Where things lie on an agent host. Everything is below the data folder and for its owner only."""

import hashlib
import os
import tempfile
from pathlib import Path

from django.conf import settings

from agents.hosts.git.remotes import Network
from agents.hosts.mending import MendingMirror
from agents.models import Run
from tasks.models import Project

SOCKET_PATH_MAX = 100


def folder(*parts: str) -> Path:
    """A folder below the data folder, made with mode 0700."""
    path = settings.HOME.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(path)


def run_folder(run_pk: int) -> Path:
    return Path(settings.HOME) / "runs" / str(run_pk)


def clone_of(run: Run) -> Path:
    return run_folder(run.pk) / "clone"


def host_lock() -> Path:
    """Held by the one process that reconciles this host's runs."""
    return folder("host") / "reconcile.lock"


def resident_lock() -> Path:
    """Held by run_orchestrator for as long as it lives."""
    return folder("host") / "resident.lock"


def bell_socket() -> Path:
    """The loop's datagram socket. In a short place where the data folder's path is too long for one."""
    path = Path(settings.HOME) / "host" / "bell"
    if len(str(path)) <= SOCKET_PATH_MAX:
        return path
    short = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"steroids-{short}"


def network() -> Network:
    """How git may reach remotes: with the operator's ssh agent and credential file, and nothing else."""
    seen = {name: os.environ[name] for name in ("HOME", "SSH_AUTH_SOCK") if name in os.environ}
    credentials = Path(settings.HOME) / "git-credentials"
    return Network(
        protocols=tuple(settings.GIT_PROTOCOLS),
        timeout=settings.DURATIONS["git_network"],
        credentials=credentials if credentials.exists() else None,
        environment=seen,
    )


def mirror(project: Project) -> MendingMirror:
    """The project's trusted repository on this host. Raises GitError for a branch name that is none."""
    path = folder("mirrors") / f"{project.pk}.git"
    return MendingMirror(path, project.repo_url, project.target_branch, network())

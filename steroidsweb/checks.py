"""System checks: what can be wrong at start, each with an id and with what to do."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError

SAFE_SQLITE = (3, 51, 3)
OLDEST_GIT = (2, 38)
# Of git 2.x the first release of each series that runs nothing which a clone to be fetched from names
# (CVE-2024-32004, CVE-2024-32465); series before these were never mended, later ones need it not.
MENDED_GIT = {39: 4, 40: 2, 41: 1, 42: 2, 43: 4, 44: 1, 45: 1}
NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smbfs", "9p", "fuse.sshfs"}


@register("steroids")
def check_home(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """The data folder can be written, is nobody else's, and lies on a disk of this machine."""
    home = Path(settings.HOME)
    nearest = home if home.exists() else next(parent for parent in home.parents if parent.exists())
    found: list[CheckMessage] = []
    if not os.access(nearest, os.W_OK):
        found.append(Error(f"{nearest} cannot be written.", hint="Set STEROIDS_HOME.", id="steroids.E001"))
    if home.exists() and home.stat().st_mode & 0o077:
        found.append(
            Error(
                f"Other users of this machine can look into {home}: at its keys and its database.",
                hint=f"chmod -R go= {home}",
                id="steroids.E002",
            )
        )
    if _filesystem(nearest) in NETWORK_FILESYSTEMS:
        found.append(
            Error(
                f"{home} lies on a network disk, where locks do not hold.",
                hint="Set STEROIDS_HOME to a local folder.",
                id="steroids.E003",
            )
        )
    return found


def _filesystem(path: Path) -> str:
    """The type of the file system that holds the path; empty where it cannot be told."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    below = [
        (len(words[1]), words[2]) for words in mounts if str(path).startswith(words[1].rstrip("/") + "/")
    ]
    return max(below)[1] if below else ""


@register("steroids")
def check_sqlite(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """SQLite before 3.51.3 has a rare corruption in just our way of using it."""
    embedded = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
    if not embedded or sqlite3.sqlite_version_info >= SAFE_SQLITE:
        return []
    return [
        Warning(
            f"SQLite {sqlite3.sqlite_version} has a rare corruption that 3.51.3 mended.",
            hint="Use Python 3.11 on Linux x86-64, whose requirements bring a newer one, or PostgreSQL.",
            id="steroids.W004",
        )
    ]


@register("steroids")
def check_git(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Git is there and knows what we ask of it."""
    try:
        version = _git_version()
        is_too_old = _numbers(version)[:2] < OLDEST_GIT
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return [Error("git cannot be run.", hint="On Debian: apt-get install git", id="steroids.E005")]
    if is_too_old:
        return [Error(f"git {version} is too old.", hint="2.38 or newer is needed.", id="steroids.E006")]
    return []


def _git_version() -> str:
    """As git says it. Raises OSError, SubprocessError and IndexError."""
    done = subprocess.run(["git", "version"], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.split()[2]


def _numbers(version: str) -> tuple[int, ...]:
    """Raises ValueError where not even the first two are numbers."""
    first, second, *more = version.split(".")
    return int(first), int(second), int(more[0]) if more and more[0].isdecimal() else 0


@register("steroids", deploy=True)
def check_git_is_mended(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Outside of a sandbox git reads clones that agents could prepare."""
    if not _why_open():
        return []
    try:
        version = _git_version()
        major, series, release = _numbers(version)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return []  # E005 says so
    if major > 2 or series > max(MENDED_GIT) or release >= MENDED_GIT.get(series, release + 1):
        return []
    return [
        Warning(
            f"git {version} may run what a clone names from which it fetches (CVE-2024-32004, "
            "CVE-2024-32465), and runs of this host have no sandbox.",
            hint="Install bubblewrap, or upgrade git unless your distribution mended it under this number.",
            id="steroids.W012",
        )
    ]


@register("steroids")
def check_queue(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """A job must not be delivered again while it may still run."""
    queue = settings.Q_CLUSTER
    waiting = -(-(int(queue["queue_limit"]) + 1) // int(queue["workers"]))
    least = int(queue["timeout"]) * (1 + waiting) + 3
    if int(queue["retry"]) <= least:
        return [
            Error(
                f"Q_CLUSTER retry {queue['retry']} must be above {least}.",
                hint="Raise retry.",
                id="steroids.E007",
            )
        ]
    return []


@register("steroids")
def check_leases(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """A shim ends its agent before another host may take the run over."""
    seconds = settings.DURATIONS
    if seconds["beat"] * 2 < seconds["orphan"] < seconds["lease"]:
        return []
    return [
        Error(
            "Leases must keep the order: twice STEROIDS_BEAT < STEROIDS_ORPHAN < STEROIDS_LEASE.",
            hint="The defaults are 10, 45 and 60 seconds.",
            id="steroids.E008",
        )
    ]


@register(Tags.database)
def check_staff(
    app_configs: Sequence[Any] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Every column has somebody, and no agent without a domain stands in for all the others.

    Asked by `manage.py check --database default`; warnings, for an error would refuse `migrate` as well.
    """
    if not databases or "default" not in databases:
        return []
    try:
        return list(_staff())
    except DatabaseError:  # its tables are still to be made
        return []


def _staff() -> Iterator[CheckMessage]:
    from agents.crew.choosing import Crew
    from agents.crew.coverage import unwatched, without_domain
    from tasks.models import Project

    crew = Crew()
    for column in unwatched(Project.objects.filter(status=Project.Status.ACTIVE), crew):
        yield Warning(column.line, hint=column.hint, id="steroids.W010")
    for agent in without_domain(crew):
        yield Warning(
            f"The coder {agent.name} has no domain, and others beside it have.",
            hint="Give it domains: it takes only what fits nobody else, and is no catch-all.",
            id="steroids.W011",
        )


@register("steroids", deploy=True)
def check_isolation(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Agents of the same user can read what this program stores, unless they are enclosed."""
    if not (why := _why_open()):
        return []
    return [
        Warning(
            f"Agents of this host run as the same user as this program, without a sandbox: {why}",
            hint="Else give the program a machine or a user of its own, and store no personal token there.",
            id="steroids.W009",
        )
    ]


def _why_open() -> str:
    """Why runs of this host have no sandbox; empty where they have one, or there are none without."""
    from agents.hosts import sandbox

    return "" if settings.SANDBOX == sandbox.REQUIRED else str(sandbox.standing()["why_open"])

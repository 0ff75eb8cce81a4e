"""System checks: what can be wrong at the start, each with an id and with what to do about it."""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError

SAFE_SQLITE = (3, 51, 3)
OLDEST_GIT = (2, 38)
# For each series of git 2.x, the first release that runs nothing which is named by a clone it fetches from
# (CVE-2024-32004, CVE-2024-32465). Older series were never mended, and newer ones are mended from the start.
MENDED_GIT = {39: 4, 40: 2, 41: 1, 42: 2, 43: 4, 44: 1, 45: 1}
NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smbfs", "9p", "fuse.sshfs"}


@register("steroids")
def check_home(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check that the data folder is writable, closed to other users, and on a local disk."""
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
    """Return the type of the file system that holds the path; empty if it cannot be determined."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    above = [(len(words[1]), words[2]) for words in mounts if path.is_relative_to(words[1])]
    return max(above)[1] if above else ""


@register("steroids")
def check_sqlite(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check that SQLite is 3.51.3 or newer, since older ones can corrupt a database used as this one is."""
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
    """Check that git can be run and is new enough."""
    git = _git()
    if git is None:
        return [Error("git cannot be run.", hint="On Debian: apt-get install git", id="steroids.E005")]
    if git.numbers[:2] < OLDEST_GIT:
        return [Error(f"git {git.version} is too old.", hint="2.38 or newer is needed.", id="steroids.E006")]
    return []


class _Git(NamedTuple):
    """Git's version as it prints it, and the first three numbers of that."""

    version: str
    numbers: tuple[int, int, int]


def _git() -> _Git | None:
    """Return the version of git; None if it cannot be run or says nothing like a version."""
    try:
        done = subprocess.run(["git", "version"], capture_output=True, text=True, timeout=10, check=True)
        version = done.stdout.split()[2]
        first, second, *more = version.split(".")
        third = int(more[0]) if more and more[0].isdecimal() else 0
        return _Git(version, (int(first), int(second), third))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


@register("steroids", deploy=True)
def check_git_is_mended(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check that git is safe if runs have no sandbox, since it then reads clones that agents can prepare."""
    git = _git() if _why_open() else None
    if git is None:  # E005 says so
        return []
    major, series, release = git.numbers
    if major > 2 or series > max(MENDED_GIT) or release >= MENDED_GIT.get(series, release + 1):
        return []
    return [
        Warning(
            f"git {git.version} may run what a clone names from which it fetches (CVE-2024-32004, "
            "CVE-2024-32465), and runs of this host have no sandbox.",
            hint="Install bubblewrap, or upgrade git unless your distribution mended it under this number.",
            id="steroids.W012",
        )
    ]


@register("steroids")
def check_queue(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check that a job is not delivered again while it may still be running."""
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
    """Check that a shim ends its agent before another host may take over the run."""
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
    """Check that every column has an agent, and that no coder without a domain stands in for all the others.

    This runs with `manage.py check --database default`. It gives only warnings, because an error would stop
    `migrate` too.
    """
    return _of_tables(databases, _staff)


def _of_tables(databases: Sequence[str] | None, found: Callable[[], Iterator[CheckMessage]]) -> list[Any]:
    """Return what is found in the database, if it may be read and its tables exist."""
    if not databases or "default" not in databases:
        return []
    try:
        return list(found())
    except DatabaseError:
        return []


@register("steroids", Tags.database)
def check_groups(
    app_configs: Sequence[Any] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Check that the projects exist in which groups of single sign-on have roles; with the database only."""
    return _of_tables(databases, _groups) if settings.OIDC else []


def _groups() -> Iterator[CheckMessage]:
    from tasks.models import Project

    known = sorted(Project.objects.values_list("slug", flat=True))
    for group, project, _ in settings.OIDC.groups:
        if project != "*" and project not in known:
            yield Warning(
                f"STEROIDS_OIDC_GROUPS gives {group} a role in {project}, and there is no such project.",
                hint=f"Its people get no right there. There are: {', '.join(known[:20]) or 'no projects'}.",
                id="steroids.W013",
            )


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


@register("steroids")
def check_prices(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Warn about a price list that cannot be read, naming the faulty lines; the program runs without it."""
    if not settings.PRICES.exists():
        return []
    from agents.money import prices

    try:
        prices.load(settings.PRICES)
    except (prices.BadPrices, OSError) as error:
        hint = "Mend the file; until then the list before it counts, or else the program's own prices."
        return [Warning(f"The price list cannot be used. {error}", hint=hint, id="agents.W010")]
    return []


@register("steroids", deploy=True)
def check_isolation(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check that runs have a sandbox; without one, agents can read what this program stores."""
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
    """Return why runs of this host have no sandbox; empty if they have one, or if one is required."""
    from agents.hosts import sandbox

    return "" if settings.SANDBOX == sandbox.REQUIRED else str(sandbox.standing()["why_open"])

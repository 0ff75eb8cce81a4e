"""Checks of this machine: its data folder, its mirrors, its disk, and the program's own state."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count

from agents import outputs
from agents.cli import VERSION
from agents.doctor.checks import Finding
from agents.doctor.runs import REPAIR
from agents.hosts import outcomes, paths, sandbox
from agents.hosts.git import commands as git
from agents.hosts.git.commands import GitError
from agents.hosts.git.mirror import Mirror
from agents.models import Host, Output, Run, Trial
from tasks.database.clock import estimated_time
from tasks.models import Project, Task

DAY = 24 * 3600.0
LOG_MAX = 64 * 1024 * 1024  # bytes of one log of a server
# The most rows of one log; they are at least half full.
PIECES_MAX = 4 * (outcomes.LOG_MAX + outcomes.TAIL) // outputs.ROW
SLACK = 1024 * 1024  # bytes that a run may print between two checks by its shim
FREE_LEAST = 1024**3  # bytes
FREE_SHARE = 0.03
FSCK_TIMEOUT = 120.0
LOCK_OLD = 600.0  # seconds after which the git that left a lock cannot still be working
SCRATCH = ("incoming-*.bundle", "patch-*.diff", "salvage-*.index")
WORK = ("cache", "clone", "env", "home", "tmp")


def _home() -> Path:
    return Path(settings.HOME)


# --- Disk -------------------------------------------------------------------------------------------------


def caps() -> Iterator[Finding]:
    """Check that logs keep within their limits, on the disk and in the rows."""
    for file in _large_logs():
        yield Finding(f"{file} is {_size(file.stat().st_size)} large.", REPAIR)
    for file in (_home() / "runs").glob("*/output.log"):
        most = settings.OUTPUT_MAX_BYTES + SLACK
        if not file.is_symlink() and file.stat().st_size > most:
            yield Finding(
                f"Run {file.parent.name} wrote {_size(file.stat().st_size)}, more than it may.",
                "Look at the run's page; if it is still under way, stop it there.",
            )
    pieces = Output.objects.order_by().values("run").annotate(n=Count("pk"))
    for row in pieces.filter(n__gt=PIECES_MAX):
        yield Finding(
            f"The log of run {row['run']} is in {row['n']} rows, more than it may.", "Report what you see."
        )


def _large_logs() -> list[Path]:
    return [file for file in sorted((_home() / "log").glob("*.log")) if file.stat().st_size > LOG_MAX]


def cut_logs() -> Iterator[str]:
    """Cut each log that is too large to its last part. Its writers append, and go on at the new end."""
    for file in _large_logs():
        with file.open("r+b") as log:
            log.seek(-LOG_MAX // 8, os.SEEK_END)
            log.readline()
            tail = log.read()
            log.seek(0)
            log.write(tail)
            log.truncate()
        yield f"{file} is cut to its last {_size(len(tail))}."


def disk() -> Iterator[Finding]:
    """Check that there is room for clones, mirrors and the database."""
    space, room = shutil.disk_usage(_home()), paths.room()
    if room < min(FREE_LEAST, FREE_SHARE * space.total):
        files = f" and {room // paths.FILE_SIZE:,} files" if room < space.free else ""
        yield Finding(
            f"Only {_size(space.free)}{files} are free on the disk of {_home()}.",
            "Make room: `manage.py prune` removes what the retention settings let go.",
        )


def sandboxed() -> Iterator[Finding]:
    """Check that the sandbox works here, if one is wanted."""
    if settings.SANDBOX != sandbox.OFF and (why := sandbox.why_not()):
        yield Finding(
            f"Runs are not sandboxed on this host: {why}",
            "Install what is missing and start the host again, or set STEROIDS_SANDBOX=off if that is meant.",
        )


def _size(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.0f} {unit}"
        number /= 1024
    raise AssertionError


# --- Folders that nobody needs ----------------------------------------------------------------------------


def orphans() -> Iterator[Finding]:
    """Check that nothing is left over a day after the run, trial or project that needed it."""
    for path in _orphans():
        yield Finding(f"{path} is left over, and nothing needs it.", REPAIR)


def remove_orphans() -> Iterator[str]:
    """Remove the leftovers; of the mirrors and caches of projects only those without a project."""
    for path in list(_orphans()):
        paths.remove(path)
        yield f"{path} is removed."


def _orphans() -> Iterator[Path]:
    yield from _left_by_runs()
    trials = set(Trial.objects.exclude(status=Trial.Status.ENDED).values_list("pk", flat=True))
    for folder in _old(_home() / "trials", "*"):
        if folder.name.isdigit() and int(folder.name) not in trials:
            yield folder
    for name in ("checks", "pulled", "going"):
        yield from _old(_home() / name, "*")
    mirrors = _home() / "mirrors"
    for pattern in ("new-*.git", "new-*.git.lock", "*.git.damaged", "*.git.new"):
        yield from _old(mirrors, pattern)
    for pattern in SCRATCH:
        yield from _old(mirrors, f"*.git/{pattern}")
    projects = set(Project.objects.values_list("pk", flat=True))
    for folder in [*_old(mirrors, "[1-9]*.git"), *_old(_home() / "env", "[1-9]*")]:
        number = folder.name.removesuffix(".git")
        if number.isdigit() and int(number) not in projects:
            yield folder


def _left_by_runs() -> Iterator[Path]:
    folders = {int(each.name): each for each in _old(_home() / "runs", "[1-9]*") if each.name.isdigit()}
    known = Run.objects.filter(pk__in=folders)
    needed = known.needed(estimated_time() - timedelta(seconds=DAY))
    spared, there = set(needed.values_list("pk", flat=True)), set(known.values_list("pk", flat=True))
    for number, folder in folders.items():
        if number not in there:
            yield folder
        elif number not in spared:
            yield from (folder / name for name in WORK if os.path.lexists(folder / name))


def _old(folder: Path, pattern: str) -> list[Path]:
    """Return the paths that match the pattern and have not been written to for a day."""
    since = time.time() - DAY
    return [path for path in sorted(folder.glob(pattern)) if path.lstat().st_mtime < since]


# --- Mirrors ----------------------------------------------------------------------------------------------


def mirrors() -> Iterator[Finding]:
    """Check that each mirror is whole and not locked, and that what landed is still on the target branch."""
    for project in Project.objects.exclude(status=Project.Status.FINISHED):
        path = _home() / "mirrors" / f"{project.pk}.git"
        if not path.exists():
            continue  # this host has not worked for it yet
        for lock in _locks(path):
            yield Finding(f"{lock} was left by a git that was killed; it stops the next one.", REPAIR)
        if problem := _damage(path):
            yield Finding(f"The mirror of {project.slug} is damaged: {problem}", REPAIR)
        else:
            yield from _gone(project)


def _locks(path: Path) -> list[Path]:
    since = time.time() - LOCK_OLD
    found = [*path.glob("*.lock"), *(path / "refs").rglob("*.lock")]
    return [lock for lock in found if lock.lstat().st_mtime < since]


def _damage(path: Path) -> str:
    """Return what is wrong with the mirror; empty if it has all commits that refs name."""
    if not (path / "HEAD").exists():
        return "it has no HEAD."
    try:
        git.run(path, "fsck", "--connectivity-only", "--no-dangling", "--no-progress", timeout=FSCK_TIMEOUT)
    except GitError as error:
        lines = [line for line in error.text.splitlines() if not line.startswith("notice:")]
        return "" if "took longer" in error.text else "; ".join(lines)[:200]
    return ""


def _gone(project: Project) -> Iterator[Finding]:
    """Find what landed and is not on the branch. What other hosts landed may not have been fetched yet."""
    mirror = paths.mirror(project)
    landed = dict(
        Task.objects.filter(project=project).exclude(landed_sha="").values_list("landed_sha", "number")
    )
    if not landed:
        return
    try:
        if missing := landed.keys() - _commits(mirror):
            mirror.fetch_target()
            missing -= _commits(mirror)
    except GitError:  # not fetched since it was made again, or the remote is away
        return
    for sha in missing:
        yield Finding(
            f"{sha[:12]} of {project.slug}-{landed[sha]} landed and is no longer on {project.target_branch}.",
            "Somebody pushed by force. Bring the commit back, or reopen the task.",
        )


def _commits(mirror: Mirror) -> set[str]:
    return set(git.text(mirror.path, "rev-list", mirror.target_ref).split())


def mend_mirrors() -> Iterator[str]:
    """Remove old locks, and put a damaged mirror aside so that a new one is fetched and filled."""
    for project in Project.objects.exclude(status=Project.Status.FINISHED):
        path = _home() / "mirrors" / f"{project.pk}.git"
        for lock in _locks(path):
            lock.unlink(missing_ok=True)
            yield f"{lock} is removed."
        if path.exists() and _damage(path):
            aside = path.with_name(f"damaged-{project.pk}-{time.time():.0f}.git")
            path.rename(aside)
            yield f"The mirror of {project.slug} is put aside as {aside}; the next turn makes a new one."


# --- The program ------------------------------------------------------------------------------------------


def surroundings() -> Iterator[Finding]:
    """Check git, Python, SQLite, the data folder's rights and the settings."""
    for each in checks.run_checks(
        tags=["steroids"], databases=["default"]
    ):  # out of all checks that Django and its packages run
        if not each.is_silenced():
            yield Finding(str(each.msg), str(each.hint or "See docs/operate.md."))


def close_folder() -> Iterator[str]:
    """Let nobody but its owner into the data folder."""
    if _home().stat().st_mode & 0o077:
        _home().chmod(0o700)
        yield f"Only its owner can look into {_home()} now."


def database() -> Iterator[Finding]:
    """Check that the database is undamaged and matches this version of the program."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA quick_check(3)")
            for (said,) in cursor.fetchall():
                if said != "ok":
                    yield Finding(f"The database is damaged: {said}", "Restore the last backup.")
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in plan[:5])
        yield Finding(f"The database lacks {names}.", "Stop the program, then run `manage.py migrate`.")


def hosts() -> Iterator[Finding]:
    """Check that all hosts at work have the same version of the program."""
    since = estimated_time() - timedelta(seconds=settings.DURATIONS["lease"])
    for host in Host.objects.filter(seen_at__gte=since).exclude(version=VERSION):
        yield Finding(
            f"Host {host.name} runs version {host.version or 'unknown'}, this one {VERSION}.",
            f"Stop its run_orchestrator, install {VERSION} there, start it again.",
        )

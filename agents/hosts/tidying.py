"""What a host clears away once a day: the folders of ended runs, old caches, and commits of ended tasks.

Rows stay: what pages show of a run or a submission is in the database.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from agents import archives
from agents.hosts import paths
from agents.hosts.git.commands import GitError, remove_partial_objects
from agents.hosts.git.mirror import Mirror
from agents.hosts.naming import host_name
from agents.models import Run, Trial
from disputes.models import Amendment
from tasks.database.clock import estimated_time
from tasks.models import Landing, Project, Submission
from tasks.text.counting import counted

log = logging.getLogger(__name__)

DAY = 24 * 60 * 60.0


def is_due() -> bool:
    """Whether a day has passed since this host last tidied up, or since it began."""
    mark = _mark()
    if not mark.exists():
        mark.touch()
    return _is_older(mark, DAY)


def tidy() -> list[str]:
    """Clear away what is old, and return a line for each thing.

    Failures are logged, and tried again the next day.
    """
    _mark().touch()
    said: list[str] = []
    _logged("folders of runs", lambda: said.extend(_removed(old_run_folders(), paths.remove, "run folder")))
    _logged("caches", lambda: said.extend(_removed(old_caches(), paths.remove_at_once, "cache")))
    for project in Project.objects.all():
        mirror = paths.mirror(project)
        if mirror.is_there():
            name = f"the mirror of {project.slug}"
            _logged(name, lambda p=project, m=mirror: said.extend(_tidy_mirror(p, m)))
    return said


def _mark() -> Path:
    return paths.folder("host") / "tidied"


def _logged(what: str, work: Callable[[], None]) -> None:
    try:
        work()
    except (GitError, OSError):
        log.exception("Tidying up %s failed.", what)


def _numbered(name: str) -> Iterator[tuple[int, Path]]:
    root = Path(settings.HOME) / name
    for folder in root.iterdir() if root.exists() else []:
        if folder.name.isascii() and folder.name.isdigit():
            yield int(folder.name), folder


def old_run_folders() -> list[Path]:
    """Return the folders of runs that ended long ago, and old folders of which no run is known."""
    days = settings.KEEP_DAYS["run_folders"]
    if not days:
        return []
    since = estimated_time() - timedelta(days=days)
    kept = set(Run.objects.needed(since).values_list("pk", flat=True))
    folders = {pk: folder for pk, folder in _numbered("runs") if pk not in kept}
    ended = set(Run.objects.filter(pk__in=folders).values_list("pk", flat=True))
    return [folder for pk, folder in folders.items() if pk in ended or _is_older(folder, days * DAY)]


def old_caches() -> list[Path]:
    """Return the caches that no run has used for long, of projects that nothing runs for on this host.

    Each is the folder around the cache: runs cannot write to that, so its age is the time since the cache's
    last use.
    """
    days, root = settings.KEEP_DAYS["caches"], Path(settings.HOME) / "env"
    if not days or not root.exists():
        return []
    spared = set(map(str, _at_work()))
    projects = [each for each in root.iterdir() if each.is_dir() and each.name not in spared]
    folders = [role for project in projects for role in project.iterdir()]
    return sorted(folder for folder in folders if _is_older(folder, days * DAY))


def _removed(old: list[Path], remove: Callable[[Path], None], what: str) -> Iterator[str]:
    for folder in old:
        remove(folder)
    if old:
        yield f"Gone: {counted(len(old), what)}."


def _at_work() -> set[int]:
    """Return the projects that have a run or a trial on this host."""
    runs = Run.objects.on_host().filter(host__name=host_name())
    trials = Trial.objects.filter(status__in=Trial.LIVE, host__name=host_name())
    return {*runs.values_list("project", flat=True), *trials.values_list("project", flat=True)}


def _is_older(path: Path, seconds: float) -> bool:
    with contextlib.suppress(OSError):
        return time.time() - path.lstat().st_mtime > seconds
    return False


def _tidy_mirror(project: Project, mirror: Mirror) -> Iterator[str]:
    """Drop the refs of what ended long ago, and pack the repository if it consists of many files."""
    remove_partial_objects(mirror.path)
    with mirror.one_at_a_time():
        if gone := _refs_to_drop(project, mirror):
            mirror.drop(gone)
    if not gone and not mirror.is_scattered():
        return
    is_borrowed = project.pk in _at_work()
    days = settings.KEEP_DAYS["bundles"]
    mirror.repack(prune_days=None if is_borrowed or not days else days)
    yield f"The mirror of {project.slug} is packed."


def _refs_to_drop(project: Project, mirror: Mirror) -> list[str]:
    """Return the refs of tasks that are over, and of runs and drafts that ended long ago.

    What landed and was dropped by force stays, because nobody else may have it.
    """
    days = settings.KEEP_DAYS["bundles"]
    if not days:
        return []
    since = estimated_time() - timedelta(days=days)
    tasks = archives.over(since).filter(project=project)
    runs = Run.objects.filter(project=project, status=Run.Status.ENDED, ended_at__lt=since)
    dropped = Q(state__in=[Amendment.State.DROPPED, Amendment.State.FAILED], asked_at__lt=since)
    amendments = Amendment.objects.filter(decision__conflict__dispute__project=project)
    keys: dict[str, QuerySet[Any]] = {
        "submissions": archives.let_go(since).filter(task__project=project, only_on=""),
        "landings": Landing.objects.filter(task__in=tasks).exclude(status__in=Landing.LIVE),
        "salvage": tasks,
        "bases": runs.exclude(submission__state=Submission.State.RECEIVED),  # needed until commits are kept
        "amendments": amendments.filter(dropped | Q(task__in=tasks)),
    }
    gone = []
    for name, rows in keys.items():
        old = {f"refs/steroids/{name}/{pk}" for pk in rows.values_list("pk", flat=True)}
        gone += [ref for ref in mirror.refs(f"refs/steroids/{name}/") if ref in old]
    return gone

"""Once a day a host clears away what it needs no more: folders of ended runs, commits of ended tasks.

Rows stay: what pages show of a run and of a submission is in the database.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from agents.hosts import outcomes, paths
from agents.hosts.git import GitError, Mirror
from agents.models import Host, Run, Trial
from tasks.models import Landing, Project, Submission, Task
from tasks.states import Status

log = logging.getLogger(__name__)

DAY = 24 * 60 * 60.0
# What a call that was killed leaves in a mirror, or beside it.
LEFT_IN_MIRRORS = ("*/incoming-*.bundle", "*/patch-*.diff", "*/salvage-*.index", "*.git.damaged", "*.git.new")
LEFT_ELSEWHERE = ("landings/*", "pulled/*")


def is_due() -> bool:
    """Whether a day has passed since this host tidied up last, or began."""
    mark = _mark()
    if not mark.exists():
        mark.touch()
    return _is_older(mark, DAY)


def tidy(host: Host) -> None:
    """Clear away what is old. What fails is logged, and tried again the next day."""
    _mark().touch()
    _logged("folders of runs", _remove_run_folders)
    _logged("folders of trials", _remove_trial_folders)
    for path in _leftovers():
        _logged(str(path), lambda path=path: outcomes.remove(path))
    for project in Project.objects.all():
        mirror = paths.mirror(project)
        if (mirror.path / "HEAD").exists():
            _logged(f"the mirror of {project.slug}", lambda p=project, m=mirror: _tidy_mirror(p, m, host))


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


def _remove_run_folders() -> None:
    """Of runs that ended long ago, or of which nothing is known."""
    since = timezone.now() - timedelta(days=settings.RUN_FOLDER_DAYS)
    unfetched = Q(submission__state=Submission.State.RECEIVED)
    needed = Run.objects.filter(~Q(status=Run.Status.ENDED) | Q(ended_at__gt=since) | unfetched)
    kept = set(needed.values_list("pk", flat=True))
    for pk, folder in _numbered("runs"):
        if pk not in kept and _is_older(folder, settings.RUN_FOLDER_DAYS * DAY):
            outcomes.remove(folder)


def _remove_trial_folders() -> None:
    live = set(Trial.objects.filter(status__in=Trial.LIVE).values_list("pk", flat=True))
    for pk, folder in _numbered("trials"):
        if pk not in live and _is_older(folder, DAY):
            outcomes.remove(folder)


def _leftovers() -> Iterator[Path]:
    home = Path(settings.HOME)
    found = [path for pattern in LEFT_IN_MIRRORS for path in (home / "mirrors").glob(pattern)]
    found += [path for pattern in LEFT_ELSEWHERE for path in home.glob(pattern)]
    yield from (path for path in found if _is_older(path, DAY))


def _is_older(path: Path, seconds: float) -> bool:
    with contextlib.suppress(OSError):
        return time.time() - path.lstat().st_mtime > seconds
    return False


def _tidy_mirror(project: Project, mirror: Mirror, host: Host) -> None:
    """Drop the refs of tasks that ended long ago, and pack the rest."""
    with mirror.one_at_a_time():
        if gone := _refs_to_drop(project, mirror):
            mirror.drop(gone)
    is_borrowed = (
        Run.objects.on_host().filter(project=project, host=host).exists()
        or Trial.objects.filter(status__in=Trial.LIVE, project=project, host=host).exists()
    )
    mirror.repack(prune_days=None if is_borrowed else settings.REF_DAYS)


def _refs_to_drop(project: Project, mirror: Mirror) -> list[str]:
    since = timezone.now() - timedelta(days=settings.REF_DAYS)
    tasks = Task.objects.filter(project=project).filter(
        Q(landed_at__lt=since) | Q(status=Status.CANCELLED, status_at__lt=since)
    )
    keys = {
        "submissions": Submission.objects.filter(task__in=tasks, only_on=""),
        "landings": Landing.objects.filter(task__in=tasks).exclude(status__in=Landing.LIVE),
        "salvage": tasks,
    }
    gone = []
    for name, rows in keys.items():
        old = {f"refs/steroids/{name}/{pk}" for pk in rows.values_list("pk", flat=True)}
        gone += [ref for ref in mirror.refs(f"refs/steroids/{name}/") if ref in old]
    return gone

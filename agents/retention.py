"""What is let go after a while by the retention settings: logs, prompts, run folders, bundles.

Events, reviews and rulings are the record and stay whole; the database refuses to delete them.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.utils import timezone

from agents.doctor import machine
from agents.hosts import git, outcomes, paths
from agents.hosts.git import GitError
from agents.models import Output, Prompt, Run
from tasks.models import Bundle, Idempotency, Project, Submission
from tasks.states import Status

PAGE = 500  # rows of one transaction; an output may have a megabyte
REPLIES = timedelta(days=7)  # a call that is repeated later than that is a new one
EVERY = 24 * 3600.0
LOOSE_MAX, PACKS_MAX = 2000, 20  # of a mirror, before it is packed anew
REPACK_TIMEOUT = 3600.0
RUN_FOLDER = re.compile(r"[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class Rule:
    """Rows of one kind that are let go; `days` names the setting, 0 keeps them for ever."""

    name: str
    days: Callable[[], float]
    rows: Callable[[datetime], QuerySet[Any]]


def _of_ended_runs(model: type[Any]) -> Callable[[datetime], QuerySet[Any]]:
    return lambda before: model.objects.filter(run__status=Run.Status.ENDED, run__ended_at__lt=before)


def _bundles(before: datetime) -> QuerySet[Bundle]:
    """The commits are on the target branch, or nobody wants them."""
    landed = Q(submission__task__landed_at__lt=before)
    cancelled = Q(submission__task__status=Status.CANCELLED, submission__task__status_at__lt=before)
    return Bundle.objects.filter(landed | cancelled)


RULES = [
    Rule("pieces of logs", lambda: settings.KEEP_DAYS["logs"], _of_ended_runs(Output)),
    Rule("prompts", lambda: settings.KEEP_DAYS["prompts"], _of_ended_runs(Prompt)),
    Rule("bundles of commits", lambda: settings.KEEP_DAYS["bundles"], _bundles),
    Rule(
        "replies to repeated calls",
        lambda: REPLIES / timedelta(days=1),
        lambda before: Idempotency.objects.filter(at__lt=before),
    ),
]


def prune_rows(seconds: float, *, is_trial: bool = False) -> dict[str, int]:
    """Let rows go for at most so long; how many of each kind. A trial only counts."""
    deadline, gone = time.monotonic() + seconds, {}
    for rule in RULES:
        if not (days := rule.days()):
            continue
        rows = rule.rows(timezone.now() - timedelta(days=days)).order_by("pk")
        gone[rule.name] = rows.count() if is_trial else _delete(rows, deadline)
    if not is_trial:
        Session.objects.filter(expire_date__lt=timezone.now()).delete()
    return gone


def _delete(rows: QuerySet[Any], deadline: float) -> int:
    gone = 0
    while time.monotonic() < deadline and (page := list(rows.values_list("pk", flat=True)[:PAGE])):
        gone += rows.model.objects.filter(pk__in=page).delete()[0]
    return gone


# --- Of this host -----------------------------------------------------------------------------------------


def is_due() -> bool:
    """Whether a day has gone by since this host last tidied up. Says yes once a day."""
    mark = paths.folder("host") / "tidied"
    if mark.exists() and time.time() - mark.stat().st_mtime < EVERY:
        return False
    mark.touch()
    return True


def prune_host() -> list[str]:
    """Remove folders of old runs and what killed programs left, cut logs, pack mirrors; a line for each."""
    done = [*_remove_folders(old_folders())]
    done += machine.remove_orphans()
    done += machine.cut_logs()
    for project in Project.objects.order_by("pk"):
        if _pack(project):
            done.append(f"The mirror of {project.slug} is packed.")
    return done


def old_folders() -> list[Path]:
    """Folders of runs that ended so long ago that nobody looks for their files any more."""
    days = settings.KEEP_DAYS["run_folders"]
    root = Path(settings.HOME) / "runs"
    if not days or not root.exists():
        return []
    before = timezone.now() - timedelta(days=days)
    folders = {int(path.name): path for path in root.iterdir() if RUN_FOLDER.fullmatch(path.name)}
    over = Run.objects.filter(pk__in=folders, status=Run.Status.ENDED, ended_at__lt=before)
    over = over.exclude(submission__state=Submission.State.RECEIVED)
    return [folders[pk] for pk in over.order_by("pk").values_list("pk", flat=True)]


def _remove_folders(folders: list[Path]) -> Iterator[str]:
    for folder in folders:
        outcomes.remove(folder)
    if folders:
        yield f"{len(folders)} folders of runs are removed."


def _pack(project: Project) -> bool:
    """Pack a mirror that has come to consist of many files; nothing in it is given up."""
    path = Path(settings.HOME) / "mirrors" / f"{project.pk}.git"
    if not (path / "HEAD").exists():
        return False
    try:
        lines = git.text(path, "count-objects", "-v").splitlines()
        counted = {name: int(number) for name, _, number in (line.partition(": ") for line in lines)}
        if counted["count"] < LOOSE_MAX and counted["packs"] < PACKS_MAX:
            return False
        with paths.mirror(project).one_at_a_time():
            git.run(path, "repack", "--quiet", "--geometric=2", "-d", timeout=REPACK_TIMEOUT)
            git.run(path, "pack-refs", "--all")
    except GitError:  # doctor says what is wrong with it
        return False
    return True

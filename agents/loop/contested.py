"""Who goes first where several tasks change the same lines, so that each of them lands.

Whoever lands first makes the others clash, which is no fault of theirs. A task that has clashed twice goes by
itself: it begins again once nothing that touches its files is on its way, and while it is at work, what
touches them does not land.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Run
from tasks.database.clock import estimated_time
from tasks.database.prepared import PreparedForKeys
from tasks.models import Landing, Submission, Task
from tasks.states import Status

CLASHES = 2

Touched = dict[Task, set[str]]  # the files that each of these tasks touches


def waiting(tasks: Iterable[Task]) -> dict[int, Task]:
    """Return which of the tasks wait, and for which other one: to begin again, or to land."""
    begin = [task for task in tasks if task.status == Status.IN_PROGRESS and task.round > CLASHES]
    land = [task for task in tasks if task.accepted_id and not task.landed_at]
    projects = {task.project_id for task in (*begin, *land)}
    if not _clashed.found(projects):
        return {}
    at_work = _at_work(projects)
    found = {}
    if land and at_work:
        unqueued = Submission.objects.exclude(landings__status__in=Landing.LIVE)
        accepted = unqueued.in_bulk([task.accepted_id for task in land])
        files = {task: _files(accepted[task.accepted_id]) for task in land if task.accepted_id in accepted}
        found = _behind(files, at_work)
    if begin:
        own = _going_alone(Landing.objects.filter(task__in=begin))
        found |= _behind(own, at_work | _landing({task.project_id for task in own}))
    return found


def _clashed_in(projects: Collection[Any]) -> QuerySet[Landing]:
    clashed = Landing.objects.filter(project__pk__in=projects, status=Landing.Status.CONFLICT)
    return clashed.filter(task__landed_at__isnull=True).order_by()[:1]


_clashed = PreparedForKeys(_clashed_in, 20)


def _behind(tasks: Touched, others: Touched) -> dict[int, Task]:
    return {
        task.pk: other
        for task, mine in tasks.items()
        for other, files in others.items()
        if other != task and other.project_id == task.project_id and mine & files
    }


def _at_work(projects: set[int]) -> Touched:
    """Return the tasks that go by themselves and are at work.

    Between two of its runs a task is at work, too; one that no run takes up soon keeps nobody waiting.
    """
    since = estimated_time() - timedelta(seconds=settings.DURATIONS["beat"])
    runs = Run.objects.filter(task=OuterRef("task"), round=OuterRef("task__round"))
    recent = runs.filter(~Q(status=Run.Status.ENDED) | Q(ended_at__gt=since))
    clashed = Landing.objects.filter(
        project__in=projects, task__accepted__isnull=True, task__landed_at__isnull=True
    )
    return _going_alone(clashed.filter(Exists(recent.exclude(role__in=Run.OPINION_ROLES))))


def _going_alone(landings: QuerySet[Landing]) -> Touched:
    """Return the tasks that have clashed often enough."""
    clashed = landings.filter(status=Landing.Status.CONFLICT)
    clashes: dict[Task, list[set[str]]] = defaultdict(list)
    for landing in clashed.select_related("task__project", "submission").order_by("pk"):
        clashes[landing.task].append(_files(landing.submission))
    return {task: set().union(*files) for task, files in clashes.items() if len(files) >= CLASHES}


def _landing(projects: set[int]) -> Touched:
    """Return the tasks that are about to land, unless they rest after trouble."""
    live = Landing.objects.filter(project__in=projects, status__in=Landing.LIVE, problem="")
    rows = live.select_related("task__project", "submission")
    return {landing.task: _files(landing.submission) for landing in rows}


def _files(submission: Submission) -> set[str]:
    return {path for path, *_ in submission.diff_stat.get("files", ())}

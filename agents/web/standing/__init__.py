"""Why a task is not moving: one line for every task, from facts and never from a counter alone."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import prefetch_related_objects

from agents.web.standing.facts import Facts, columns
from agents.web.standing.reasons import Standing, standing_of
from tasks.models import Task


def standings(tasks: Iterable[Task], now: datetime | None = None) -> dict[int, Standing]:
    """Return the standing of each task by its key, with at most fifteen queries for any number of tasks."""
    rows = list(tasks)
    prefetch_related_objects(rows, "project", "section")
    facts = Facts(rows, now)
    return {task.pk: standing_of(task, facts) for task in rows}


def standing(task: Task, now: datetime | None = None) -> Standing:
    return standings([task], now)[task.pk]


def line_of(task: Task) -> str:
    """Return the line that the admin, the API and `steroids tasks show` display."""
    return standing(task).line

"""What happened to a task last, as its pages show it."""

from typing import Any

from django.db.models import QuerySet

from tasks.models import Event, Task
from tasks.models.prepared import Prepared

EVENTS = 12


def newest_events(task: Task) -> list[Event]:
    """Return the newest events of the task, newest first."""
    return _newest.found(task.pk)


def _of_task(task: Any) -> QuerySet[Event]:
    return Event.objects.filter(task=task).order_by("-pk")[:EVENTS]


_newest = Prepared(_of_task)

"""What happened to a task last, as its pages show it."""

from tasks.database.prepared import Prepared
from tasks.models import Event, Task

EVENTS = 12


def newest_events(task: Task) -> list[Event]:
    """Return the newest events of the task, newest first."""
    return _newest.found(task.pk)


_newest = Prepared(lambda task: Event.objects.filter(task=task).order_by("-pk")[:EVENTS])

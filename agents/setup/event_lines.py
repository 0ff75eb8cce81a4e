"""Prints events as lines on the terminal in which the loop was started."""

from collections.abc import Callable

from django.db.models import Max
from django.utils import timezone

from agents.web.log import plain
from tasks.models import Event
from tasks.text.counting import shortened

AT_ONCE = 50  # lines per call; the rest comes with the next call
LATE = 200  # PostgreSQL assigns keys before it commits, so look this far back for late events
LINE_MAX = 200


class EventLines:
    """Prints each event that is recorded from now on, once, roughly in the order of their keys."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.first = self.last = self._newest()
        self.said: set[int] = set()

    def __call__(self) -> None:
        """Print new events; once the output can no longer be written, print nothing."""
        fresh = Event.objects.filter(pk__gt=max(self.first, self.last - LATE)).exclude(pk__in=self.said)
        for event in fresh.select_related("task__project", "project").order_by("pk")[:AT_ONCE]:
            self.said.add(event.pk)
            self.last = max(self.last, event.pk)
            try:
                self.say(line_of(event))
            except OSError:
                self.say = _nothing
        self.said = {pk for pk in self.said if pk > self.last - LATE}

    @staticmethod
    def _newest() -> int:
        return Event.objects.aggregate(newest=Max("pk"))["newest"] or 0


def _nothing(text: str) -> None:
    pass


def line_of(event: Event) -> str:
    """Return an event as one line: time, task or project, what happened, who did it and why.

    Nothing in the line moves a cursor.
    """
    where = event.task.ref if event.task else event.project.slug
    what = event.kind
    if event.to_status and event.to_status != event.from_status:
        what += f": {event.from_status or 'new'} → {event.to_status}"
    told = plain(f"{what.replace('_', ' ')}, {event.label}" + (f": {event.note}" if event.note else ""))
    return shortened(f"{timezone.localtime(event.at):%H:%M:%S}  {where}  {' '.join(told.split())}", LINE_MAX)

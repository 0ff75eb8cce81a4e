"""The regular calls of django-q2, kept on time after the clock was set back."""

from datetime import timedelta

from django.utils import timezone
from django_q.models import Schedule

from tasks.database.prepared import Prepared

_later_than = Prepared(
    lambda moment: Schedule.objects.filter(schedule_type=Schedule.MINUTES, next_run__gt=moment)
)


def bring_forward() -> None:
    """Make due the calls that are more than one period away, as happens if the clock was set back."""
    now = timezone.now()
    for schedule in _later_than.found(now + timedelta(minutes=1)):
        if schedule.next_run > now + timedelta(minutes=schedule.minutes or 0):
            Schedule.objects.filter(pk=schedule.pk, next_run=schedule.next_run).update(next_run=now)

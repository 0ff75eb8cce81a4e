"""The calls that django-q2 makes by the clock, where a clock was set back."""

from datetime import timedelta

from django.utils import timezone
from django_q.models import Schedule


def bring_forward() -> None:
    """Make due what would be called later than one period from now: the clock was set back meanwhile."""
    now = timezone.now()
    regular = Schedule.objects.filter(schedule_type=Schedule.MINUTES)
    for schedule in regular.filter(next_run__gt=now + timedelta(minutes=1)):
        if schedule.next_run > now + timedelta(minutes=schedule.minutes or 0):
            Schedule.objects.filter(pk=schedule.pk, next_run=schedule.next_run).update(next_run=now)

"""Turning notices into deliveries, one for each event and channel."""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, QuerySet

from disputes.models import Delivery
from disputes.notifications import reminders
from disputes.notifications.audience import channels_for
from disputes.notifications.hours import due_at
from disputes.notifications.subjects import subject_of
from tasks.database.clock import estimated_time
from tasks.database.locking import is_passing
from tasks.models import Notice

log = logging.getLogger(__name__)

BATCH = 100
SHOWN_AFTER = 5  # failures, which is an hour and a half after the first
LONGEST = timedelta(days=1)


def take_up() -> int:
    """Take up the oldest notices that are due, and return how many there were.

    A notice that fails does not hold up the others. It is tried again, later each time, for as long as that
    takes, because the next version of the program may mend what is wrong with it.
    """
    now = estimated_time()
    notices = list(Notice.objects.filter(due_at__lte=now).order_by("pk").values_list("pk", flat=True)[:BATCH])
    for pk in notices:
        try:
            take(pk)
        except Exception as error:
            if is_passing(error):
                raise  # all of them are tried again in a minute
            log.exception("The notice of event %d cannot be taken up; it is tried again later.", pk)
            _put_off(pk, now, error)
    return len(notices)


def _put_off(pk: int, now: datetime, error: Exception) -> None:
    """Put the notice off by a minute at first, then by four times as long each time, up to a day."""
    row = Notice.objects.filter(pk=pk)
    tries = row.values_list("tries", flat=True).first()
    wait = min(timedelta(minutes=4 ** min(tries or 0, 6)), LONGEST)
    row.update(tries=F("tries") + 1, due_at=now + wait, error=f"{type(error).__name__}: {error}"[:300])


def stuck() -> QuerySet[Notice]:
    """Return the notices that have failed so often that somebody should look."""
    return Notice.objects.filter(tries__gte=SHOWN_AFTER)


@transaction.atomic
def take(pk: int) -> int:
    """Create the deliveries of one notice and remove it, in one transaction; return how many there were.

    The result is also 0 if somebody else was faster.
    """
    notice = Notice.objects.select_related("event__project", "event__task__project").filter(pk=pk).first()
    if notice is None or not Notice.objects.filter(pk=pk).delete()[0]:
        return 0
    subject, now = subject_of(notice.event), estimated_time()
    reminders.follow(subject, now)
    owed = [
        Delivery(
            event=notice.event, channel=channel, topic=topic, is_urgent=subject.is_urgent,
            due_at=due_at(channel, now, is_urgent=subject.is_urgent),
        )
        for channel, topic in channels_for(subject)
    ]  # fmt: skip
    return len(Delivery.objects.bulk_create(owed, ignore_conflicts=True))

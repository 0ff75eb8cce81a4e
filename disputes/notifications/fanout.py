"""From a notice to deliveries: once for each event and channel."""

import logging

from django.db import DatabaseError, transaction
from django.utils import timezone

from disputes.models import Delivery
from disputes.notifications import reminders
from disputes.notifications.audience import channels_for
from disputes.notifications.hours import due_at
from disputes.notifications.subjects import subject_of
from tasks.models import Notice

log = logging.getLogger(__name__)

BATCH = 100


def take_up() -> int:
    """Take up the oldest notices. Returns how many there were."""
    notices = list(Notice.objects.order_by("pk").values_list("pk", flat=True)[:BATCH])
    for pk in notices:
        try:
            take(pk)
        except DatabaseError:
            raise  # it is taken up again in a minute
        except Exception:
            log.exception("The notice of event %d cannot be taken up; it is dropped.", pk)
            Notice.objects.filter(pk=pk).delete()
    return len(notices)


@transaction.atomic
def take(pk: int) -> int:
    """The deliveries of one notice, in the transaction that removes it; 0 where somebody was faster."""
    notice = Notice.objects.select_related("event__project", "event__task__project").filter(pk=pk).first()
    if notice is None or not Notice.objects.filter(pk=pk).delete()[0]:
        return 0
    subject, now = subject_of(notice.event), timezone.now()
    reminders.follow(subject, now)
    owed = [
        Delivery(
            event=notice.event, channel=channel, topic=topic, is_urgent=subject.is_urgent,
            due_at=due_at(channel, now, is_urgent=subject.is_urgent),
        )
        for channel, topic in channels_for(subject)
    ]  # fmt: skip
    return len(Delivery.objects.bulk_create(owed, ignore_conflicts=True))

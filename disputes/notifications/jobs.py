"""The jobs that tell people, called by django-q2: short, idempotent, run at least once, in any order."""

import time
from datetime import timedelta

from django.conf import settings
from django.core.cache import caches
from django.db.models import Q

from disputes.models import Delivery
from disputes.notifications import bell, fanout, reminders, sealing, sending
from tasks.database.clock import estimated_time

BUDGET = 35  # seconds; even with what is still under way then, it stays below the cluster's timeout
UNDER_WAY = "steroids-notifications"
KEPT = timedelta(days=30)
PAGE = 1000


def tell() -> str:
    """Take up notices, remind people and send what is due.

    Only one such job runs at a time, so that the tick keeps a worker.
    """
    bell.answered()
    if not caches["q2"].add(UNDER_WAY, True, timeout=BUDGET + 20):
        return "under way already"
    try:
        deadline = time.monotonic() + BUDGET
        reminded = reminders.remind()
        noted = 0
        while (more := fanout.take_up()) and time.monotonic() < deadline:
            noted += more
        sent = sending.send_due(deadline - time.monotonic())
    finally:
        caches["q2"].delete(UNDER_WAY)
    return f"reminders {reminded}, notices {noted}, sent {sent}"


def tidy() -> str:
    """Delete old deliveries every night, and seal addresses again after a change of SECRET_KEY."""
    over = estimated_time() - KEPT
    old = Delivery.objects.filter(Q(sent_at__lt=over) | Q(failed_at__lt=over)).order_by("pk")
    gone = 0
    while page := list(old.values_list("pk", flat=True)[:PAGE]):
        gone += Delivery.objects.filter(pk__in=page).delete()[0]
    sealed = sealing.reseal() if settings.SECRET_KEY_FALLBACKS else 0
    return f"deliveries {gone}, sealed again {sealed}"

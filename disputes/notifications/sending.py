"""Sending what is due: at least once, under a stable id, with retries, and in the end visibly given up."""

import json
import logging
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid5

from django.db.models import F, QuerySet
from django.urls import reverse

from disputes.models import Channel, Delivery
from disputes.notifications import messages, post, signing
from disputes.notifications.audience import may_still_see
from disputes.notifications.hours import due_at
from disputes.notifications.sealing import Unreadable, unseal
from disputes.notifications.subjects import subject_of
from tasks.database.clock import estimated_time

log = logging.getLogger(__name__)

# The delay after each failure. The first is also how long a claim holds, so it exceeds any time for sending.
DELAYS = [timedelta(minutes=minutes) for minutes in (1, 4, 15, 60, 120, 240, 360)]
TRIES_MAX = len(DELAYS) + 1
COURIERS = 4
TOGETHER_MAX = 100
UNFINISHED = "The last try was not finished."


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is handed to a courier, and the deliveries that it contains."""

    rows: Sequence[Delivery]
    content: dict[str, Any]


def due(now: datetime) -> QuerySet[Delivery]:
    """Return the deliveries that may be tried at this moment."""
    return Delivery.objects.filter(sent_at__isnull=True, failed_at__isnull=True, due_at__lte=now)


def send_due(seconds: float) -> int:
    """Send what is due for at most that many seconds, and return how many messages went out.

    Only a few couriers run at a time, and after a failure none is sent to that channel in this turn, so that
    a dead or slow channel delays nobody else. All rows are read and written here; the threads only wait for
    processes.
    """
    deadline, sent, passed = time.monotonic() + seconds, 0, set[int]()
    out: dict[Future[post.SendOutcome], tuple[int, Parcel]] = {}
    with ThreadPoolExecutor(COURIERS) as threads:
        while True:
            left = deadline - time.monotonic()
            while len(out) < COURIERS and left > 1:
                busy = passed | {channel for channel, _ in out.values()}
                channel = _next_channel(busy)
                if channel is None:
                    break
                parcel = _parcel_for(channel)
                if parcel is None:
                    passed.add(channel.pk)
                    continue
                future = threads.submit(post.carry, parcel.content, min(post.SECONDS, left))
                out[future] = (channel.pk, parcel)
            if not out:
                return sent
            for future in wait(out, return_when=FIRST_COMPLETED).done:
                channel_pk, parcel = out.pop(future)
                outcome = future.result()
                settle(parcel.rows, outcome)
                sent += outcome.ok
                if not outcome.ok:
                    passed.add(channel_pk)


def _next_channel(busy: set[int]) -> Channel | None:
    """Return the channel that has waited longest and to which no courier is under way, or None."""
    row = due(estimated_time()).exclude(channel__in=busy).order_by("due_at").values_list("channel", flat=True)
    pk = row.first()
    return Channel.objects.select_related("user", "project").filter(pk=pk).first() if pk else None


# --- One parcel -------------------------------------------------------------------------------------------


def _parcel_for(channel: Channel) -> Parcel | None:
    """Claim what the channel is owed, and return it as a parcel; None if there is nothing to send.

    Machines get one message at a time, people everything at once.
    """
    now = estimated_time()
    most = 1 if channel.kind == Channel.Kind.WEBHOOK else TOGETHER_MAX
    rows = due(now).filter(channel=channel).select_related("event__project", "event__task__project")
    claimed = []
    for row in rows.order_by("due_at", "pk")[:TOGETHER_MAX]:
        row.channel = channel
        if _may_go(row, now) and claim(row, now):
            claimed.append(row)
        if len(claimed) == most:
            break
    if not claimed:
        return None
    try:
        return Parcel(claimed, _content(channel, claimed, now))
    except Unreadable as error:
        settle(claimed, post.SendOutcome(False, f"{error} Enter it again.", is_permanent=True))
    except Exception:
        log.exception("What %s is owed cannot be put into words.", channel)
        settle(claimed, post.SendOutcome(False, "The message could not be written."))
    return None


def _may_go(row: Delivery, now: datetime) -> bool:
    """Whether the delivery may be sent, checked at the last moment: the person may have left meanwhile."""
    channel = row.channel
    reason = ""
    if not channel.is_active:
        reason = "Not sent: the channel is paused."
    elif not may_still_see(channel, row.event.project):
        reason = f"Not sent: {channel.user} may no longer see {row.event.project.name}."
    elif row.tries >= TRIES_MAX:
        reason = UNFINISHED
    if reason:
        due(now).filter(pk=row.pk).update(failed_at=now, error=reason[:500])
        return False
    if channel.digest_at is None and (later := due_at(channel, now, is_urgent=row.is_urgent)) > now:
        due(now).filter(pk=row.pk).update(due_at=later)
        return False
    return True


def claim(row: Delivery, now: datetime) -> bool:
    """Whether the delivery is ours to try: one UPDATE, so that two workers never send the same row at once.

    It counts the try and sets the time of the next one, so that a crash costs only that wait.
    """
    next_try = now + DELAYS[min(row.tries, len(DELAYS) - 1)]
    won = due(now).filter(pk=row.pk, tries=row.tries).update(tries=F("tries") + 1, due_at=next_try)
    row.tries += 1
    return bool(won)


def settle(rows: Sequence[Delivery], outcome: post.SendOutcome) -> None:
    """Record what came of the deliveries: sent, to be tried again, or given up."""
    now = estimated_time()
    mine = Delivery.objects.filter(pk__in=[row.pk for row in rows], sent_at=None, failed_at=None)
    if outcome.ok:
        mine.update(sent_at=now, error="")
        return
    error = outcome.error[:500]
    given_up = mine if outcome.is_permanent else mine.filter(tries__gte=TRIES_MAX)
    given_up.update(failed_at=now, error=error)
    mine.update(error=error)


def _content(channel: Channel, rows: Sequence[Delivery], now: datetime) -> dict[str, Any]:
    address = unseal(channel.sealed_address)
    if channel.kind == Channel.Kind.WEBHOOK:
        row, uid = rows[0], str(rows[0].uid)
        return webhook(channel, address, uid, messages.payload(subject_of(row.event), uid, row.topic), now)
    told = messages.together([messages.message_of(subject_of(row.event), row.topic) for row in rows])
    return people(channel, address, told, _uid_of(rows))


def _uid_of(rows: Sequence[Delivery]) -> str:
    """Return the id of what goes out together: that of the one message, or one made of theirs."""
    first, *others = (row.uid for row in rows)
    return str(uuid5(first, " ".join(map(str, others))) if others else first)


def people(channel: Channel, address: str, message: messages.Message, uid: str) -> dict[str, Any]:
    """Return the parcel for people; the end of the id shows a reader that a message came twice.

    Its last line says which channel sent it and where that is changed or ended.
    """
    project = None if channel.user_id else channel.project
    home = reverse("notifications-project", args=[project.slug]) if project else reverse("notifications")
    told_by = f"Sent by the channel {messages.line(channel.name)}: {messages.link(home)}"
    body = f"{message.body}\n\nSteroids {uid[-8:]}" + (f"\n{told_by}" if messages.link(home) else "")
    return {"kind": "people", "address": address, "title": message.subject, "body": body, "id": uid}


def webhook(
    channel: Channel, address: str, uid: str, payload: dict[str, Any], now: datetime
) -> dict[str, Any]:
    body = json.dumps(payload, ensure_ascii=True, separators=(",", ":"))
    ring = signing.ring_of(unseal(channel.sealed_secret), now)
    sent_with = signing.headers(ring, uid, int(now.timestamp()), body.encode())
    return {"kind": "webhook", "address": address, "headers": sent_with, "body": body}


def again(row: Delivery) -> bool:
    """Retry a delivery that was given up, as if for the first time and under the same id.

    Return False if it was not given up.
    """
    given_up = Delivery.objects.filter(pk=row.pk, failed_at__isnull=False)
    return bool(given_up.update(failed_at=None, tries=0, error="", due_at=estimated_time()))

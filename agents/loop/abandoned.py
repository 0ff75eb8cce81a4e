"""Gives up the work that only a dead host has, so that it is done again."""

import time
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from agents.hosts import submissions
from agents.loop import run_ends
from agents.models import Host
from tasks.database.locking import repeated
from tasks.database.prepared import Prepared
from tasks.models import Landing, StaleTask, Submission
from tasks.models.task import locked_task
from tasks.states import IllegalMove

BEATS_MORE = 2  # beats for which we still listen for a host that seems gone

_silent: dict[str, tuple[Any, float]] = {}  # each host's last beat, and since when this process knows of it


@lru_cache(maxsize=8)
def _given_up(seconds: float) -> Prepared:
    return Prepared(lambda: Host.objects.given_up(seconds))


def give_up() -> int:
    """Send back what was handed in on hosts that are gone, and return how many submissions that were.

    If the database's clock was set, every host seems gone until its next beat. So this process first
    listens for some more beats by its own clock.
    """
    moment = BEATS_MORE * settings.DURATIONS["beat"]
    gone = {
        host.name for host in _given_up(settings.DURATIONS["abandon"]).found()
        if host.is_removed or _silent_for(host) >= moment
    }  # fmt: skip
    if not gone:
        return 0
    unfetched = Q(state=Submission.State.RECEIVED, run__is_pulled=False, run__host__name__in=gone)
    kept = Q(state__in=[Submission.State.KEPT, Submission.State.VERIFIED], only_on__in=gone)
    found = Submission.objects.filter(unfetched | kept, task__landed_at__isnull=True)
    rows = list(found.select_related("run__host", "task"))
    for submission in rows:
        holder = submission.only_on or submission.run.host.name
        why = f"Host {holder}, which alone had the commit {submission.sha[:12]}, is gone; do the work again."
        if submission.state == Submission.State.RECEIVED:
            submissions.send_back(submission, why)
        else:
            _lose(submission, why)
    return len(rows)


def _silent_for(host: Host) -> float:
    """Return for how many seconds this process has heard nothing new from the host."""
    now = time.monotonic()
    if _silent.get(host.name, (None, 0.0))[0] != host.seen_at:
        _silent[host.name] = host.seen_at, now
    return now - _silent[host.name][1]


@repeated
def _lose(submission: Submission, why: str) -> None:
    """Give up a submission that was kept, and perhaps approved, but was too large for a bundle."""
    with transaction.atomic():
        task = locked_task(submission.task_id)
        mine = Submission.objects.filter(pk=submission.pk, state=submission.state)
        if not mine.update(state=Submission.State.LOST, problem=why[:500]):
            return
        landings = submission.landings.filter(status__in=Landing.LIVE)
        over = {"status": Landing.Status.CONFLICT, "problem": why[:500], "claimed_until": None}
        landings.update(**over)
        try:
            if task.accepted_id == submission.pk:
                task.cannot_land(note=why)
            elif task.last_submission() == submission:
                run_ends.send_back(task, why)
        except (StaleTask, IllegalMove):
            pass  # people have the task; whoever takes it up again starts without the commit

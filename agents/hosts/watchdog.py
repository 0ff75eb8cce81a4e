"""A watchdog that tells whether this host's background jobs are stuck or merely have nothing to do.

All hosts take their jobs from one queue, so a healthy cluster may get none for a long time. Ages are measured
by this process's own clock, from the moment at which it saw a value change.
"""

import time
from typing import Any

from django.conf import settings

from agents.hosts.naming import host_name
from agents.models import Host
from tasks import broker
from tasks.database.prepared import Prepared

SHORTEST = 90.0  # seconds; the schedule ticks once a minute
STEP = 5.0  # seconds; a smaller step back is an everyday correction of the clock
_ticks = Prepared(lambda: Host.objects.order_by().values_list("name", "ticked_at"))


class Watchdog:
    """Watches whether this host's cluster keeps ticking."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Any, float]] = {}
        self._ahead = _ahead()

    def clock_went_back(self) -> bool:
        """Whether the time of day was set back since the last call.

        django-q2's processes wait for each other until a time of day. When the clock is set back, a wait that
        has already begun lasts longer by that much, and a process that dies meanwhile is not replaced.
        """
        before, self._ahead = self._ahead, _ahead()
        return before - self._ahead > STEP

    def is_wedged(self, started: float) -> bool:
        """Whether the cluster that was started at `started`, on the monotonic clock, is stuck.

        It is stuck if it has not ticked for too long although jobs were waiting all that time, or if no
        host's cluster has ticked for too long. While the broker is away it is never called stuck.
        """
        limit = max(settings.DURATIONS["watchdog"], SHORTEST)
        ticks = dict(_ticks.rows())
        everybody = self._age("any", max(filter(None, ticks.values()), default=None))
        own = self._age("own", ticks.get(host_name()))
        is_idle = own < limit or broker.waiting_jobs() == 0
        waiting = self._age("idle", time.monotonic() if is_idle else None)
        if broker.is_away():  # no cluster ticks without it
            self._seen.clear()
            return False
        return min(own, time.monotonic() - started) > limit and (waiting > limit or everybody > limit)

    def _age(self, what: str, value: Any) -> float:
        """Return for how many seconds `what` has had this value, as far as this process knows."""
        now = time.monotonic()
        if what not in self._seen or self._seen[what][0] != value:
            self._seen[what] = value, now
        return now - self._seen[what][1]


def _ahead() -> float:
    """Return by how many seconds the time of day is ahead of the monotonic clock, which nobody sets."""
    return time.time() - time.monotonic()

"""Whether the background jobs of this host are stuck, told from a host that merely has nothing to do.

Jobs of all hosts are in one queue, so a healthy cluster may get none for long. Ages are measured by this
process's own clock, from when it saw a value change.
"""

import time
from typing import Any

from django.conf import settings

from agents.hosts.naming import host_name
from agents.models import Host
from tasks import broker
from tasks.models.prepared import Prepared

SHORTEST = 90.0  # seconds; the schedule calls once a minute
STEP = 5.0  # seconds by which a clock goes back at once; it is set right by less every day
_ticks = Prepared(lambda: Host.objects.order_by().values_list("name", "ticked_at"))


class Watchdog:
    """Watches the ticks of this host's cluster."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Any, float]] = {}
        self._ahead = _ahead()

    def clock_went_back(self) -> bool:
        """Whether the time of day was set back since the last call.

        django-q2's processes wait for each other until a time of day. Such a wait, begun before, lasts
        longer by as much, and whoever of them dies meanwhile is not replaced.
        """
        before, self._ahead = self._ahead, _ahead()
        return before - self._ahead > STEP

    def is_wedged(self, started: float) -> bool:
        """Whether the cluster, begun at that moment of the monotonic clock, works no more.

        It has not ticked for too long, though jobs wait all the time; or nobody's cluster has.
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
        """For how long it has had this value, as far as this process knows."""
        now = time.monotonic()
        if what not in self._seen or self._seen[what][0] != value:
            self._seen[what] = value, now
        return now - self._seen[what][1]


def _ahead() -> float:
    """Seconds by which the time of day is ahead of the clock that nobody sets."""
    return time.time() - time.monotonic()

"""What django-q2 calls. Short and idempotent: at least once, in any order."""

import time

from django.core.cache import caches
from django.db import close_old_connections
from django_q.tasks import async_task

from agents import bell, orchestrator
from agents.runtime.host import HostBusy, Reconciler

LAST_TICK = "steroids-last-tick"
BUDGET = 20.0  # seconds; well below the cluster's timeout


def tick() -> str:
    """One tick. Where no resident loop holds this host's runs, look after them too, for a while.

    With runs still under way at the end of the budget the job asks to be called again, so that a cluster
    alone carries tasks through.
    """
    bell.answered()
    caches["q2"].set(LAST_TICK, time.time(), timeout=None)
    done = orchestrator.tick()
    try:
        with Reconciler() as host:
            deadline = time.monotonic() + BUDGET
            while host.step() and time.monotonic() < deadline:
                orchestrator.tick()
                host.wait()
            if host.has_live_runs():
                async_task("agents.jobs.tick", group="tick")
    except HostBusy:
        pass
    finally:
        close_old_connections()
    return f"reaped {done.reaped}, started {done.started}, landings {done.landings}"

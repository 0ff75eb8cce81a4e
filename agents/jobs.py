"""The jobs that django-q2 calls. They are short and idempotent: each runs at least once, in any order."""

import logging
import subprocess
import sys
import time
from pathlib import Path

from django.conf import settings
from django.db import close_old_connections
from django_q.tasks import async_task

from agents import retention
from agents.hosts import naming, paths, processes
from agents.hosts.reconciler import HostBusy, Reconciler
from agents.hosts.sandbox import HostUnfit
from agents.loop import bell, orchestrator
from agents.models import Agent
from tasks.text.counting import counted

log = logging.getLogger(__name__)

PRUNING = 30.0  # seconds that a pruning job may take; the rest is pruned the next night
BUDGET = 20.0  # seconds for which a tick looks after runs
SLOW_BUDGET = 480.0  # the same while git is working; well below the tick's timeout


def tick() -> str:
    """Run one tick, and look after this host's runs for a while if no resident loop does.

    If runs are still under way when its time is up, the job queues itself again, so that a cluster alone
    carries tasks through. Returns a line that says what was done.
    """
    bell.answered()
    naming.note_tick()
    done = orchestrator.tick()
    try:
        with Reconciler(threads=True) as host:
            begun = time.monotonic()
            while host.step() and _may_go_on(host, time.monotonic() - begun):
                orchestrator.go_on()
                host.wait()
            if host.has_live_runs():
                async_task("agents.jobs.tick", group="tick", timeout=bell.TICK_TIMEOUT)
    except HostBusy:
        pass
    except HostUnfit as error:
        log.error("No run is held here. %s", error)
    finally:
        close_old_connections()
    return f"reaped {done.reaped}, started {done.started}, landings {done.landings}"


def _may_go_on(host: Reconciler, seconds: float) -> bool:
    """Whether to go on looking after runs: a slow clone or push may finish unless a resident loop waits."""
    if seconds < BUDGET:
        return True
    return seconds < SLOW_BUDGET and host.is_slow() and not processes.is_locked(paths.resident_lock())


def prune() -> str:
    """Delete the rows that the retention settings no longer keep, once a night; hosts tidy up themselves.

    Returns how many rows of each kind were deleted, in one line.
    """
    gone = retention.prune_rows(PRUNING)
    return ", ".join(counted(count, name) for name, count in gone.items())


def check_agent(pk: int) -> str:
    """Check an agent in a process of its own, since that may take longer than a job may.

    The result of the check is stored with the agent.
    """
    agent = Agent.objects.filter(pk=pk).first()
    if agent is None:
        return "deleted meanwhile"
    subprocess.Popen(
        [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), "check_agent", agent.name],
        cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    return f"{agent.name} is tried"

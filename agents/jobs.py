"""What django-q2 calls. Short and idempotent: at least once, in any order."""

import subprocess
import sys
import time
from pathlib import Path

from django.conf import settings
from django.db import close_old_connections
from django_q.tasks import async_task

from agents import retention
from agents.hosts.reconciler import HostBusy, Reconciler
from agents.loop import bell, orchestrator
from agents.models import Agent
from tasks import broker

LAST_TICK = "steroids-last-tick"
PRUNING = 30.0  # seconds, likewise; what is left goes the next night
BUDGET = 20.0  # seconds; well below the cluster's timeout


def tick() -> str:
    """One tick. Where no resident loop holds this host's runs, look after them too, for a while.

    With runs still under way at the end of the budget the job asks to be called again, so that a cluster
    alone carries tasks through.
    """
    bell.answered()
    broker.remember(LAST_TICK, time.time())
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


def prune() -> str:
    """Each night: let go what the retention settings no longer keep of the rows. Hosts tidy up themselves."""
    gone = retention.prune_rows(PRUNING)
    return ", ".join(f"{name} {count}" for name, count in gone.items())


def check_agent(pk: int) -> str:
    """Try an agent beside the cluster, for it may take longer than a job. What it says stands with it."""
    agent = Agent.objects.filter(pk=pk).first()
    if agent is None:
        return "deleted meanwhile"
    subprocess.Popen(
        [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), "check_agent", agent.name],
        cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    return f"{agent.name} is tried"

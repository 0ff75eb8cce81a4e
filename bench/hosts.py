"""How late the loop is, and whether a beat is lost, while two hosts hold two hundred agents.

    python bench/hosts.py [--hosts 2] [--agents 200] [--seconds 60] [--json]
    DATABASE_URL=postgres://user@host/empty python bench/hosts.py

The agents sleep, each in a project of its own. Then one more task a second is added over REST, and the
loop's lag is the time from the task's creation until a run of it is queued. A beat prolongs the leases of a
host's runs; how long ago the last one was is read four times a second. Without DATABASE_URL the hosts share a
file of SQLite, as hosts on several machines could not. Wanted: a lag of at most one second at the 95th
percentile, no beat more than a second late, and no run lost.
"""

import argparse
import http.client
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.installation import Installation, django_here, memory_of, processor_of  # noqa: E402
from bench.loop import folder, remote_in  # noqa: E402

WAIT = 600.0  # seconds until all agents are at work
SETTLED = 15.0  # seconds after which everything that starts has started
LOOKS = 0.25  # seconds between two looks at the leases
MOST = {"lag_p95": 1.0, "beat_late": 1.0, "lost": 0}


def create_rows(agents: int, slots: int, remote: Path, sleeper: Path) -> str:
    """Create the projects, each with a task, and the agent; return a token that may add tasks."""
    from django.contrib.auth.models import User

    from agents.models import Agent, Token, new_token, token_hash
    from tasks.models import Project, Section, Task

    root = User.objects.create_superuser("root")
    for number in range(agents):
        project = Project.objects.create(
            slug=f"p{number}", name=f"P{number}", repo_url=str(remote), settings={"detect_commands": False}
        )
        section = Section.objects.create(project=project, title="Work")
        Task.objects.create(project=project, section=section, number=1, rank=1, title="Sleep")
    Agent.objects.create(name="coder", role="coder", slots=slots, settings={"argv": [str(sleeper)]})
    token = new_token()
    Token.objects.create(user=root, name="bench", hash=token_hash(token))
    return token


def running() -> int:
    from agents.models import Run

    return Run.objects.filter(status=Run.Status.RUNNING).count()


def wait_for_agents(agents: int) -> float:
    """Return how many seconds it took until all agents were at work. Raises TimeoutError."""
    begun = time.monotonic()
    while running() < agents:
        if time.monotonic() - begun > WAIT:
            raise TimeoutError(f"only {running()} of {agents} agents are at work after {WAIT:.0f} s")
        time.sleep(0.5)
    return time.monotonic() - begun


def add_task(port: int, token: str, project: str) -> int:
    """Add a task over REST and return its primary key."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/api/v1/tasks/", json.dumps({"project": project, "title": "One more"}), head)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    if answer.status != 201:
        raise RuntimeError(f"a task was refused: {answer.status} {told}")
    from tasks.models import Task

    return int(Task.objects.get(project__slug=project, number=2).pk)


def oldest_beat() -> float:
    """Return how many seconds ago the lease was prolonged that waits longest for it."""
    from django.conf import settings
    from django.db.models import F, Min
    from django.db.models.functions import Now

    from agents.models import Run

    live = Run.objects.filter(status=Run.Status.RUNNING)
    left = live.aggregate(left=Min(F("lease_until") - Now()))["left"]
    return float(settings.DURATIONS["lease"] - left.total_seconds())


def measured(sites: list[Installation], port: int, token: str, seconds: float) -> dict[str, float]:
    """Add a task a second and look at the leases meanwhile; return the figures."""
    from django.conf import settings

    from agents.models import Run
    from tasks.models import Task

    pids = {pid for site in sites for pid in site.processes()}
    used, begun = processor_of(list(pids)), time.monotonic()
    added, oldest = [], 0.0
    while time.monotonic() - begun < seconds:
        if time.monotonic() - begun >= len(added):
            added.append(add_task(port, token, f"p{len(added)}"))
        oldest = max(oldest, oldest_beat())
        time.sleep(LOOKS)
    percent = 100 * (processor_of(list(pids)) - used) / (time.monotonic() - begun)
    time.sleep(2)
    asked = dict(Task.objects.filter(pk__in=added).values_list("pk", "created_at"))
    queued = dict(Run.objects.filter(task__in=added).values_list("task", "queued_at"))
    lags = [(queued[task] - asked[task]).total_seconds() for task in added if task in queued]
    return {
        "added": len(added), "never_queued": len(added) - len(lags), "lag_median": median(lags),
        "lag_p95": quantiles(lags, n=20, method="inclusive")[-1], "lag_most": max(lags),
        "beat_oldest": oldest, "beat_late": max(oldest - settings.DURATIONS["beat"], 0.0),
        "lost": Run.objects.filter(outcome=Run.Outcome.LOST).count(), "percent": percent,
        "megabytes": memory_of(list({pid for site in sites for pid in site.processes()})),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with folder() as home, ExitStack() as stack:
        address = os.environ.get("DATABASE_URL") or f"sqlite:///{home / 'rows.sqlite3'}"
        stack.enter_context(django_here(DATABASE_URL=address))
        from agents.hosts.api_server import free_port

        slots = given.agents + int(given.seconds) + 1  # one more for each task that is added
        shared = {"DATABASE_URL": address, "STEROIDS_HOST_SLOTS": str(-(-slots // given.hosts))}
        sites = [
            Installation(
                home / f"host-{number}", **shared, PORT=str(free_port()), STEROIDS_HOST_NAME=f"host-{number}"
            )
            for number in range(given.hosts)
        ]
        for site in sites:
            site.home.mkdir()
        sleeper = sites[0].script("coder", "exec sleep 3600")
        token = create_rows(given.agents, slots, remote_in(home), sleeper)
        for site in sites:
            stack.enter_context(site.running())
        stack.callback(end_runs)
        begun = wait_for_agents(given.agents)
        time.sleep(SETTLED)
        found = measured(sites, int(sites[0].environment["PORT"]), token, given.seconds)
    if given.json:
        print(json.dumps({"start_seconds": begun, **found}))
    else:
        print(f"{given.agents} agents at work on {given.hosts} hosts after {begun:.0f} s: "
              f"{found['percent']:.0f} % of a core, {found['megabytes']:.0f} MB")  # fmt: skip
        print(f"lag of the loop, {found['added']} tasks: median {found['lag_median'] * 1000:.0f} ms, 95th "
              f"percentile {found['lag_p95'] * 1000:.0f} ms, most {found['lag_most'] * 1000:.0f} ms; "
              f"{found['never_queued']} never queued")  # fmt: skip
        print(f"oldest beat {found['beat_oldest']:.1f} s ago, {found['lost']} runs lost")
    return int(any(found[name] > most for name, most in MOST.items()) or found["never_queued"] > 0)


def end_runs() -> None:
    """Stop everything that was begun, so that no agent outlives its host."""
    from agents.models import Run
    from tasks.models import Project

    Project.objects.update(status="paused")
    Run.objects.exclude(status="ended").update(stop_requested=True)
    deadline = time.monotonic() + 120
    while running() and time.monotonic() < deadline:
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())

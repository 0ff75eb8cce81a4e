"""How the loop copes with many agents, on rows alone: no processes and no git.

    python bench/scheduler.py [--agents 100 1000 10000] [--turns 5] [--json]

Every ten agents have a project of their own, in which ten tasks are under way and a hundred wait. In each
turn one of a hundred agents ends its run, and the loop starts what is next. With DATABASE_URL it runs on that
database, whose projects and agents are deleted, and otherwise on SQLite. It measures one turn: its seconds,
its queries, and the time for each run that it started.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.installation import django_here  # noqa: E402
from bench.pages import Counting  # noqa: E402

EACH, WAITING, ENDING = (
    10,
    100,
    100,
)  # agents of a project, tasks that wait, and one of how many ends in a turn
AT_ONCE = 2000


def fill(agents: int) -> None:
    """Create the projects, the agents, their runs, and the tasks that wait."""
    from agents.models import Agent, Run
    from tasks.models import Project, Section, Task

    count = max(agents // EACH, 1)
    projects = Project.objects.bulk_create(
        Project(
            slug=f"p{n}", name=f"P{n}", repo_url="/nowhere.git", base_state="green", max_parallel=EACH,
            settings={"detect_commands": False, "test_command": "true"},
        )
        for n in range(count)
    )  # fmt: skip
    sections = Section.objects.bulk_create(Section(project=each, title="Work") for each in projects)
    crew = Agent.objects.bulk_create(
        [
            Agent(name=f"a{n}", role="coder", slots=1, settings={"argv": ["true"]})
            for n in range(count * EACH)
        ],
        batch_size=AT_ONCE,
    )
    bound = Agent.projects.through
    bound.objects.bulk_create(
        [bound(agent=agent, project=projects[n // EACH]) for n, agent in enumerate(crew)],
        batch_size=AT_ONCE,
    )
    tasks = Task.objects.bulk_create(
        [
            Task(
                project=project, section=section, number=number, rank=number, title="T",
                status="in_progress" if number <= EACH else "pending", round=int(number <= EACH),
            )
            for project, section in zip(projects, sections, strict=True)
            for number in range(1, EACH + WAITING + 1)
        ],
        batch_size=AT_ONCE,
    )  # fmt: skip
    begun = [task for task in tasks if task.number <= EACH]
    Run.objects.bulk_create(
        [
            Run(
                task=task, project=task.project, role="coder", seat="coder", round=1, status="running",
                agent=agent, agent_label=agent.name, task_version=task.version,
            )
            for task, agent in zip(begun, crew, strict=True)
        ],
        batch_size=AT_ONCE,
    )  # fmt: skip


def end_some(agents: int, chance: random.Random) -> int:
    """End the runs of some agents and finish their tasks; return how many."""
    from django.utils import timezone

    from agents.models import Run
    from tasks.models import Task

    live = list(Run.objects.exclude(status="ended").values_list("pk", "task"))
    ended = chance.sample(live, max(agents // ENDING, 1))
    runs, tasks = [run for run, _ in ended], [task for _, task in ended]
    Run.objects.filter(pk__in=runs).update(status="ended", outcome="handed_in", ended_at=timezone.now())
    Task.objects.filter(pk__in=tasks).update(status="completed", finished_by="hand")
    return len(ended)


def clear() -> None:
    """Begin with an empty database; on SQLite each size has one of its own."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE tasks_project, agents_agent CASCADE")


def measured(agents: int, turns: int) -> dict[str, float]:
    """Return the median of some turns, after one that is not counted."""
    from django.db import connection

    from agents.loop import orchestrator

    chance, quiet = random.Random(agents), orchestrator.Quiet()
    seconds, queries, started = [], [], 0
    for turn in range(turns + 1):
        ended = end_some(agents, chance)
        asked = Counting()
        with connection.execute_wrapper(asked):
            begun = time.perf_counter()
            done = orchestrator.go_on(quiet=quiet)
            taken = time.perf_counter() - begun
        assert done.started == ended, f"{done.started} of {ended} started"
        if turn:
            seconds.append(taken)
            queries.append(asked.number)
            started += done.started
    begun = time.perf_counter()
    orchestrator.go_on(quiet=quiet)
    idle = time.perf_counter() - begun
    return {
        "seconds": median(seconds), "queries": median(queries), "each_ms": 1000 * sum(seconds) / started,
        "without_work_ms": idle * 1000,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--agents", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    report: dict[str, Any] = {}
    if len(given.agents) > 1:
        for agents in given.agents:
            words = ["--agents", str(agents), "--turns", str(given.turns), "--json"]
            done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, check=True)
            report |= json.loads(done.stdout)
    else:
        report = {str(given.agents[0]): in_a_database(given.agents[0], given.turns)}
    if given.json:
        print(json.dumps(report))
        return 0
    for agents, row in report.items():
        print(
            f"{int(agents):>6,} agents: a turn {row['seconds']:.2f} s, {row['queries']:.0f} queries, "
            f"{row['each_ms']:.0f} ms for each start; a turn without work {row['without_work_ms']:.0f} ms"
        )
    return 0


def in_a_database(agents: int, turns: int) -> dict[str, float]:
    """Return the figures of one size."""
    with django_here(STEROIDS_SANDBOX="off"):
        clear()
        fill(agents)
        _analyze()
        return measured(agents, turns)


def _analyze() -> None:
    """Refresh the statistics, as the databases themselves do some time after so many rows were added."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


if __name__ == "__main__":
    sys.exit(main())

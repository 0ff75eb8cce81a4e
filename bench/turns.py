"""What a turn of the loop costs if there is nothing to do, with a thousand and with a million tasks.

    python bench/turns.py [--tasks 1 1000] [--turns 20] [--json]

`--tasks` is how many tasks each of a thousand projects has: finished ones, and one that waits for another.
With DATABASE_URL it runs on that database, which has to be empty, and otherwise on SQLite in a folder of its
own. Wanted: at most 20 ms and 15 queries for a whole tick, and at most 1.5 times as long for a thousand times
the tasks.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.installation import django_here  # noqa: E402

PROJECTS = 1000
MOST_MS, MOST_QUERIES, GROWTH = 20.0, 15, 1.5
AT_ONCE = 5000  # rows of one insert


def fill(tasks: int) -> None:
    """Create a thousand projects in which nothing can go on, with so many tasks each."""
    from django.utils import timezone

    from tasks.database import statistics
    from tasks.models import Project, Section, Task

    fit = Project.Base.GREEN
    projects = Project.objects.bulk_create(
        Project(slug=f"p{n}", name=f"P{n}", repo_url=f"https://example.org/{n}.git", base_state=fit)
        for n in range(PROJECTS)
    )
    sections = Section.objects.bulk_create(Section(project=each, title="Work") for each in projects)
    now = timezone.now()
    rows = []
    for project, section in zip(projects, sections, strict=True):
        for number in range(1, tasks + 1):
            rest = {"waits_for": 1} if number == 1 else {"status": "completed", "finished_by": "hand"}
            named = {"project": project, "section": section, "number": number, "rank": number, "title": "T"}
            rows.append(Task(**named, status_at=now, **rest))
        if len(rows) >= AT_ONCE:
            Task.objects.bulk_create(rows)
            rows.clear()
    Task.objects.bulk_create(rows)
    statistics.refresh()  # as the program's own job does: these rows came all at once


def clear() -> None:
    from tasks.models import Project, Section, Task

    for model in (Task, Section, Project):
        model.objects.all()._raw_delete(model.objects.db)


def measured(work: Callable[[], object], turns: int) -> dict[str, float]:
    """Return the milliseconds of one call, leaving out the first, and its queries."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    taken = []
    for _ in range(turns + 1):
        begun = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begun) * 1000)
    with CaptureQueriesContext(connection) as captured:
        work()
    found = sorted(taken[1:])
    return {"ms": median(found), "least": found[0], "most": found[-1], "queries": len(captured)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, nargs="*", default=[1, 1000])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with django_here(STEROIDS_SANDBOX="off"):
        from agents.hosts.reconciler import Reconciler
        from agents.loop import orchestrator

        report: dict[str, dict[str, dict[str, float]]] = {}
        with Reconciler() as host:
            for tasks in given.tasks:
                fill(tasks)
                works = {"tick": orchestrator.tick, "next": orchestrator.go_on, "host": host.step}
                report[f"{tasks * PROJECTS:,}"] = {
                    name: measured(work, given.turns) for name, work in works.items()
                }
                clear()
    first, *_, last = report.values()
    growth = {name: last[name]["ms"] / first[name]["ms"] for name in first}
    if given.json:
        print(json.dumps({"turns": report, "growth": growth}))
    else:
        for tasks, rows in report.items():
            for name, row in rows.items():
                print(
                    f"{tasks:>9} tasks  {name:5} {row['ms']:7.2f} ms "
                    f"({row['least']:.2f} to {row['most']:.2f})  {row['queries']:.0f} queries"
                )
        print("growth    " + ", ".join(f"{name} {times:.2f}" for name, times in growth.items()))
    is_well = last["tick"]["ms"] <= MOST_MS and last["tick"]["queries"] <= MOST_QUERIES
    return int(not is_well or growth["tick"] > GROWTH)


if __name__ == "__main__":
    sys.exit(main())

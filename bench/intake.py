"""What large documents cost: a review of two hundred findings, and a TODO.md of ten thousand tasks.

    python bench/intake.py [--findings 200] [--earlier 2000] [--tasks 10000] [--json]

The review is taken in after ten earlier ones with two thousand findings of the same task; a review of a tenth
of the size shows how the cost grows. With DATABASE_URL it runs on that database, which has to be empty, and
otherwise on SQLite. Wanted: half a second, 40 queries and no transaction over 100 ms; five seconds for the
TODO.md.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.installation import django_here  # noqa: E402

REVIEWS = 10
WANTED = {"review s": 0.5, "queries": 40, "longest transaction s": 0.1, "todo s": 5.0}


def review_of(round_: int, findings: int) -> str:
    """Return a review as an agent writes it, with each finding at a place of its own."""
    parts = []
    for number in range(1, findings + 1):
        parts.append(
            f"- **ISSUE-R{round_}-{number:03}**: The value of part {number} is not checked ({round_})\n"
            f"  - **Location:** src/part_{number}.py:{number}\n  - **Impact:** A wrong one is stored.\n"
        )
    return "### High Priority\n\n" + "\n".join(parts) + "\n## Verdict: NEEDS_REVISION\n"


def todo_of(tasks: int) -> str:
    """Return a TODO.md of so many tasks, in sections of a hundred."""
    lines = ["# What is to be done"]
    for number in range(tasks):
        if number % 100 == 0:
            lines.append(f"\n## Part {number // 100 + 1}\n")
        lines.append(f"- [ ] Write number {number + 1} as the plan says")
    return "\n".join(lines) + "\n"


class Watch:
    """Counts queries, and measures the longest transaction from its BEGIN to its end."""

    def __init__(self) -> None:
        self.queries, self.longest, self.begun = 0, 0.0, 0.0

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        word = sql.split(None, 1)[0].upper()
        if word == "BEGIN":
            self.begun = time.perf_counter()
        self.queries += word not in {"BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK"}
        return execute(sql, *rest)

    def ended(self) -> None:
        self.longest = max(self.longest, time.perf_counter() - self.begun) if self.begun else self.longest
        self.begun = 0.0


def hand_in(task: Any, round_: int, text: str) -> tuple[float, Watch]:
    """Send the task back with this review; return the seconds of the request and its watch."""
    from django.db import connection
    from django.test import Client

    from agents.models import Agent, new_token, token_hash
    from tasks.models import Submission, Task
    from tests.factories import create_run, create_submission

    Task.objects.filter(pk=task.pk).update(status="review", round=round_)
    task.refresh_from_db()
    submission = create_submission(task, round=round_, state=Submission.State.VERIFIED)
    token = new_token()
    create_run(
        task, "reviewer", agent=Agent.objects.get(role="reviewer"), round=round_, sha=submission.sha,
        token_hash=token_hash(token), spent_hash=token_hash(token), task_version=task.version,
    )  # fmt: skip
    watch, client = Watch(), Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})
    ended, commit = watch.ended, connection._commit

    def note_commit() -> None:
        commit()
        ended()

    connection._commit = note_commit
    begun = time.perf_counter()
    with connection.execute_wrapper(watch):
        answer = client.post(
            f"/api/v1/tasks/{task.ref}/reject/", {"review": text}, content_type="application/json"
        )
    seconds = time.perf_counter() - begun
    del connection._commit
    assert answer.status_code in {200, 201}, answer.content[:500]
    return seconds, watch


def measured(findings: int, earlier: int) -> dict[str, float]:
    """Measure one review of so many findings after so many earlier ones."""
    from agents.models import Agent
    from tests.factories import create_project, create_task

    project = create_project(settings={"rejections_max": 10_000})
    task = create_task(project, status="in_progress", round=1)
    Agent.objects.get_or_create(name="reviewer", role="reviewer", defaults={"settings": {"argv": ["true"]}})
    for round_ in range(1, REVIEWS + 1):
        hand_in(task, round_, review_of(round_, earlier // REVIEWS))
    seconds, watch = hand_in(task, REVIEWS + 1, review_of(REVIEWS + 1, findings))
    return {"review s": seconds, "queries": watch.queries, "longest transaction s": watch.longest}


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--findings", type=int, default=200)
    parser.add_argument("--earlier", type=int, default=2000)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with django_here(STEROIDS_SANDBOX="off"):
        from steroidsweb.preloading import load_everything
        from tasks.events import SYSTEM
        from tasks.todo.importing import import_todo
        from tests.factories import create_project

        load_everything()  # as the web server does; else the garbage collector would read all that is loaded
        small = measured(given.findings // 10, given.earlier // 10)
        found = measured(given.findings, given.earlier)
        begun = time.perf_counter()
        import_todo(create_project(), todo_of(given.tasks), actor=SYSTEM)
        found["todo s"] = time.perf_counter() - begun
    if given.json:
        print(json.dumps({"large": found, "small": small}))
    else:
        for name, value in found.items():
            print(f"{name:22} {value:8.3f}" + (f"   a tenth: {small[name]:.3f}" if name in small else ""))
    return int(any(found[name] > most for name, most in WANTED.items()))


if __name__ == "__main__":
    sys.exit(main())

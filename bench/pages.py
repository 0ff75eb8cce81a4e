"""How long the pages take, how many queries they make, and how that grows with the number of disputes.

    python bench/pages.py [--json] [--only NAME] [--requests 60]
    DATABASE_URL=postgres://user@host/big python bench/pages.py --json

Two databases are measured by turns, request by request, so that a busy machine slows both down alike: the big
one, which DATABASE_URL names, and a small one with 1,000 disputes beside it. bench/seed.py fills them if they
are empty. The time is the server's, from the request to the whole answer, in one process, without the
network. Growth is the median time on the big one divided by that on the small one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.seed import MEMBER, ROOT_USER, set_up  # noqa: E402

SMALL = 1_000
WARM_UP, TURNS = 3, 4
WANTED_MS, WANTED_QUERIES, WANTED_GROWTH = 60.0, 12, 1.3
HELD = ("queue", "queue-search", "dispute", "board", "dashboard", "task")  # have to reach these figures
FOUND = "/queue/?q=the"  # fills a page even of the small database
BEFORE = {"dispute": "/queue/", "dispute-found": FOUND}  # the way there, which is not measured


# --- What is measured, inside a process of its own --------------------------------------------------------


def paths() -> dict[str, list[str]]:
    """Return each page's path, or several paths that are requested in turn."""
    from agents.models import Run
    from disputes.models import Dispute
    from tasks.models import Project, Task

    project = Project.objects.order_by("pk").first()
    assert project is not None
    waiting = Dispute.objects.open().filter(project=project).in_order()
    disputes = list(waiting[:5]) + list(waiting.filter(task__round__gt=2)[:3])
    tasks = list(Task.objects.filter(pk__in=[dispute.task_id for dispute in disputes]))
    run = Run.objects.filter(project=project).live().order_by("pk").first() or Run.objects.earliest("pk")
    return {
        "queue": ["/queue/"],
        "queue-team": ["/queue/team/"],
        "queue-waiting": ["/queue/waiting/"],
        "queue-snoozed": ["/queue/snoozed/"],
        "queue-settled": ["/queue/settled/"],
        "queue-filtered": [f"/queue/?project={project.slug}&severity=high"],
        "queue-search": [FOUND],
        **dict.fromkeys(("dispute", "dispute-found"), [f"/queue/D-{dispute.pk}/" for dispute in disputes]),
        "board": [f"/projects/{project.slug}/board/"],
        "task": [f"/tasks/{task.ref}/" for task in tasks],
        "runs": ["/runs/"],
        "run": [f"/runs/{run.pk}/"],
        "insights": ["/insights/?days=90"],
        "insights-30": ["/insights/?days=30"],
        "insights-7": ["/insights/?days=7"],
        "dashboard": ["/admin/"],
    }


class Worker:
    """Answers the requests of the measuring process, one line of JSON each."""

    def __init__(self) -> None:
        set_up()
        from django.contrib.auth.models import User
        from django.test import Client

        from steroidsweb.preloading import load_everything

        load_everything()  # as the web server does
        self.clients = {}
        for name in (ROOT_USER, MEMBER):
            self.clients[name] = Client(headers={"host": "localhost"})
            self.clients[name].force_login(User.objects.get(username=name))
        self.paths = paths()

    def serve(self) -> None:
        print(json.dumps(sorted(self.paths)), flush=True)
        for line in sys.stdin:
            print(json.dumps(self.ask(**json.loads(line))), flush=True)

    def ask(self, page: str, user: str, times: int, *, cold: bool = False) -> dict[str, Any]:
        """Return the seconds and the processor time of each request, and the most queries that one made."""
        from django.core.cache import cache
        from django.db import connection

        wall, cpu, queries, status = [], [], 0, 0
        if page in BEFORE:
            self.clients[user].get(BEFORE[page])
        for turn in range(times):
            if cold:
                cache.clear()
            asked = Counting()
            path = self.paths[page][turn % len(self.paths[page])]
            began, worked = time.perf_counter(), time.process_time()
            with connection.execute_wrapper(asked):
                answer = self.clients[user].get(path)
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - worked)
            queries, status = max(queries, asked.number), max(status, answer.status_code)
        return {"wall": wall, "cpu": cpu, "queries": queries, "status": status}


class Counting:
    """Counts the queries of a connection."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if not sql.startswith(("SAVEPOINT", "RELEASE")):
            self.number += 1
        return execute(sql, *rest)


# --- The measuring process --------------------------------------------------------------------------------


class Database:
    """A filled database, and the process that requests pages from it."""

    def __init__(self, url: str, disputes: int, events: int) -> None:
        self.environment = {**os.environ, "DATABASE_URL": url}
        _create(url)
        seed = [sys.executable, str(ROOT / "bench/seed.py"), "--if-empty"]
        sizes = ["--disputes", str(disputes), "--events", str(events)]
        subprocess.run([*seed, *sizes], env=self.environment, check=True, stdout=sys.stderr)
        self.worker = subprocess.Popen(
            [sys.executable, __file__, "--worker"], env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.pages: list[str] = self._read()

    def _read(self) -> Any:
        assert self.worker.stdout is not None
        line = self.worker.stdout.readline()
        if not line:
            raise SystemExit("The process that asks the pages has ended.")
        return json.loads(line)

    def ask(self, page: str, user: str, times: int, *, cold: bool = False) -> dict[str, Any]:
        assert self.worker.stdin is not None
        self.worker.stdin.write(json.dumps({"page": page, "user": user, "times": times, "cold": cold}) + "\n")
        self.worker.stdin.flush()
        return dict(self._read())

    def close(self) -> None:
        assert self.worker.stdin is not None
        self.worker.stdin.close()
        self.worker.wait(timeout=60)


def _create(url: str) -> None:
    """Create a PostgreSQL database before it is filled; an SQLite file needs no such step."""
    if not urlsplit(url).scheme.startswith("postgres"):
        return
    import psycopg
    from psycopg import sql

    name = urlsplit(url).path.lstrip("/")
    with psycopg.connect(_named(url, "postgres"), autocommit=True) as server:
        if not server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _named(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    address, mark, query = url.partition("?")
    return f"{address.rpartition('/')[0]}/{name}{mark}{query}"


def small_beside(url: str) -> str:
    """Return the URL of the small database that belongs to a big one."""
    name = url.partition("?")[0].rpartition("/")[2]
    stem, dot, ending = name.partition(".")
    return _named(url, f"{stem}_small{dot}{ending}")


@dataclass(frozen=True, slots=True)
class Measured:
    """What one page costs for one user."""

    p50_ms: float
    p95_ms: float
    cpu_ms: float
    queries: int
    growth: float
    cpu_growth: float
    status: int


def measure(big: Database, small: Database, page: str, user: str, requests: int) -> Measured:
    """Request the page from both databases by turns."""
    found = {}
    for each in (big, small):
        found[each] = each.ask(page, user, WARM_UP, cold=True)
        found[each] |= {"wall": [], "cpu": []}
    for _ in range(TURNS):
        for each in (big, small):
            answer = each.ask(page, user, requests // TURNS)
            found[each]["wall"] += answer["wall"]
            found[each]["cpu"] += answer["cpu"]
    return Measured(
        p50_ms=round(median(found[big]["wall"]) * 1000, 1),
        p95_ms=round(quantiles(found[big]["wall"], n=20, method="inclusive")[-1] * 1000, 1),
        cpu_ms=round(median(found[big]["cpu"]) * 1000, 1),
        queries=max(found[big]["queries"], found[small]["queries"]),
        growth=round(median(found[big]["wall"]) / median(found[small]["wall"]), 2),
        cpu_growth=round(median(found[big]["cpu"]) / median(found[small]["cpu"]), 2),
        status=max(found[big]["status"], found[small]["status"]),
    )


def worst(by_user: dict[str, Measured]) -> dict[str, Any]:
    """Return the worse of the two users in each figure, and both."""
    users = {user: asdict(measured) for user, measured in by_user.items()}
    figures = {name: max(user[name] for user in users.values()) for name in next(iter(users.values()))}
    return {**figures, "users": users}


def misses(page: str, found: dict[str, Any]) -> list[str]:
    """Return the figures that a page misses, if it has to reach them."""
    if page not in HELD:
        return []
    wanted = {"p95_ms": WANTED_MS, "queries": WANTED_QUERIES, "growth": WANTED_GROWTH}
    return [f"{name} {found[name]} > {limit}" for name, limit in wanted.items() if found[name] > limit]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", metavar="NAME", action="append", help="a page; may be given again")
    parser.add_argument("--requests", type=int, default=60, help="of each page, person and database")
    parser.add_argument("--disputes", type=int, default=100_000, help="where the big one is empty")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        Worker().serve()
        return 0
    folder = Path(tempfile.gettempdir()) / "steroids-bench"
    folder.mkdir(exist_ok=True)
    os.environ.setdefault("STEROIDS_HOME", str(folder))
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{folder}/big.sqlite3"
    big = Database(url, asked.disputes, asked.events)
    small = Database(small_beside(url), SMALL, SMALL * 10)
    results: dict[str, Any] = {}
    if not asked.json:
        print(f"{'page':<16}{'p50':>8}{'p95 ms':>8}{'cpu':>8}{'queries':>9}{'growth':>8}{'of cpu':>8}")
    for page in asked.only or paths_in_order(big.pages):
        by_user = {user: measure(big, small, page, user, asked.requests) for user in (ROOT_USER, MEMBER)}
        found = results[page] = worst(by_user)
        if not asked.json:
            told = "  ".join(misses(page, found)) or ("" if found["status"] == 200 else str(found["status"]))
            print(
                f"{page:<16}{found['p50_ms']:>8}{found['p95_ms']:>8}{found['cpu_ms']:>8}"
                f"{found['queries']:>9}{found['growth']:>8}{found['cpu_growth']:>8}  {told}"
            )
    big.close()
    small.close()
    if asked.json:
        print(json.dumps({"database": urlsplit(url).scheme, "pages": results}, indent=2))
    return 1 if any(misses(page, found) for page, found in results.items()) else 0


def paths_in_order(pages: list[str]) -> list[str]:
    """Return the pages, starting with those that have to reach the figures."""
    return [*(page for page in HELD if page in pages), *(page for page in pages if page not in HELD)]


if __name__ == "__main__":
    raise SystemExit(main())

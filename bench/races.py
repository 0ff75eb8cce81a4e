"""Many agents hand in at once, and people race for rulings, over HTTP: what is lost, and what fails?

    python bench/races.py [--database-url URL] [--hand-ins 10000] [--races 2000] [--clients 32]

Every tenth hand-in is sent twice at the same moment under one Idempotency-Key. Four people rule on the same
card at once, two of them for each side. At the end, others write for some seconds while everybody reads. The
database must be empty; without a URL it is an SQLite file that is deleted afterwards. The exit status is 1 if
anything was lost or doubled, or if an answer was 500 or above.

The clients share the machine with the server, so they write plain requests and read plain answers on sockets
that they keep open; one of Python's own HTTP clients would take a large part of what is measured. The
processor time of both sides is printed too, but not that of PostgreSQL's processes.
"""

import argparse
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.installation import processor_of  # noqa: E402

RACERS = 4  # people at one card
WAIT = 60.0  # seconds until the server is up, and for an answer
KEPT = 0.5  # seconds after which an idle connection is not used again, since the server closes it
CHUNK = 500
OPTIONS = ("retry", "defer")  # options of a card that needs a person, which take no text


class Client:
    """One connection, kept open, with the time that each of its answers took."""

    def __init__(self, port: int) -> None:
        self.port, self.used = port, 0.0
        self.took: list[float] = []
        self.answers: Counter[int] = Counter()

    def ask(
        self, method: str, path: str, token: str, body: Any = None, key: str = ""
    ) -> tuple[int, dict[str, Any]]:
        content = json.dumps(body).encode() if body is not None else b""
        lines = [
            f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Authorization: Bearer {token}",
            "Content-Type: application/json", f"Content-Length: {len(content)}",
            *([f"Idempotency-Key: {key}"] if key else []), "", "",
        ]  # fmt: skip
        began = time.perf_counter()
        if began - self.used > KEPT:
            self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.sendall("\r\n".join(lines).encode() + content)
        status, told = self._read()
        self.used = time.perf_counter()
        self.took.append(self.used - began)
        self.answers[status] += 1
        return status, json.loads(told) if told else {}

    def _read(self) -> tuple[int, bytes]:
        """Return the status and the content of an answer, whose head must give its length."""
        read = b""
        while b"\r\n\r\n" not in read:
            read += self._some()
        head, _, told = read.partition(b"\r\n\r\n")
        _, _, after = head.lower().partition(b"\r\ncontent-length:")
        length = int(after.partition(b"\r\n")[0])
        while len(told) < length:
            told += self._some()
        return int(head.split(b" ", 2)[1]), told

    def _some(self) -> bytes:
        read = self.connection.recv(65536)
        if not read:
            raise ConnectionError("The server closed the connection before it had answered.")
        return read


class Figures:
    """What the clients measured."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self.answers: Counter[int] = Counter()
        self.faults: list[str] = []

    def add(self, clients: Iterable[Client]) -> None:
        for client in clients:
            self.took += client.took
            self.answers += client.answers

    def say(self, name: str, seconds: float) -> None:
        ranked = sorted(self.took)
        times = (statistics.median(ranked), ranked[int(len(ranked) * 0.95)], ranked[-1])
        p50, p95, worst = (f"{each * 1000:.0f} ms" for each in times)
        told = ", ".join(f"{count} x {status}" for status, count in sorted(self.answers.items()))
        print(
            f"{name}: {len(ranked):,} requests in {seconds:.1f} s ({len(ranked) / seconds:.0f} a second), ",
            end="",
        )
        print(f"p50 {p50}, p95 {p95}, worst {worst}; {told}")
        failed = sum(count for status, count in self.answers.items() if status >= 500)
        self.expect(failed == 0, f"{name}: {failed} answers of 500 or above")

    def expect(self, holds: bool, fault: str) -> None:
        if not holds:
            self.faults.append(fault)


# --- The rows that they work on -----------------------------------------------------------------------------


def create_runs(count: int) -> list[tuple[str, str]]:
    """Create tasks with a live coder's run each; return the name of each task and the token of its run."""
    from agents.models import Agent, Run, new_token, token_hash
    from tasks.models import Project, Section, Task

    project = Project.objects.create(slug="races", name="Races", repo_url="/nowhere.git", base_state="green")
    section = Section.objects.create(project=project, title="Tasks")
    agent = Agent.objects.create(name="racer", role="coder", settings={"argv": ["true"]})
    found = []
    for begin in range(1, count + 1, CHUNK):
        numbers = range(begin, min(begin + CHUNK, count + 1))
        tasks = Task.objects.bulk_create(
            Task(
                project=project, section=section, number=number, rank=number, title=f"Task {number}",
                status="in_progress", round=1,
            )
            for number in numbers
        )  # fmt: skip
        tokens = [new_token() for _ in tasks]
        Run.objects.bulk_create(
            Run(
                task=task, project=project, role="coder", seat="coder", round=1, status="running",
                agent=agent, agent_label=agent.name, task_version=task.version, base_sha="b" * 40,
                token_hash=token_hash(token), spent_hash=token_hash(token),
            )
            for task, token in zip(tasks, tokens, strict=True)
        )  # fmt: skip
        found += [(f"races-{task.number}", token) for task, token in zip(tasks, tokens, strict=True)]
    return found


def create_cards(count: int) -> tuple[list[str], list[str]]:
    """Create open cards; return their names and the tokens of the people who may rule on them."""
    from django.contrib.auth.models import User

    from agents.models import Token, new_token, token_hash
    from disputes import opening
    from disputes.models import Conflict
    from tasks.models import Membership, Project, Section, Task

    project = Project.objects.create(slug="cards", name="Cards", repo_url="/nowhere.git", base_state="green")
    section = Section.objects.create(project=project, title="Tasks")
    refs = []
    for number in range(1, count + 1):
        task = Task.objects.create(
            project=project, section=section, number=number, rank=number, title=f"Task {number}",
            status="in_progress", round=1,
        )  # fmt: skip
        refs.append(
            opening.stop_for_help(task, Conflict.Origin.BLOCKED, "The coder is blocked: no access").ref
        )
    tokens = []
    for number in range(RACERS):
        user = User.objects.create_user(f"racer-{number}", is_staff=True)
        Membership.objects.create(project=project, user=user, role="triager")
        tokens.append(new_token())
        Token.objects.create(user=user, name="race", hash=token_hash(tokens[-1]))
    return refs, tokens


# --- The races ----------------------------------------------------------------------------------------------


@contextmanager
def weighing(server_pid: int, figures: Figures) -> Iterator[None]:
    """Print afterwards how much processor time one request took on each side."""
    workers = Path(f"/proc/{server_pid}/task/{server_pid}/children")

    def used() -> float:  # workers that have begun since are counted, too
        return processor_of([server_pid, *map(int, workers.read_text().split())])

    before, own = used(), time.process_time()
    yield
    theirs, ours = used() - before, time.process_time() - own
    count = len(figures.took) / 1000
    print(f"  processor of a request: server {theirs / count:.1f} ms, clients {ours / count:.1f} ms")


def hand_in(port: int, runs: list[tuple[str, str]], clients: int, figures: Figures) -> None:
    """Let each client take the next run and hand in for it, some of them twice at once."""
    waiting = iter(enumerate(runs))
    lock = threading.Lock()

    def work(_: int) -> list[Client]:
        client, twin = Client(port), Client(port)
        while True:
            with lock:
                number, (ref, token) = next(waiting, (0, ("", "")))
            if not ref:
                return [client, twin]
            asks = partial(
                Client.ask, method="POST", path=f"/api/v1/tasks/{ref}/submit/", token=token,
                body={"sha": f"{number + 1:040x}", "notes": "Done."}, key=f"hand-in-{number}",
            )  # fmt: skip
            hands = [client] if number % 10 else [client, twin]
            replies = at_once(*(partial(asks, hand) for hand in hands))
            for status, told in replies:
                figures.expect(status == 201, f"{ref}: {status} {told}")
            figures.expect(all(told == replies[0][1] for _, told in replies), f"{ref}: two replies")

    began = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        for each in pool.map(work, range(clients)):
            figures.add(each)
    figures.say("Hand-ins", time.monotonic() - began)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Do all the work in threads that begin at the same moment; return the results."""
    if len(works) == 1:
        return [works[0]()]
    start = threading.Barrier(len(works), timeout=WAIT)

    def one(work: Callable[[], Any]) -> Any:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


def race(port: int, refs: list[str], tokens: list[str], groups: int, figures: Figures) -> Counter[str]:
    """Let four people rule on each card at the same moment; return how often each option won."""
    waiting, lock = iter(refs), threading.Lock()
    won: Counter[str] = Counter()

    def work(_: int) -> list[Client]:
        clients = [Client(port) for _ in tokens]
        while True:
            with lock:
                ref = next(waiting, "")
            if not ref:
                return clients

            def rule(place: int, ref: str = ref) -> tuple[int, dict[str, Any]]:
                option = OPTIONS[place % len(OPTIONS)]
                body = {"decision": option, "notes": f"Person {place}."}
                return clients[place].ask("POST", f"/api/v1/disputes/{ref}/resolve/", tokens[place], body)

            replies = at_once(*(lambda place=place: rule(place) for place in range(len(tokens))))
            winners = [place for place, (status, _) in enumerate(replies) if status == 200]
            figures.expect(len(winners) == 1, f"{ref}: {len(winners)} won")
            for status, told in replies:
                is_told = status == 200 or (status == 409 and told.get("code"))
                figures.expect(bool(is_told), f"{ref}: {status} {told}")
            with lock:
                won.update(OPTIONS[place % len(OPTIONS)] for place in winners)

    began = time.monotonic()
    with ThreadPoolExecutor(groups) as pool:
        for each in pool.map(work, range(groups)):
            figures.add(each)
    figures.say("Rulings", time.monotonic() - began)
    return won


def read(port: int, refs: list[str], tokens: list[str], clients: int, held: float, figures: Figures) -> None:
    """Let everybody read while others hold the right to write for so many seconds."""
    with writing():
        until = time.monotonic() + held

        def work(place: int) -> list[Client]:
            client, number = Client(port), place
            while time.monotonic() < until:
                path = ("/api/v1/me/", "/api/v1/tasks/", f"/api/v1/disputes/{refs[number % len(refs)]}/")[
                    number % 3
                ]
                status, _ = client.ask("GET", path, tokens[number % len(tokens)])
                figures.expect(status == 200, f"{path} while others write: {status}")
                number += 1
            return [client]

        began = time.monotonic()
        with ThreadPoolExecutor(clients) as pool:
            for each in pool.map(work, range(clients)):
                figures.add(each)
        figures.say("Reads while writes cannot", time.monotonic() - began)


@contextmanager
def writing() -> Iterator[None]:
    """Keep everybody else from writing until the block ends."""
    from django.db import connection

    with closing(connection.copy("elsewhere")) as other, other.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE" if other.vendor == "sqlite" else "BEGIN")
        if other.vendor != "sqlite":
            names = ", ".join(f'"{name}"' for name in other.introspection.table_names())
            cursor.execute(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
        yield
        cursor.execute("ROLLBACK")


# --- What the rows say --------------------------------------------------------------------------------------


def check_hand_ins(count: int, figures: Figures) -> None:
    """Check that each hand-in has one submission, one event and one move, and that its run is over."""
    from agents.models import Run
    from tasks.models import Event, Submission, Task

    project = {"project__slug": "races"}
    found = {
        "submissions": Submission.objects.filter(task__project__slug="races").count(),
        "tasks with one": Submission.objects.filter(task__project__slug="races")
        .values("task")
        .distinct()
        .count(),
        "events": Event.objects.filter(kind="submit", **project).count(),
        "tasks in review": Task.objects.filter(status="review", version=1, **project).count(),
        "runs with their submission": Run.objects.filter(
            status="closing", token_hash=None, submission__task__project__slug="races"
        ).count(),
    }
    for name, number in found.items():
        figures.expect(number == count, f"{number} {name}, not {count}")
    print(f"  {count:,} handed in: " + ", ".join(f"{number:,} {name}" for name, number in found.items()))


def check_rulings(count: int, won: Counter[str], figures: Figures) -> None:
    """Check that each card has exactly the ruling of whoever was told that it won."""
    from disputes.models import Conflict, Decision

    decisions = Decision.objects.filter(conflict__dispute__project__slug="cards")
    kept = Counter(decisions.values_list("option", flat=True))
    ruled = Conflict.objects.filter(dispute__project__slug="cards").exclude(status="open").count()
    figures.expect(kept == won, f"{dict(kept)} are kept, {dict(won)} were told that they won")
    figures.expect(
        decisions.count() == ruled == count, f"{decisions.count()} rulings on {ruled} cards of {count}"
    )
    print(f"  {count:,} cards: {ruled:,} ruled, {decisions.count():,} rulings")


# --- The server ---------------------------------------------------------------------------------------------


@contextmanager
def server(workers: int) -> Iterator[tuple[int, int]]:
    """Start the web server as an installation does; yield its port and the pid of its first process."""
    from agents.hosts import api_server

    port = api_server.free_port()
    argv = api_server.gunicorn_argv(port, workers=workers)
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(argv, cwd=ROOT, stdout=nowhere)
    try:
        until = time.monotonic() + WAIT
        while not api_server.answers(f"http://127.0.0.1:{port}"):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("The web server could not be started.")
            time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(WAIT)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument(
        "--database-url", default="", help="of an empty database; else SQLite in a new folder"
    )
    parser.add_argument("--hand-ins", type=int, default=10_000)
    parser.add_argument("--races", type=int, default=2_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--held", type=float, default=3.0, help="seconds for which others write at the end")
    parser.add_argument("--workers", type=int, default=2, help="of the web server, with four threads each")
    asked = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    home = tempfile.mkdtemp(prefix="steroids-races-")
    try:
        return run(asked, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def run(asked: argparse.Namespace, home: str) -> int:
    os.environ.update(
        DJANGO_SETTINGS_MODULE="steroidsweb.settings", STEROIDS_HOME=home,
        SECRET_KEY=secrets.token_urlsafe(50), DATABASE_URL=asked.database_url or f"sqlite:///{home}/races.sqlite3",
        LOG_LEVEL="CRITICAL", STEROIDS_RUN_RATE="1000000/min",
    )  # fmt: skip
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from tasks.models import Project

    call_command("migrate", verbosity=0)
    if Project.objects.exists():
        print("This database holds projects already; nothing was written.", file=sys.stderr)
        return 2
    runs = create_runs(asked.hand_ins)
    refs, tokens = create_cards(asked.races)
    print(f"{connection.vendor}, {asked.clients} clients, {asked.workers} workers")
    every = [Figures() for _ in range(3)]
    with server(asked.workers) as (port, pid):
        with weighing(pid, every[0]):
            hand_in(port, runs, asked.clients, every[0])
        check_hand_ins(asked.hand_ins, every[0])
        won = race(port, refs, tokens, max(asked.clients // RACERS, 1), every[1])
        check_rulings(asked.races, won, every[1])
        read(port, refs, tokens, asked.clients, asked.held, every[2])
    faults = [fault for figures in every for fault in figures.faults]
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

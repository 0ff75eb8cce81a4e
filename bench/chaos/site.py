"""The installation that is disturbed: its remote, its work, its people, and what restarts it."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agents.hosts import api_server, processes
from bench.chaos.servers import Postgres, Redis, Wires, wait_until
from tests.end_to_end.installation import ROOT, SECRET, Installation
from tests.end_to_end.loop import bare_remote, git

AGENT = Path(__file__).with_name("agent.py")
CLOCK = Path(__file__).with_name("clock.c")
RESTART = 1.0  # seconds until a service that ended is started again
TURN = 0.1
ANSWERED_WITHIN = 60.0  # seconds for which a person goes on trying
SILENCE = 5.0  # seconds that a question to the database may take before the answer is "nobody knows"
PLAN = {  # hand-ins, reviews, lines on the branch of each kind of task
    "Plain": (1, 1, 1),
    "Rejected": (2, 2, 2),
    "Disputed": (2, 2, 1),  # people rule for the coder
    "Ruled": (3, 2, 2),  # the same, for the reviewer: done once more
}
# Takes commands on its standard input, a line of JSON each, because starting Django for each takes longer.
STEWARD = """
import json, sys
from django.core.management import call_command
from django.db import close_old_connections
from agents.doctor.table import examine
for line in sys.stdin:
    close_old_connections()
    words = json.loads(line)
    if words[0] == "doctor":
        said = [(each.check.id, each.finding.says) for each in examine(words[1:])]
    else:
        said = call_command(*words, stdout=sys.stderr)
    print(json.dumps(said), flush=True)
"""
ROWS = """
import json
from django.contrib.auth.models import User
from tests.end_to_end.loop import command_agent, small_project
from tests.factories import create_token
from agents.models import Agent
person = User.objects.create_superuser("ann", password="{secret}")
for role in ("coder", "reviewer"):
    Agent.objects.create(name=role, role=role, slots=4,
        settings={{"argv": [{python!r}, "-I", {agent!r}, "{{prompt}}", {folder!r}]}})
small_project({remote!r}, test_command="test -d work", max_retries=3)
from tasks.models import Project
Project.objects.update(max_parallel=3)
print(create_token(person, "chaos")[1])
"""


@dataclass
class Batch:
    """Some tasks that are given together."""

    name: str
    titles: list[str]
    begun: float = 0.0
    dropped: set[str] = field(default_factory=set)  # titles whose commit somebody removed from the branch

    def plan_of(self, title: str) -> tuple[int, int, int]:
        """Return how many hand-ins, reviews and lines the task has in the end."""
        return PLAN[title.partition(" ")[0]]


def lasting_port() -> int:
    """Return a free port that no other installation gets while the web server is down.

    It would refuse the tokens.
    """
    first = 20000 + os.getpid() % 10000  # below those that the kernel gives out by itself
    for port in range(first, first + 100):
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return port
    raise OSError(f"No port from {first} on is free.")


class Site(Installation):
    """One data folder, and everything around it."""

    def __init__(self, folder: Path, *, on_servers: bool, has_clock: bool = False) -> None:
        super().__init__(folder / "home")
        self.folder, self.on_servers = folder, on_servers
        kept = ("PATH", "HOME", "STEROIDS_HOME", "SECRET_KEY", "STEROIDS_RUN_RATE", "LOG_LEVEL")
        self.environment = {name: self.environment[name] for name in kept} | {
            "STEROIDS_SANDBOX": "off",  # agents write their ledger outside of their clones
            "STEROIDS_STUCK": "60", "STEROIDS_IDLE": "3", "PYTHONUNBUFFERED": "1",
            "STEROIDS_HOST_NAME": "chaos",
            "PORT": str(lasting_port()),
        }  # fmt: skip
        self.ledger_folder = folder / "ledger"
        self.batches: list[Batch] = []
        self.supervisor: subprocess.Popen[bytes] | None = None
        self.is_kept = False
        self.killed: set[int] = set()  # supervisors that were meant to end
        self.remarks: list[str] = []  # findings that were noticed on the way
        self.said: list[tuple[str, str]] = []  # the person's own acknowledged writes: kind and what
        self.over = threading.Event()
        self._steward: subprocess.Popen[bytes] | None = None
        self.wires = Wires() if on_servers else None
        self.redis = Redis(folder) if on_servers else None
        if on_servers:
            import psycopg

            self.errors = (psycopg.Error,)  # type: ignore[assignment]
        clock = self._clock() if has_clock else {}
        self.environment |= clock
        self.postgres = Postgres(folder, os.environ | clock) if on_servers else None

    # --- Beginning and end ------------------------------------------------------------------------------

    def set_up(self, empty: str | None) -> None:
        """Set up servers, remote and rows, and start everything.

        `empty` is a file with a migrated database of SQLite; without it, the site migrates its own.
        """
        self.ledger_folder.mkdir()
        if empty and not self.on_servers:
            self.begin_with(Path(empty))
        else:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.remote = bare_remote(self.folder, {"work/README.md": "What is done.\n"})
        for hook, word in (("pre-receive", "before"), ("post-receive", "after")):
            self._hook(hook, word)
        if self.postgres and self.redis and self.wires:
            self.redis.start()
            self.postgres.make()
            self.postgres.start()
            with self.connected("postgres") as admin:
                admin.execute("CREATE DATABASE chaos")
            self.environment |= {
                "DATABASE_URL": self.postgres.url("chaos", self.wires.lead_to(self.postgres.port)),
                "REDIS_URL": f"redis://127.0.0.1:{self.wires.lead_to(self.redis.port)}/0",
            }
        if not (self.home / "steroids.sqlite3").exists():
            self._asked("migrate", "--verbosity", "0")
        words = ROWS.format(
            python=sys.executable, agent=str(AGENT), folder=str(self.ledger_folder), remote=str(self.remote),
            secret=SECRET,
        )  # fmt: skip
        (self.folder / "token").write_text(self._asked("shell", "--no-imports", "-c", words).split()[-1])
        self.begun_at = self.head()
        self.start()
        self.wait_until_whole()
        for work in (self._keep, self._rule, self._comment):
            threading.Thread(target=self._over_and_over, args=(work,), daemon=True).start()

    def _hook(self, name: str, word: str) -> None:
        """Make the remote wait before or after it takes a push, while a file exists."""
        hook = self.remote / "hooks" / name
        hold, there = (self.folder / f"{prefix}-{word}" for prefix in ("hold", "at"))
        hook.write_text(f"#!/bin/sh\nwhile [ -e {hold} ]; do : > {there}; sleep 0.02; done\nexit 0\n")
        hook.chmod(0o755)

    def _asked(self, *words: str) -> str:
        done = self.manage(*words)
        if done.returncode:
            raise RuntimeError(f"manage.py {words[0]}: {done.stderr[-2000:]}")
        return done.stdout

    def steward(self, *words: str) -> Any:
        """Return Django's answer to these words: a command with its arguments, or `doctor` and its checks."""
        if self._steward is None or self._steward.poll() is not None:
            argv = [sys.executable, "manage.py", "shell", "--no-imports", "-c", STEWARD]
            with (self.folder / "steward.log").open("ab") as log:
                self._steward = subprocess.Popen(
                    argv, cwd=ROOT, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=log, start_new_session=True,
                )  # fmt: skip
        one = self._steward
        assert one.stdin
        assert one.stdout
        one.stdin.write((json.dumps(words) + "\n").encode())
        one.stdin.flush()
        if not (said := one.stdout.readline()):
            raise RuntimeError((self.folder / "steward.log").read_text()[-2000:])
        return json.loads(said)

    def start(self) -> None:
        self.supervisor = self.begin("run_orchestrator", "--quiet")
        self.is_kept = True

    def end(self) -> list[str]:
        """End the program with Ctrl+C; return what was wrong with how it ended."""
        self.over.set()
        if self._steward:
            self._steward.kill()
            self._steward.wait()
        found: list[str] = []
        self.is_kept = False
        if self.supervisor and self.supervisor.poll() is None:
            began = time.monotonic()
            self.supervisor.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.supervisor.wait(15)
            took = time.monotonic() - began
            if took > 10:
                found.append(f"Ctrl+C took {took:.1f} s, more than 10.")
        left = wait_for_none(self.processes, 3)
        found += [f"A process is left at the end: {words_of(who)}" for who in left]
        return found

    def clear_away(self) -> None:
        """End all processes, whatever happened."""
        self.over.set()
        self.is_kept = False
        if self.supervisor and self.supervisor.poll() is None:
            self.supervisor.kill()
        for name in ("hold-before", "hold-after"):
            (self.folder / name).unlink(missing_ok=True)
        self.end_everything()
        for _, who in processes.of_runs(self.home / "runs"):
            processes.end_all([who], 0.1)
        for server in (self.redis, self.postgres):
            if server:
                server.stop()

    def _over_and_over(self, work: Callable[[], None]) -> None:
        while not self.over.wait(TURN):
            try:
                work()
            except (OSError, HTTPException, TimeoutError, *self.errors):
                continue

    def _keep(self) -> None:
        """Start the supervisor again a moment after it ended, as systemd would."""
        one = self.supervisor
        if not self.is_kept or one is None or one.poll() is None:
            return
        if one.pid not in self.killed:
            self.remarks.append(f"run_orchestrator ended by itself with {one.returncode}.")
        self.over.wait(RESTART)
        if self.is_kept:
            self.start()

    # --- The clock --------------------------------------------------------------------------------------

    def _clock(self) -> dict[str, str]:
        """Return the variables that give every server here a clock that can be set.

        Monotonic clocks are not affected.
        """
        library, self.clock_file = self.folder / "clock.so", self.folder / "clock"
        words = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(CLOCK), "-ldl"]
        subprocess.run(words, check=True)
        self.clock_file.write_bytes(struct.pack("q", 0))
        for file in (library, self.clock_file):
            file.chmod(0o644)
        return {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(self.clock_file)}

    def step_clock(self, seconds: int) -> None:
        """Step the clock of the program and its database; agents and git keep the machine's clock."""
        with self.clock_file.open("r+b") as file:
            (offset,) = struct.unpack("q", file.read())
            file.seek(0)
            file.write(struct.pack("q", offset + seconds))

    # --- Rows -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def connected(self, database: str = "chaos") -> Iterator[Any]:
        """Connect to the database directly, past every wire that may be cut."""
        if self.postgres:
            import psycopg

            url = self.postgres.url(database, self.postgres.port)
            with psycopg.connect(url, autocommit=True, connect_timeout=2) as rows:
                yield rows
            return
        file = f"file:{self.home / 'steroids.sqlite3'}?mode=ro"
        with contextlib.closing(sqlite3.connect(file, uri=True, timeout=SILENCE)) as rows:
            yield rows

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connected() as database:
            return list(database.execute(query).fetchall())

    def numbers(self, query: str) -> list[int]:
        return [number for (number,) in self.rows(query)]

    def ledger(self) -> list[dict[str, Any]]:
        """Return what agents noted: what was acknowledged to them, and what went wrong."""
        file = self.ledger_folder / "ledger"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def head(self) -> str:
        return git(self.remote, "rev-parse", "main")

    # --- Work -------------------------------------------------------------------------------------------

    def give(self, size: int) -> Batch:
        """Give the project a batch of so many tasks, of each kind by turns."""
        number = len(self.batches) + 1
        kinds = list(PLAN)
        titles = [f"{kinds[place % len(kinds)]} {number}.{place + 1}" for place in range(size)]
        batch = Batch(f"Batch {number}", titles)
        file = self.folder / "TODO.md"
        file.write_text("\n".join([f"# small\n\n## {batch.name}\n", *(f"- [ ] {one}\n" for one in titles)]))
        self.steward("import_todo", str(file), "--project", "small")
        batch.begun = time.monotonic()
        self.batches.append(batch)
        return batch

    def refs_of(self, batch: Batch) -> dict[str, str]:
        """Return the refs of the batch's tasks, and their titles."""
        rows = self.rows("SELECT number, title FROM tasks_task ORDER BY number")
        return {f"small-{number}": title for number, title in rows if title in batch.titles}

    def handed_in(self, batch: Batch) -> int:
        """Return how often something of the batch was handed in and acknowledged."""
        refs = self.refs_of(batch)
        return sum(
            one["task"] in refs for one in self.ledger() if one["kind"] in {"submit", "approve", "reject"}
        )

    def is_idle(self) -> bool:
        """Whether everything that was given is done, and nothing is under way."""
        try:
            ((left,),) = self.rows(
                "SELECT (SELECT count(*) FROM tasks_task WHERE landed_at IS NULL)"
                " + (SELECT count(*) FROM agents_run WHERE status <> 'ended')"
                " + (SELECT count(*) FROM tasks_landing WHERE status IN ('queued', 'checking', 'pushing'))"
            )
        except self.errors:
            return False
        return bool(left == 0)

    # --- People -----------------------------------------------------------------------------------------

    def url(self) -> str:
        """Return the URL of the pages. Raises OSError."""
        return (self.home / "host" / "web.url").read_text().strip()

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Send what a person's program sends: the same request with the same key until it is answered."""
        key, deadline = uuid.uuid4().hex, time.monotonic() + ANSWERED_WITHIN
        while True:
            with contextlib.suppress(OSError, HTTPException):
                status, reply = self.ask("POST", path, body, key)
                if status not in {502, 503, 504} and reply.get("code") != "in_flight":
                    return status, reply
            if time.monotonic() > deadline or self.over.wait(0.3):
                raise TimeoutError(path)

    def ask(
        self, method: str, path: str, body: Any = None, key: str = "", token: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """Send one request to the API. Raises OSError and HTTPException."""
        parts = urlsplit(self.url())
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        token = token or (self.folder / "token").read_text()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        try:
            connection.request(method, f"/api/v1{path}", json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        with contextlib.suppress(ValueError):
            return answer.status, json.loads(said)
        return answer.status, {}

    def _rule(self) -> None:
        """Settle each disagreement in Ann's name, as the task's title says."""
        waiting = self.rows(
            "SELECT d.id, t.title FROM disputes_conflict c JOIN disputes_dispute d ON d.id = c.dispute_id"
            " JOIN tasks_task t ON t.id = d.task_id WHERE c.status = 'open' AND c.kind = 'disagreement'"
        )
        for number, title in waiting:
            decision = "reviewer" if title.startswith("Ruled") else "coder"
            body = {"decision": decision, "notes": "Settled."}
            status, reply = self.post(f"/disputes/D-{number}/resolve/", body)
            if status < 300:
                self.said.append(("ruling", str(number)))
            elif status >= 500:
                self.remarks.append(f"The ruling on D-{number} was answered with {status}: {reply}")

    def _comment(self) -> None:
        """Comment in Ann's name on the newest task."""
        if not self.batches or self.over.wait(0.8):
            return
        number = self.numbers("SELECT max(number) FROM tasks_task")[0]
        body = f"Comment {uuid.uuid4().hex}"
        status, reply = self.post(f"/tasks/small-{number}/comment/", {"body": body})
        if status < 300:
            self.said.append(("comment", body))
        else:
            self.remarks.append(f"A comment was answered with {status}: {reply}")

    # --- Processes --------------------------------------------------------------------------------------

    def all_at_once(self) -> list[processes.Identity]:
        """Return all processes of the program: servers, shims and agents."""
        steward = self._steward.pid if self._steward else 0
        servers = [who for who in self.processes() if who.pid != steward]
        return [*servers, *(who for _, who in processes.of_runs(self.home / "runs"))]

    def top_of(self, name: str) -> list[processes.Identity]:
        """Return the process of this server that the supervisor forked."""
        there = self.server(name)
        pids = {who.pid for who in there}
        return [who for who in there if parent_of(who.pid) not in pids]

    def below(self, these: list[processes.Identity], name: str) -> list[processes.Identity]:
        parents = {who.pid for who in these}
        return [who for who in self.server(name) if parent_of(who.pid) in parents]

    def live_runs(self, role: str = "") -> list[int]:
        wanted = f" AND role = '{role}'" if role else " AND role <> 'verifier'"
        return self.numbers(f"SELECT id FROM agents_run WHERE status = 'running'{wanted} ORDER BY id")

    def shims(self) -> list[processes.Identity]:
        """Return the shims that hold a coder or a reviewer who has begun."""
        begun = {one["run"] for one in self.ledger() if one["kind"] == "begun"}
        runs = [pk for pk in self.live_runs() if pk in begun]
        found = [processes.read_identity(self.home / "runs" / str(pk) / "pid") for pk in runs]
        return [who for who in found if who and processes.is_alive(who)]

    def agents(self) -> list[processes.Identity]:
        """Return the coders and reviewers at work."""
        return [
            who for _, who in processes.of_runs(self.home / "runs")
            if str(AGENT) in words_of(who) and processes.is_alive(who)
        ]  # fmt: skip

    def pushes(self) -> list[processes.Identity]:
        """Return the git processes that push to the remote."""
        return self._gits(b"push", str(self.remote).encode())

    def receivers(self) -> list[processes.Identity]:
        """Return the git processes that take a push at the remote."""
        return self._gits(b"receive-pack", str(self.remote).encode())

    def _gits(self, *wanted: bytes) -> list[processes.Identity]:
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else [b""]
                is_git = words[0].endswith((b"git", b"git-receive-pack"))
                if is_git and all(any(one in word for word in words) for one in wanted):
                    found.append(processes.identity(int(entry.name)))
        return found

    def is_whole(self) -> bool:
        """Whether every server is running and answers."""
        try:
            here = api_server.answers(self.url())
        except OSError:
            return False
        return here and len(self.server("cluster")) >= CLUSTER and len(self.server("web")) >= WEB

    def wait_until_whole(self, seconds: float = 60.0) -> None:
        wait_until(self.is_whole, "the servers", seconds)


CLUSTER, WEB = 6, 3  # processes: main, sentinel, two workers, monitor and pusher; one above two workers


def parent_of(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return 0


def words_of(who: processes.Identity) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{who.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def wait_for_none(find: Callable[[], list[processes.Identity]], seconds: float) -> list[processes.Identity]:
    """Return what is still found after so many seconds."""
    deadline = time.monotonic() + seconds
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found

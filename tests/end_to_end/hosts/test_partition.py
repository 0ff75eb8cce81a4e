"""Two hosts in networks of their own: one is cut off for a while, the other then loses power for good."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.hosts import processes
from bench.chaos.servers import Postgres, Redis
from tests.end_to_end.installation import PATIENCE, Installation, wait_for
from tests.end_to_end.loop import APPROVER, bare_remote, git, script
from tests.end_to_end.network import HUB, Network, network, why_not

pytestmark = pytest.mark.slow

GIT_PORT = 9418
# Waits until the test lets it go on, and writes down what was acknowledged to it and whether it was alone.
CODER = """
    import fcntl, json, os, pathlib, subprocess, sys, time
    folder = pathlib.Path({folder!r})
    ref = json.loads(pathlib.Path(os.environ["STEROIDS_CONTEXT"]).read_text())["task"]
    seat = (folder / f"{{ref}}.seat").open("w")
    try:
        fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        (folder / f"{{ref}}.twice").touch()
    while not (folder / f"{{ref}}.go").exists():
        time.sleep(0.1)
    pathlib.Path(f"{{ref}}.txt").write_text(f"{{ref}}\\n")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", ref], check=True)
    sha = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    done = subprocess.run(["steroids", "tasks", "update", "--status", "review"])
    if done.returncode == 0:
        with (folder / "acknowledged").open("a") as ledger:
            ledger.write(sha)
    sys.exit(done.returncode)
"""
PROJECT = """
from tests.end_to_end.loop import command_agent, small_project
command_agent("coder", {coder!r}), command_agent("reviewer", {reviewer!r})
small_project({remote!r}).__class__.objects.update(max_parallel=8)
"""
TASKS = """
from tasks.models import Project
from tests.end_to_end.loop import task_in
for _ in range(4): task_in(Project.objects.get())
"""
# As a host does that loses power in the middle of a tick.
HOLDER = """
import pathlib, time
from django.db import transaction
from tasks.database.locking import locked
from tasks.models import Project
with transaction.atomic():
    locked(Project.objects).get()
    pathlib.Path({mark!r}).touch()
    time.sleep(600)
"""
QUICK = {"LEASE": 6.0, "ABANDON": 8.0, "ORPHAN": 4.0, "API_SERVER_IDLE": 20.0, "GIT_NETWORK": 10.0}  # seconds


class OneOfTwo(Installation):
    """A host with a data folder and a name of its own; the rows are everybody's."""

    def __init__(self, home: Path, name: str, rows: Any, **environment: str) -> None:
        super().__init__(home)
        scale = float(self.environment["STEROIDS_TIME_SCALE"])
        quick = {f"STEROIDS_{word}": f"{seconds / scale:g}" for word, seconds in QUICK.items()}
        self.environment |= quick | {"STEROIDS_HOST_NAME": name, **environment}
        self.connection = rows

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(query, values).fetchall())

    def die(self) -> None:
        """The machine is gone: everything on it at once."""
        shims = [processes.read_identity(path) for path in (self.home / "runs").glob("*/pid")]
        agents = [who for path in (self.home / "runs").glob("*") for who in processes.working_in(path)]
        processes.signal_all([*self.processes(), *filter(None, shims), *agents], signal.SIGKILL)


class Scene:
    """Both hosts, what they share, and where their coders are told to go on."""

    def __init__(self, folder: Path, net: Network, postgres: Postgres, redis: Redis, rows: Any) -> None:
        self.folder, self.net = folder, net
        self.remote = bare_remote(folder, {"README.md": "Small\n"})
        self.coder = script(folder, "coder", CODER.format(folder=str(folder)))
        self.reviewer = script(folder, "reviewer", APPROVER)
        shared = {
            "DATABASE_URL": postgres.url("hosts", postgres.port),
            "REDIS_URL": f"redis://{HUB}:{redis.port}/0",
            "STEROIDS_GIT_PROTOCOLS": "git,file",
            "STEROIDS_HOST_SLOTS": "2",
            "STEROIDS_SANDBOX": "off",  # its coders write down outside of their clones what they were told
        }
        self.east, self.west, self.twin = (
            OneOfTwo(folder / home, name, rows, **shared)
            for home, name in (("east", "east"), ("west", "west"), ("twin", "east"))
        )
        for host in (self.east, self.west, self.twin):
            host.within = net.within(host.environment["STEROIDS_HOST_NAME"])

    def ask(self, words: str) -> None:
        """Django does this, at the host that is never cut off first."""
        made = self.east.manage("shell", "--no-imports", "-c", words)
        assert made.returncode == 0, made.stderr

    def coding(self) -> dict[str, list[str]]:
        """The tasks whose coders work now, by host."""
        found: dict[str, list[str]] = {}
        for host, number in self.east.rows(
            "SELECT h.name, t.number FROM agents_run r JOIN agents_host h ON h.id = r.host_id "
            "JOIN tasks_task t ON t.id = r.task_id WHERE r.role = 'coder' AND r.status = 'running' ORDER BY 2"
        ):
            found.setdefault(host, []).append(f"small-{number}")
        return found

    def runs(self, host: str, outcome: str) -> set[str]:
        """The tasks whose coders ended so on that host."""
        found = self.east.rows(
            "SELECT t.number FROM agents_run r JOIN agents_host h ON h.id = r.host_id "
            "JOIN tasks_task t ON t.id = r.task_id WHERE r.role = 'coder' AND h.name = %s AND outcome = %s",
            host, outcome,
        )  # fmt: skip
        return {f"small-{number}" for (number,) in found}

    def both_are_full(self) -> dict[str, list[str]]:
        """The tasks at each host, once both have as many as they may."""

        def full() -> dict[str, list[str]] | None:
            there = self.coding()
            return there if [len(there.get(host, ())) for host in ("east", "west")] == [2, 2] else None

        return dict(wait_for(full, "two coders on each host"))

    def go(self, *refs: str) -> None:
        for ref in refs:
            (self.folder / f"{ref}.go").touch()

    def wait_for_landed(self, count: int) -> None:
        landed = "SELECT count(*) FROM tasks_task WHERE landed_sha <> ''"
        wait_for(lambda: self.east.value(landed) == count, f"{count} landed tasks")

    def lose_power(self, host: OneOfTwo) -> None:
        """The machine is gone in the middle of a transaction, and nothing that it had says goodbye."""
        mark = self.folder / "held"
        host.begin("shell", "--no-imports", "-c", HOLDER.format(mark=str(mark)))
        wait_for(mark.exists, "a transaction")
        self.net.cut(host.home.name)
        host.die()

    def check(self) -> None:
        """Everything landed once, nothing acknowledged is lost, and nobody worked beside another."""
        there = git(self.remote, "log", "--format=%s", "main").splitlines()
        refs = {f"small-{number}" for (number,) in self.east.rows("SELECT number FROM tasks_task")}
        assert Counter(there) == Counter(refs | {"As it stands"})
        assert [path.name for path in self.folder.glob("*.twice")] == []
        told = (self.folder / "acknowledged").read_text().split()
        kept = [sha for (sha,) in self.east.rows("SELECT sha FROM tasks_submission")]
        assert set(told) - set(kept) == set()
        assert max(Counter(kept).values()) == 1
        twice = (
            "SELECT task_id FROM tasks_landing WHERE status = 'landed' GROUP BY task_id HAVING count(*) > 1"
        )
        assert self.east.rows(twice) == []
        counted = "SELECT role, outcome, reason FROM agents_run WHERE is_counted AND outcome <> 'handed_in'"
        assert self.east.rows(counted) == []  # no fault of the network is one of an agent


@contextmanager
def git_daemon(folder: Path, net: Network) -> Iterator[None]:
    """Who serves the remote at the hub, for fetches and pushes."""
    exec_path = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True)
    argv = [
        f"{exec_path.stdout.strip()}/git-daemon", f"--base-path={folder}", "--export-all", "--reuseaddr",
        "--enable=receive-pack", f"--listen={HUB}", f"--port={GIT_PORT}",
    ]  # fmt: skip
    with (folder / "git.log").open("ab") as output:
        server = subprocess.Popen([*net.within("hub"), *argv], stdout=output, stderr=output)
    try:
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE)


@contextmanager
def scene() -> Iterator[Scene]:
    """Servers at the hub and two hosts that are not started yet; at the end nothing of it is left."""
    import psycopg

    folder = Path(tempfile.mkdtemp(prefix="steroids-net-"))
    folder.chmod(0o755)  # the database's own user lives in it
    try:
        with network(["east", "west"]) as net:
            postgres = Postgres(folder, dict(os.environ), HUB, net.within("hub"))
            redis = Redis(folder, HUB, net.within("hub"))
            made: Scene | None = None
            try:
                redis.start()
                postgres.make()
                postgres.start()
                with psycopg.connect(postgres.socket_url("postgres"), autocommit=True) as admin:
                    admin.execute("CREATE DATABASE hosts")
                with (
                    psycopg.connect(postgres.socket_url("hosts"), autocommit=True) as rows,
                    git_daemon(folder, net),
                ):
                    made = Scene(folder, net, postgres, redis, rows)
                    try:
                        yield made
                    finally:
                        for host in (made.east, made.west, made.twin):
                            host.die()
            finally:
                redis.stop()
                postgres.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server")
@pytest.mark.skipif(Postgres.programs() is None, reason="there is no PostgreSQL server")
def test_work_goes_on_through_a_partition_and_the_loss_of_a_host() -> None:
    if why := why_not():
        pytest.skip(why)
    with scene() as about:
        east, west = about.east, about.west
        migrated = east.manage("migrate", "--verbosity", "0")
        assert migrated.returncode == 0, migrated.stderr
        remote = f"git://{HUB}:{GIT_PORT}/remote.git"
        words = {"coder": str(about.coder), "reviewer": str(about.reviewer), "remote": remote}
        about.ask(PROJECT.format(**words) + TASKS)
        resident = [host.begin("run_orchestrator", "--no-web", "--quiet") for host in (east, west)]
        there = about.both_are_full()
        refused = about.twin.manage("run_orchestrator", "--no-web")
        assert refused.returncode == 1
        assert f"The host name east belongs to {os.uname().nodename}:{east.home}" in refused.stderr
        about.go(there["east"][0], there["west"][0])
        about.wait_for_landed(2)  # one from each

        about.net.cut("east")
        about.go(there["east"][1], there["west"][1])
        about.wait_for_landed(4)
        about.net.mend("east")

        about.ask(TASKS)
        there = about.both_are_full()
        assert resident[0].poll() is None, east.log()
        about.lose_power(west)
        about.go(*there["east"], *there["west"])
        about.wait_for_landed(8)
        about.check()
        assert set(there["west"]) <= about.runs("west", "lost")
        assert set(there["west"]) <= about.runs("east", "handed_in")
        assert east.manage("host", "remove", "west").stdout.startswith("west is removed;")
        resident[0].send_signal(signal.SIGINT)
        assert resident[0].wait(PATIENCE) == 0, east.log()

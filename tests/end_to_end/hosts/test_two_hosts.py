"""Two hosts on one PostgreSQL and one Redis: one is killed for good, and its work goes on at the other."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agents.hosts import api_server, processes
from tests.end_to_end.hosts.test_redis import redis
from tests.end_to_end.installation import PATIENCE, Installation, wait_for
from tests.end_to_end.loop import APPROVER, bare_remote, git, script

pytestmark = pytest.mark.slow

# Sleeps as long as it likes the first time, and does the work the second.
CODER = """
    import pathlib, subprocess, sys, time
    mark = pathlib.Path({mark!r})
    if not mark.exists():
        mark.touch()
        time.sleep(600)
    pathlib.Path("hello.txt").write_text("hello\\n")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "feat: say hello"], check=True)
    sys.exit(subprocess.run(["steroids", "tasks", "update", "--status", "review"]).returncode)
"""
ROWS = """
from tests.end_to_end.loop import command_agent, small_project, task_in
command_agent("coder", {coder!r}), command_agent("reviewer", {reviewer!r})
task_in(small_project({remote!r}))
"""
QUICK = {"LEASE": 6.0, "ABANDON": 8.0, "ORPHAN": 4.0, "API_SERVER_IDLE": 20.0}  # seconds


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


@contextmanager
def database(url: str) -> Iterator[tuple[str, Any]]:
    """A database of its own on that server: its address, and a connection."""
    import psycopg

    name, parts = f"hosts_{os.getpid()}", urlsplit(url)
    server = parse_qs(parts.query).get("host", [parts.hostname])[0]
    about = {"host": server, "port": parts.port, "user": parts.username, "password": parts.password}
    with psycopg.connect(**about, dbname="postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            with psycopg.connect(**about, dbname=name, autocommit=True) as rows:
                yield parts._replace(path=f"/{name}").geturl(), rows
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server")
def test_the_work_of_a_host_that_is_killed_for_good_goes_on_at_the_other(tmp_path: Path) -> None:
    url = os.environ.get("TEST_POSTGRES_URL")
    if not url:
        pytest.skip("TEST_POSTGRES_URL names no PostgreSQL server")
    port, remote = api_server.free_port(), bare_remote(tmp_path, {"README.md": "Small\n"})
    mark = tmp_path / "begun"
    coder = script(tmp_path, "coder", CODER.format(mark=str(mark)))
    reviewer = script(tmp_path, "reviewer", APPROVER)
    with redis(tmp_path, port), database(url) as (address, rows):
        shared = {"DATABASE_URL": address, "REDIS_URL": f"redis://127.0.0.1:{port}/0"}
        shared["STEROIDS_SANDBOX"] = "off"  # its coder leaves a mark for the next one outside of its clone
        east, west, twin = (
            OneOfTwo(tmp_path / home, name, rows, **shared)
            for home, name in (("east", "east"), ("west", "west"), ("twin", "east"))
        )
        try:
            assert east.manage("migrate", "--verbosity", "0").returncode == 0
            words = ROWS.format(coder=str(coder), reviewer=str(reviewer), remote=str(remote))
            made = east.manage("shell", "--no-imports", "-c", words)
            assert made.returncode == 0, made.stderr
            east.begin("run_orchestrator", "--no-web", "--quiet")
            wait_for(mark.exists, "a coder on east")
            refused = twin.manage("run_orchestrator", "--no-web")
            assert refused.returncode == 1
            assert f"The host name east belongs to {os.uname().nodename}:{east.home}" in refused.stderr
            east.die()
            begun = west.begin("run_orchestrator", "--no-web", "--quiet")
            landed = "SELECT landed_sha FROM tasks_task WHERE landed_sha <> ''"
            sha = wait_for(lambda: west.value(landed), "a landing from west")
            assert sha == git(remote, "rev-parse", "main")
            assert git(remote, "rev-list", "--count", "main") == "2"
            ran = west.rows(
                "SELECT role, outcome, h.name FROM agents_run r JOIN agents_host h ON h.id = host_id "
                "ORDER BY r.id"
            )
            assert ran[0] == ("coder", "lost", "east")
            assert {(role, host) for role, outcome, host in ran if outcome == "handed_in"} == {
                ("coder", "west"), ("reviewer", "west"),
            }  # fmt: skip
            assert west.manage("host", "remove", "east").stdout.startswith("east is removed;")
            begun.send_signal(signal.SIGINT)
            assert begun.wait(PATIENCE) == 0, west.log()
        finally:
            for each in (east, west, twin):
                each.die()

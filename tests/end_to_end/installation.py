"""A whole installation in a folder of its own, driven from outside as a person drives it."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.hosts import api_server, processes, supervisor
from tests.durations import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240.0  # seconds, for what must come about on a loaded machine
SECRET = "only-for-tests-" + "y" * 40
CLI = [sys.executable, "-I", "-S", str(ROOT / "agents" / "cli.py")]


class Installation:
    """One data folder with everything in it."""

    errors = (sqlite3.OperationalError,)
    within: tuple[str, ...] = ()  # the words that put its processes into another network

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = kept | {
            "STEROIDS_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "tests.end_to_end.settings",
            "SECRET_KEY": SECRET,
            **ENVIRONMENT,
            "STEROIDS_RUN_RATE": "10000/min",
            "LOG_LEVEL": "WARNING",
        }

    def begin_with(self, database: Path) -> None:
        """The data folder, with a copy of this database in it."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(database, self.home / "steroids.sqlite3")

    def copy(self, home: Path) -> "Installation":
        """The same rows, repositories and mirrors in another folder."""
        shutil.copytree(self.home, home, ignore=shutil.ignore_patterns("runs", "host", "cache", "log"))
        other = Installation(home)
        with other.database() as rows:
            rows.execute(
                "UPDATE tasks_project SET repo_url = replace(repo_url, ?, ?)", (str(self.home), str(home))
            )
        return other

    def manage(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """`manage.py WORDS`, to its end."""
        options = {"timeout": PATIENCE, "check": False} | more
        return subprocess.run(
            [*self.within, sys.executable, "manage.py", *words], cwd=ROOT, env=self.environment,
            capture_output=True, text=True, **options,
        )  # fmt: skip

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """`manage.py WORDS` in the background, in a session of its own."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "begun.log").open("ab") as output:
            return subprocess.Popen(
                [*self.within, sys.executable, "manage.py", *words], cwd=ROOT, env=self.environment,
                stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def until_idle(self, *more: str) -> str:
        """Run the orchestrator until nothing is left to do; the report that it printed."""
        done = self.manage("run_orchestrator", "--until-idle", "--quiet", *more)
        assert done.returncode == 0, done.stdout + done.stderr + self.log()
        return done.stdout

    def log(self) -> str:
        files = [self.home / "begun.log", *sorted((self.home / "log").glob("*.log"))]
        return "\n".join(f"--- {file.name}\n{file.read_text()[-3000:]}" for file in files if file.exists())

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.home / "steroids.sqlite3", timeout=PATIENCE)
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.database() as database:
            return database.execute(query, values).fetchall()

    def value(self, query: str, *values: Any) -> Any:
        found = self.rows(query, *values)
        return found[0][0] if found else None

    def statuses(self) -> dict[str, str]:
        """Task titles and their statuses."""
        return dict(self.rows("SELECT title, status FROM tasks_task"))

    def git(self, *words: str) -> str:
        """A question to the bare remote."""
        done = subprocess.run(
            ["git", "-C", str(self.home / "demo" / "remote.git"), *words],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    @contextmanager
    def running(self) -> Iterator[str]:
        """All of it, from the start to the end; the address."""
        begun = self.begin("run_orchestrator")
        told = self.home / "host" / "web.url"
        yield wait_for(lambda: told.exists() and told.read_text(), "the web server")
        begun.terminate()
        assert begun.wait(PATIENCE) == 0, self.log()

    def mint_token(self) -> None:
        """A personal token of the admin, for `steroids` here and in copies."""
        made = self.manage(
            "shell", "--no-imports", "-c",
            "from django.contrib.auth.models import User; from tests.factories import create_token; "
            "print(create_token(User.objects.get(username='admin'), 'tests')[1])",
        )  # fmt: skip
        (self.home / "token").write_text(re.search(r"stx_\S+", made.stdout)[0])  # type: ignore[index]

    @contextmanager
    def web(self) -> Iterator[str]:
        """The web server alone; its address."""
        port = api_server.free_port()
        argv = api_server.gunicorn_argv(port, workers=1)
        with (self.home / "web.log").open("ab") as output:
            server = subprocess.Popen(argv, cwd=ROOT, env=self.environment, stdout=output, stderr=output)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(lambda: api_server.answers(url), "the web server")
            yield url
        finally:
            server.terminate()
            server.wait(PATIENCE)

    def steroids(self, url: str, *words: str) -> subprocess.CompletedProcess[str]:
        """The command, as a person uses it."""
        token = self.home / "token"
        environment = {"PATH": os.environ["PATH"], "STEROIDS_URL": url, "STEROIDS_TOKEN_FILE": str(token)}
        return subprocess.run([*CLI, *words], env=environment, capture_output=True, text=True, check=False)

    def server(self, name: str) -> list[processes.Identity]:
        """All processes of the loop, of the cluster or of the web server."""
        return supervisor.servers_of(self.home, name)

    def processes(self) -> list[processes.Identity]:
        """Every process that belongs to this installation."""
        return processes.marked("STEROIDS_HOME", str(self.home))

    def end_everything(self) -> None:
        """After a test: servers, shims and agents, by pid."""
        shims = [processes.read_identity(path) for path in (self.home / "runs").glob("*/pid")]
        processes.end_all([who for who in shims if who], 0.5)
        processes.end_all(self.processes(), 1.0)


def wait_for(fact: Callable[[], Any], what: str) -> Any:
    """Until the fact is true; fails with a sentence where it never is."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := fact():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come about within {PATIENCE:g} s")


def kill(who: processes.Identity) -> None:
    """SIGKILL, to that very process."""
    processes.signal_all([who], signal.SIGKILL)

"""For benchmarks: an installation in a folder of its own, with projects and agents that are small scripts."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.loop import ROOT, folder, remote_in

TICKS = os.sysconf("SC_CLK_TCK")
SERVERS = ("DATABASE_URL", "REDIS_URL")


@contextmanager
def django_here(**environment: str) -> Iterator[None]:
    """Run Django in this process, on a data folder of its own with empty tables. Works once per process."""
    with tempfile.TemporaryDirectory(prefix="steroids-bench-") as home:
        os.environ |= {"STEROIDS_HOME": home, "SECRET_KEY": "x" * 50, **environment}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "steroidsweb.settings")
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield


class Installation:
    """A data folder, its database, and its processes.

    The database is SQLite in the data folder, unless DATABASE_URL names an empty one; REDIS_URL is passed on.
    """

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.data = home / "data"
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "SECRET_KEY": "x" * 50,
            "STEROIDS_HOME": str(self.data), "STEROIDS_SANDBOX": "off", "STEROIDS_RUN_RATE": "100000/min",
            "LOG_LEVEL": "ERROR", "STEROIDS_LOG_LEVEL": "ERROR",
            **{name: os.environ[name] for name in SERVERS if name in os.environ}, **environment,
        }  # fmt: skip

    def manage(self, *words: str) -> None:
        """Run a command of manage.py to its end. Raises CalledProcessError."""
        subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=self.environment, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def fill(self, script: str) -> None:
        """Create the tables, and run the script in the shell of manage.py."""
        self.manage("migrate", "--verbosity", "0")
        self.manage("shell", "--no-imports", "-c", script)

    @contextmanager
    def running(self, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the resident process with its servers, and stop it at the end of the block."""
        process = subprocess.Popen(
            [sys.executable, "manage.py", "run_orchestrator", "--quiet", *words], cwd=ROOT,
            env=self.environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        """Return rows of the installation's database."""
        if address := self.environment.get("DATABASE_URL"):
            with psycopg.connect(address) as server:
                return server.execute(sql).fetchall()
        with sqlite3.connect(self.data / "steroids.sqlite3", timeout=30) as database:
            return database.execute(sql).fetchall()

    def wait_for(self, sql: str, wanted: int, seconds: float) -> None:
        """Wait until the query counts so many. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while (found := self.ask(sql)[0][0]) != wanted:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{found} of {wanted} after {seconds:.0f} s: {sql}")
            time.sleep(0.5)

    def script(self, name: str, text: str) -> Path:
        """Write an agent's script as an executable file, and return its path."""
        path = self.home / "agents" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o700)
        return path

    def processes(self) -> list[int]:
        """Return all processes started with the data folder or working in it, including agents and shims.

        The process that forks the shims does not name the folder, but it is a child of the loop.
        """
        mark = f"{self.home}/".encode()
        found: list[int] = []
        parents: dict[int, int] = {}
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    words = [Path(entry.path, name).read_bytes() for name in ("environ", "cmdline")]
                    words.append(os.fsencode(Path(entry.path, "cwd").readlink()) + b"/")
                    stat = Path(entry.path, "stat").read_text()
                except OSError:
                    continue
                parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
                found += [int(entry.name)] if mark in b"".join(words) else []
        return found + [pid for pid, parent in parents.items() if parent in found and pid not in found]


def processor_of(pids: list[int]) -> float:
    """Return the seconds of processor time that these processes have used since they began."""
    used = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        used += (int(fields[11]) + int(fields[12])) / TICKS
    return used


def memory_of(pids: list[int]) -> float:
    """Return the megabytes that these processes use; memory that several share counts once (PSS)."""
    kilobytes = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1024


@contextmanager
def installation(**environment: str) -> Iterator[Installation]:
    """Make a new installation with a remote repository beside it, removed afterwards."""
    with folder() as home:
        remote_in(home)
        yield Installation(home, **environment)

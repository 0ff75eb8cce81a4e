"""An installation in a folder of its own, with projects and agents that are small scripts, for benchmarks."""

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

from bench.loop import ROOT, folder, remote_in

TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def django_here(**environment: str) -> Iterator[None]:
    """Django in this process, on a data folder of its own with empty tables. Once in a process."""
    with tempfile.TemporaryDirectory(prefix="steroids-bench-") as home:
        os.environ |= {"STEROIDS_HOME": home, "SECRET_KEY": "x" * 50, **environment}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "steroidsweb.settings")
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield


class Installation:
    """A data folder, its database, and its processes."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.data = home / "data"
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "SECRET_KEY": "x" * 50,
            "STEROIDS_HOME": str(self.data), "STEROIDS_SANDBOX": "off", "STEROIDS_RUN_RATE": "100000/min",
            "LOG_LEVEL": "ERROR", "STEROIDS_LOG_LEVEL": "ERROR", **environment,
        }  # fmt: skip

    def manage(self, *words: str) -> None:
        """Run a command of manage.py to its end. Raises CalledProcessError."""
        subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=self.environment, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def fill(self, script: str) -> None:
        """Make the tables, and what the script does with them."""
        self.manage("migrate", "--verbosity", "0")
        self.manage("shell", "--no-imports", "-c", script)

    @contextmanager
    def running(self, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
        """The resident process with its servers, ended in order."""
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
        """Rows of its database."""
        with sqlite3.connect(self.data / "steroids.sqlite3", timeout=30) as database:
            return database.execute(sql).fetchall()

    def wait_for(self, sql: str, wanted: int, seconds: float) -> None:
        """Until the query counts so many. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while (found := self.ask(sql)[0][0]) != wanted:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{found} of {wanted} after {seconds:.0f} s: {sql}")
            time.sleep(0.5)

    def script(self, name: str, text: str) -> Path:
        """An agent: a file that may be run."""
        path = self.home / "agents" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o700)
        return path

    def processes(self) -> list[int]:
        """All processes that were started with its data folder or work in it, agents and shims included.

        What forks the shims names no folder; it is a child of the loop.
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
    """Seconds of processor that these processes took since they began."""
    used = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        used += (int(fields[11]) + int(fields[12])) / TICKS
    return used


def memory_of(pids: list[int]) -> float:
    """Megabytes that these processes hold; what several share counts once (PSS)."""
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
    """A new one with a remote repository beside it, removed afterwards."""
    with folder() as home:
        remote_in(home)
        yield Installation(home, **environment)

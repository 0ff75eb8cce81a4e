"""One fault after the other, and the table of what came of each."""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from bench.chaos.checker import Checker
from bench.chaos.faults import FAULTS, SERVERS, SQLITE, Fault, Scene, needs_compiler
from bench.chaos.servers import Postgres
from bench.chaos.site import Site

DISK = "512m"
WANTED = 2.0  # what a fault may cost besides the time that it lasts, in undisturbed batches


@dataclass
class Row:
    """What came of one fault, in seconds.

    `held` is how long the fault lasted, and `idle` is the time since the batch was given until all was done.
    """

    fault: str
    on: str
    hits: int = 0
    held: float = 0.0
    idle: float = 0.0
    whole: float = 0.0  # from the fault's end until every server was back
    times: float = 0.0
    findings: list[str] = field(default_factory=list)
    left_out: str = ""


def run(options: argparse.Namespace) -> int:
    """Run all chosen faults on all chosen databases; return 1 if anything was found, otherwise 0."""
    say(f"seed {options.seed}; again: make chaos SEED={options.seed}")
    begun, load = time.monotonic(), os.getloadavg()
    rows: list[Row] = []
    for on in (SQLITE, SERVERS):
        if options.on and (options.on == "sqlite") != (on == SQLITE):
            continue
        if on == SERVERS and (missing := missing_servers()):
            say(f"{SERVERS}: left out, {missing}.")
            continue
        rows += run_on(on, options, Random(f"{options.seed} {on}"))
    tell(rows)
    took = time.monotonic() - begun
    say(f"\nseed {options.seed}, {took:.0f} s, load {load[0]:.1f} at the beginning and "
        f"{os.getloadavg()[0]:.1f} at the end")  # fmt: skip
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))
    found = sum(len(row.findings) for row in rows)
    say(f"{found} findings.")
    return 1 if found else 0


def missing_servers() -> str:
    if shutil.which("redis-server") is None:
        return "redis-server is not installed"
    return "" if Postgres.programs() else "PostgreSQL is not installed"


@contextmanager
def folder_for(site_name: str, *, keep: bool) -> Iterator[Path]:
    """Make a folder that PostgreSQL's user may enter, whose `home` is a small disk if it can be mounted."""
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{site_name}-"))
    folder.chmod(0o711)
    home = folder / "home"
    home.mkdir(mode=0o700)
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "none", str(home)]
    is_mounted = os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield folder
    finally:
        if keep:
            say(f"Everything is left in {folder}.")
        else:
            if is_mounted:
                subprocess.run(["umount", "--lazy", str(home)], check=False)
            shutil.rmtree(folder, ignore_errors=True)


def run_on(on: str, options: argparse.Namespace, rng: Random) -> list[Row]:
    chosen = [fault for fault in FAULTS if on in fault.on and fault.name in (options.only or [fault.name])]
    rng.shuffle(chosen)
    has_clock = any(fault.why_not is needs_compiler and not needs_compiler() for fault in chosen)
    with folder_for("sqlite" if on == SQLITE else "servers", keep=options.keep) as folder:
        site = Site(folder, on_servers=on == SERVERS, has_clock=has_clock)
        try:
            site.set_up(options.empty)
            episodes = Episodes(site, on, options, rng)
            rows = [episodes.undisturbed()]
            rows += [episodes.one(fault) for fault in chosen]
            rows.append(Row("the end", on, findings=site.end()))
            if options.keep or any(row.findings for row in rows):
                say(site.log()[-4000:])
            return rows
        finally:
            site.clear_away()


class Episodes:
    """Batches of work in one installation, each with its fault."""

    def __init__(self, site: Site, on: str, options: argparse.Namespace, rng: Random) -> None:
        self.site, self.on, self.rng = site, on, rng
        self.size, self.patience = options.tasks, options.patience
        self.undisturbed_batches = options.undisturbed
        self.checker = Checker(site)
        self.usual = 30.0  # seconds that a batch takes, until it is measured

    def undisturbed(self) -> Row:
        row = Row("none", self.on)
        took = []
        for _ in range(self.undisturbed_batches):
            batch = self.site.give(self.size)
            took.append(self._until_idle(batch.begun, self.patience + self.usual))
            row.findings += self.checker.findings(batch, None)
        if took:
            row.idle = self.usual = median(took)
            row.times = 1.0
        self._say(row)
        return row

    def one(self, fault: Fault) -> Row:
        row = Row(fault.name, self.on, left_out=fault.why_not(self.site))
        if row.left_out:
            return row
        batch = self.site.give(self.size)
        try:
            scene = Scene(self.site, batch, self.rng)
            fault.strike(scene)
            row.hits = 1
            row.held = scene.held
        except TimeoutError as error:
            row.findings.append(f"not hit: {error}")
        ended = time.monotonic()
        row.idle = self._until_idle(batch.begun, ended - batch.begun + self.patience + self.usual)
        with contextlib.suppress(TimeoutError):
            self.site.wait_until_whole(max(self.patience - (time.monotonic() - ended), 1.0))
        row.whole = time.monotonic() - ended
        if not self.site.is_whole():
            row.findings.append(f"stuck: a server is not back {row.whole:.0f} s after the fault")
        row.findings += self.checker.findings(batch, fault)
        row.times = (row.idle - row.held) / self.usual
        self._say(row)
        return row

    def _until_idle(self, since: float, limit: float) -> float:
        while not self.site.is_idle() and time.monotonic() - since < limit:
            time.sleep(0.05)
        return time.monotonic() - since

    def _say(self, row: Row) -> None:
        say(f"{self.on:20} {row.fault:24} {row.idle:6.1f} s  × {row.times:.2f}")
        for finding in row.findings:
            say(f"    {finding}")


def tell(rows: list[Row]) -> None:
    """Print the table as it is shown in docs/chaos.md."""
    say("\n| Fault | On | Hit | Lasted (s) | To idle (s) | × undisturbed | Findings |")
    say("|---|---|---|---|---|---|---|")
    for row in rows:
        figures = (
            f"{row.hits} | {row.held:.1f} | {row.idle:.1f} | {row.times:.2f} | {len(row.findings)}"
            if not row.left_out else f"- | - | - | - | left out: {row.left_out}"
        )  # fmt: skip
        say(f"| {row.fault} | {row.on} | {figures} |")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()

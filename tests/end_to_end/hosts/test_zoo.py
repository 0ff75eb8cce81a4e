"""Agents that misbehave: each ends as a named outcome, leaves no process behind, and its task goes on.

They live in the sandbox, but for those that turn against their keeper: these live outside of it as well.
`pytest -rP tests/end_to_end/hosts/test_zoo.py` shows the table of docs/safety.md.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.hosts import outcomes, processes
from agents.hosts.reconciler import Reconciler
from agents.loop import orchestrator
from agents.models import Agent, Output, Run
from agents.verification import caches
from tasks.models import Review, Submission, Task
from tests.end_to_end import burglars
from tests.end_to_end.creatures import (
    GIT,
    HAND_INS,
    KEEPERS,
    OUTPUT,
    PRELUDE,
    PROCESSES,
    WELL_BEHAVED,
    Creature,
)
from tests.end_to_end.loop import (
    Loop,
    bare_remote,
    command_agent,
    script,
    small_project,
    task_in,
)

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

GONE_AFTER = 5.0  # seconds that a process of an ended run may still live
PATIENCE = 90.0
MIB = 1024 * 1024
MOST_SECONDS = 30.0  # from the start of a first run to its end
HOUSES = {
    "processes": PROCESSES,
    "keepers": burglars.ENCLOSED_KEEPERS,
    "output": OUTPUT,
    "git": GIT,
    "hand-ins": HAND_INS,
    "burglars": burglars.BURGLARS,
    "keepers in the open": KEEPERS,
}
# What each house needs to be short, in seconds; work that hangs elsewhere gets the time of a loaded machine.
LIMITS = {
    "processes": {"silence": 6, "wall": 15, "grace": 0.5},
    "keepers": {"silence": 6, "wall": 15, "grace": 0.5},
    "output": {"silence": 6, "grace": 0.5},
    "git": {},
    "hand-ins": {"closing": 2, "grace": 0.5},
    "burglars": {"silence": 12, "wall": 60, "grace": 0.5},
    "keepers in the open": {"silence": 6, "orphan": 20, "grace": 0.5, "beat": 2, "starting": 10},
}
SECRET = "not-for-agents"
DISPATCHER = """
    import json, os, pathlib
    ZOO, PORT, STOLEN = pathlib.Path({zoo!r}), {port}, {stolen!r}
    BOARD = pathlib.Path(os.environ["XDG_CACHE_HOME"])
    ref = json.loads(pathlib.Path(os.environ["STEROIDS_CONTEXT"]).read_text())["task"]
    seen = BOARD / f"seen-{{ref}}"
    name = "well-behaved" if seen.exists() else ref
    seen.touch()
    exec(compile((ZOO / f"{{name}}.py").read_text(), name, "exec"))
"""


class Keeper:
    """Lets a house full of creatures loose on one project, and watches what they leave behind."""

    def __init__(self, loop: Loop, folder: Path, creatures: list[Creature]) -> None:
        self.home, self.folder = loop.home, folder / "zoo"
        self.board = folder / "board"
        for path in (self.folder, self.board):
            path.mkdir()
        self.home.mkdir(exist_ok=True)
        for name in ("secret-key", "steroids.sqlite3"):
            (self.home / name).write_text(SECRET)
        (self.folder / "well-behaved.py").write_text(PRELUDE + WELL_BEHAVED)
        self.remote = bare_remote(folder, {"README.md": "Small.\n"})
        project = small_project(self.remote)
        project.max_parallel = 20
        project.save()
        self.tasks = {creature.name: task_in(project, creature.name) for creature in creatures}
        for creature in creatures:
            (self.folder / f"{self.tasks[creature.name].ref}.py").write_text(creature.script)
        for path in (self.folder, *self.folder.iterdir()):
            path.chmod(0o755)
        told = {"zoo": str(self.folder), "port": urlsplit(loop.url).port, "stolen": a_session()}
        command_agent("coder", script(folder, "coder", DISPATCHER.format(**told)))
        agent = Agent.objects.get()
        agent.slots, agent.settings["argv"] = 20, [*agent.settings["argv"], str(self.folder)]
        agent.save()
        self.late: dict[str, float] = {}

    def work(self) -> None:
        """Turn the loop until every task waits for a reviewer, with work that was built and tested."""
        deadline = time.monotonic() + PATIENCE
        left = Task.objects.exclude(submissions__state=Submission.State.VERIFIED)
        with Reconciler() as host:
            while left.exists() or Run.objects.live().exists():
                orchestrator.tick()
                host.step()
                self.look_for_leftovers()
                found = list(left.values_list("title", "status"))
                assert time.monotonic() < deadline, found
                assert not [title for title, status in found if status == "disputed"], found
                host.wait()

    def on_the_board(self, kind: str) -> list[str]:
        """What creatures left there, by the beginning of its name."""
        found = {*self.board.iterdir(), *self.home.glob("runs/*/cache/*-*")}
        names = {path.name for path in found if path.name.startswith(f"{kind}-")}
        return sorted(name.removeprefix(f"{kind}-") for name in names)

    def carry_the_board(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Carry for the creatures what they leave each other, because no run reads what another left."""
        prepare, remove = caches.prepare, outcomes.remove_folder

        def prepared(project: int, folder: Path, role: str) -> Path:
            own = prepare(project, folder, role)
            for seen in self.board.glob("seen-*"):
                (own / seen.name).touch()
            return own

        def removed(run: Run) -> None:
            if run.role == Run.Role.CODER:  # one of them removes what it has left itself
                (self.board / f"seen-{run.task.ref}").touch()
            for left in (self.home / "runs" / str(run.pk) / "cache").glob("*-*"):
                (self.board / left.name).touch()
            remove(run)

        monkeypatch.setattr(caches, "prepare", prepared)
        monkeypatch.setattr(outcomes, "remove_folder", removed)

    def look_for_leftovers(self) -> None:
        """How long processes of ended runs have lived on, by creature."""
        noted = [tuple(map(int, name.split("-"))) for name in self.on_the_board("pid")]
        living = set(as_they_see_themselves()) if noted else set()
        at_work = {number for number, _ in processes.of_runs(self.home / "runs")}
        for run in Run.objects.filter(status=Run.Status.ENDED, role="coder").select_related("task"):
            left = [pid for number, *pid in noted if number == run.pk and tuple(pid) in living]
            if run.ended_at and (left or run.pk in at_work):
                self.late[run.task.title] = (timezone.now() - run.ended_at).total_seconds()

    def first_run(self, creature: Creature) -> Run:
        runs = Run.objects.filter(task=self.tasks[creature.name], role="coder")
        return runs.order_by("pk").select_related("submission").first() or Run()

    def seconds(self, creature: Creature) -> float:
        run = self.first_run(creature)
        is_over = run.started_at and run.ended_at
        return (run.ended_at - run.started_at).total_seconds() if is_over else float("inf")

    def row(self, creature: Creature) -> str:
        """Of the table in docs/safety.md."""
        run = self.first_run(creature)
        said = run.reason or (run.submission.problem if run.submission else "")
        said = said.partition("\n")[0].replace(str(self.home), "…")
        return f"| {creature.name} | {run.outcome} | {said} | {self.seconds(creature):.1f} |"

    def faults(self, creature: Creature) -> Iterator[str]:
        """What is not as it should be, in words."""
        run = self.first_run(creature)
        said = f"{run.reason} {run.submission.problem if run.submission else ''}"
        if run.outcome != creature.outcome:
            yield f"ended as {run.outcome} ({said}), not as {creature.outcome}"
        if creature.reason not in said:
            yield f"says {said!r}, which has no {creature.reason!r}"
        if run.is_counted != creature.is_counted:
            yield f"counted: {run.is_counted}"
        if creature.is_saved not in {None, bool(run.salvage_sha)}:
            yield f"saved: {run.salvage_sha!r}"
        if not self.seconds(creature) < MOST_SECONDS:
            yield f"took {self.seconds(creature):.1f} s"
        if self.late.get(creature.name, 0) > GONE_AFTER:
            yield f"a process lived on for {self.late[creature.name]:.1f} s"


def as_they_see_themselves() -> Iterator[tuple[int, int, int]]:
    """Every process that lives, by its number in its sandbox, by when it started, and by that sandbox."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and processes.is_alive(who := processes.identity(int(entry.name))):
            with contextlib.suppress(OSError):
                lines = Path(entry.path, "status").read_text().splitlines()
                numbers = next((line for line in lines if line.startswith("NSpid:")), f"NSpid: {who.pid}")
                yield int(numbers.split()[-1]), who.start, Path(entry.path, "ns/pid").stat().st_ino


def a_session() -> str:
    """The cookie of somebody who may do everything."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    return browser.cookies["sessionid"].value


@pytest.fixture
def keeper(
    loop: Loop,
    settings: Any,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Keeper:
    house = request.param
    settings.SANDBOX = "off" if house == "keepers in the open" else "required"
    settings.HOST_SLOTS = 20
    settings.OUTPUT_MAX_BYTES = MIB
    settings.DURATIONS = settings.DURATIONS | LIMITS[house]
    for name, most in burglars.LIMITS.items() if house == "burglars" else ():
        setattr(settings, name, most)
    keeper = Keeper(loop, tmp_path, HOUSES[house])
    keeper.carry_the_board(monkeypatch)
    return keeper


@pytest.mark.parametrize(("keeper", "creatures"), HOUSES.items(), ids=HOUSES, indirect=["keeper"])
def test_every_creature_ends_as_named_and_its_task_goes_on(keeper: Keeper, creatures: list[Creature]) -> None:
    keeper.work()
    print(*map(keeper.row, creatures), sep="\n")
    found = {creature.name: list(keeper.faults(creature)) for creature in creatures}
    assert {name: faults for name, faults in found.items() if faults} == {}
    assert [*keeper.on_the_board("escaped"), *keeper.folder.glob("escaped-*")] == []
    assert (keeper.home / "steroids.sqlite3").read_text() == SECRET
    planted = subprocess.run(["grep", "-rl", "PLANTED", keeper.home / "mirrors", keeper.remote], check=False)
    assert planted.returncode == 1
    assert not Output.objects.filter(text__contains="stx_").exclude(text__contains="stx_***").exists()
    assert not Review.objects.exists()


def test_the_zoo_has_seventy_creatures() -> None:
    assert sum(map(len, HOUSES.values())) >= 70
    assert sys.platform == "linux"

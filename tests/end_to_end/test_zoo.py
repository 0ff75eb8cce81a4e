"""Agents that misbehave: each ends as a named outcome, leaves no process behind, and its task goes on."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agents.hosts import paths, processes
from agents.hosts.reconciler import Reconciler
from agents.loop import orchestrator
from agents.models import Agent, Output, Run
from tasks.models import Review, Submission, Task
from tests.end_to_end.creatures import HOUSES, PRELUDE, WELL_BEHAVED, Creature
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
PATIENCE = 400.0
MIB = 1024 * 1024
# What each house needs to be short, in seconds; work that hangs elsewhere gets the time of a loaded machine.
LIMITS = {
    "processes": {"silence": 6, "wall": 20, "grace": 0.5},
    "keepers": {"silence": 6, "orphan": 20, "grace": 0.5, "beat": 2, "starting": 10},
    "output": {"silence": 6, "grace": 0.5},
    "git": {},
    "hand-ins": {"closing": 2, "grace": 0.5},
}
DISPATCHER = """
    import json, os, pathlib, sys
    ZOO = pathlib.Path({zoo!r})
    ref = json.loads(pathlib.Path(os.environ["STEROIDS_CONTEXT"]).read_text())["task"]
    seen = ZOO / f"{{ref}}.seen"
    name = "well-behaved" if seen.exists() else ref
    seen.touch()
    exec(compile((ZOO / f"{{name}}.py").read_text(), name, "exec"))
"""


class Keeper:
    """Lets a house full of creatures loose on one project, and watches what they leave behind."""

    def __init__(self, loop: Loop, folder: Path, creatures: list[Creature]) -> None:
        self.folder = folder / "zoo"
        (self.folder / "pids").mkdir(parents=True)
        (self.folder / "well-behaved.py").write_text(PRELUDE + WELL_BEHAVED)
        self.remote = bare_remote(folder, {"README.md": "Small.\n"})
        project = small_project(self.remote)
        project.max_parallel = 20
        project.save()
        self.tasks = {creature.name: task_in(project, creature.name) for creature in creatures}
        for creature in creatures:
            (self.folder / f"{self.tasks[creature.name].ref}.py").write_text(creature.script)
        command_agent("coder", script(folder, "coder", DISPATCHER.format(zoo=str(self.folder))))
        Agent.objects.update(slots=20)
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
                assert time.monotonic() < deadline, list(left.values_list("title", "status"))
                host.wait(0.05)

    def noted(self, run_pk: int) -> Iterator[processes.Identity]:
        for path in (self.folder / "pids").glob(f"{run_pk}-*"):
            _, pid, start = path.name.split("-")
            yield processes.Identity(processes.boot_id(), int(pid), int(start))

    def look_for_leftovers(self) -> None:
        """How long processes of ended runs have lived on, by creature."""
        for run in Run.objects.filter(status=Run.Status.ENDED, role="coder").select_related("task"):
            marked = processes.working_in(paths.run_folder(run.pk))
            if run.ended_at and [who for who in [*self.noted(run.pk), *marked] if processes.is_alive(who)]:
                self.late[run.task.title] = (timezone.now() - run.ended_at).total_seconds()

    def first_run(self, creature: Creature) -> Run:
        runs = Run.objects.filter(task=self.tasks[creature.name], role="coder")
        return runs.order_by("pk").select_related("submission").first() or Run()

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
        if self.late.get(creature.name, 0) > GONE_AFTER:
            yield f"a process lived on for {self.late[creature.name]:.1f} s"


@pytest.fixture
def keeper(loop: Loop, settings: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Keeper:
    settings.HOST_SLOTS = 20
    settings.OUTPUT_MAX_BYTES = MIB
    settings.DURATIONS = settings.DURATIONS | LIMITS[request.param]
    return Keeper(loop, tmp_path, HOUSES[request.param])


@pytest.mark.parametrize(("keeper", "creatures"), HOUSES.items(), ids=HOUSES, indirect=["keeper"])
def test_every_creature_ends_as_named_and_its_task_goes_on(keeper: Keeper, creatures: list[Creature]) -> None:
    keeper.work()
    found = {creature.name: list(keeper.faults(creature)) for creature in creatures}
    assert {name: faults for name, faults in found.items() if faults} == {}
    escaped = [path.name for path in keeper.folder.glob("escaped-*")]
    assert escaped == []
    assert not Output.objects.filter(text__contains="stx_").exclude(text__contains="stx_***").exists()
    assert not Review.objects.exists()


def test_the_zoo_has_forty_creatures() -> None:
    assert sum(map(len, HOUSES.values())) >= 40
    assert sys.platform == "linux"

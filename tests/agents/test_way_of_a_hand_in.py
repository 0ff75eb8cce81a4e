"""docs/architecture.md draws the way of a hand-in; two real ones are walked, and the drawing must be true."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.conf import settings as django_settings
from rest_framework.test import APIClient

from agents.hosts import paths, processes
from agents.hosts.reconciler import Reconciler
from agents.loop import orchestrator
from agents.models import Prompt, Run
from disputes.models import Conflict
from tests.agents.world import World, commit, make_world  # noqa: F401
from tests.factories import create_agent

pytestmark = pytest.mark.django_db

ROOT = Path(django_settings.BASE_DIR)
SECTION = (ROOT / "docs" / "architecture.md").read_text().partition("### The way of a hand-in\n")[2]
SECTION = SECTION.partition("\n## ")[0]
STOPS_MAX = 10
PATIENCE = 120.0  # seconds
REVIEW = """\
# Review

## High

### ISSUE-R1-001: Nobody hears it

- **Location:** hello.txt:1
- **Impact:** They go on talking.
- **Suggestion:** Shout.

## Verdict

NEEDS_REVISION
"""
RESPONSE = """\
## DISAGREE: ISSUE-R1-001

**Reviewer Concern:**
> Nobody hears it

**Engineer Position:**
It is loud enough.

**Rationale:**
Shouting is rude.
"""


@dataclass(frozen=True)
class Stop:
    """A row of the table."""

    name: str
    functions: frozenset[tuple[str, str]]  # file and name
    goes: frozenset[str]  # folders, and files at the top of a room


def drawn_stops() -> list[Stop]:
    stops = []
    for line in SECTION.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or cells[0] == "Stop" or line.startswith("|-"):
            continue
        name, files, functions, _, goes = cells
        whole = re.findall(r"`([^`]+)`", files)
        first = Path(whole[0])  # the others are named from where they part
        parents = [first.parent if "/" not in each else first.parent.parent for each in whole]
        named = [whole[0], *(str(folder / each) for folder, each in zip(parents[1:], whole[1:], strict=True))]
        pairs = zip(named, re.findall(r"`([^`]+)`", functions), strict=True)
        stops.append(Stop(name, frozenset(pairs), frozenset(re.findall(r"`([^`]+)`", goes))))
    return stops


def drawn_arrows() -> set[tuple[str, str]]:
    drawing = SECTION.partition("```mermaid\n")[2].partition("```")[0]
    lines = [line.split("-->") for line in drawing.splitlines() if "-->" in line]
    return {
        (one.strip(), other.strip()) for line in lines for one, other in zip(line, line[1:], strict=False)
    }


STOPS = drawn_stops()
PLACES = {place: number for number, stop in enumerate(STOPS) for place in stop.functions}


@cache
def file_of(name: str) -> str:
    """The product's file of that path, from the root on; empty for any other."""
    file = name.removeprefix(f"{ROOT}/")
    return file if file != name and file.partition("/")[0] in {"agents", "disputes", "tasks"} else ""


@dataclass
class Walk:
    """What was entered of the product until the next prompt was worded."""

    passed: list[int] = field(default_factory=list)  # the stops, as often as they were entered
    calls: set[tuple[int, int]] = field(default_factory=set)  # from one stop into another
    went: dict[int, set[str]] = field(default_factory=dict)
    within: list[tuple[FrameType, int]] = field(default_factory=list)
    is_over: bool = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.is_over or event not in {"call", "return"}:
            return
        file = file_of(frame.f_code.co_filename)
        if not file or frame.f_code.co_name == "<module>":
            return
        if event == "return":
            if self.within and self.within[-1][0] is frame:
                self.is_over = self.within.pop()[1] == len(STOPS) - 1
            return
        stop = PLACES.get((file, frame.f_code.co_qualname))
        if stop is not None:
            self.passed.append(stop)
            if self.within:
                self.calls.add((self.within[-1][1], stop))
            self.within.append((frame, stop))
        if self.within and not is_everywhere(file):
            self.went.setdefault(self.within[-1][1], set()).add("/".join(file.split("/")[:2]))

    @contextmanager
    def watching(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)

    @property
    def way(self) -> list[str]:
        """The stops in the order in which they were passed for the last time."""
        last = {stop: number for number, stop in enumerate(self.passed)}
        return [STOPS[stop].name for stop in sorted(last, key=lambda stop: last[stop])]


def is_everywhere(file: str) -> bool:
    return file.startswith("tasks/") or "/models/" in file or file == "disputes/triage.py"


@pytest.fixture
def prompted(world: World) -> Iterator[Callable[..., Run]]:
    """Turns the loop until the next run of that role has its prompt and lives; agents only sleep."""
    world.settings.API_URL = "http://127.0.0.1:1"
    world.duration(loop=0.02)
    world.project.settings = {
        "detect_commands": False, "test_command": "test -f README.md",
        "policy": {"critical": "hold", "high": "ship", "medium": "ship", "low": "ship"},
    }  # fmt: skip
    world.project.base_state, world.project.base_sha = "green", world.remote.head()
    world.project.save()
    for role in ("coder", "reviewer"):
        create_agent(role, settings={"argv": ["sleep", "600"]})

    def until(role: str, number: int, walk: Walk | None = None) -> Run:
        deadline = time.monotonic() + PATIENCE
        with Reconciler() as host:
            while time.monotonic() < deadline:
                with (walk or Walk()).watching():
                    orchestrator.tick()
                    host.step()
                runs = list(Run.objects.filter(role=role).order_by("pk"))
                if len(runs) == number and runs[-1].status == Run.Status.RUNNING:
                    return runs[-1]
                host.wait(0.05)
        raise AssertionError(list(Run.objects.values_list("role", "status", "outcome", "reason")))

    yield until
    for run in Run.objects.all():
        processes.end_all(processes.working_in(paths.run_folder(run.pk)), 0.5)


def hand_in(run: Run, verb: str, body: dict[str, Any]) -> Walk:
    """Over REST, with the token that the run's agent has."""
    context = json.loads((paths.run_folder(run.pk) / "context.json").read_text())
    client, walk = APIClient(), Walk()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {context['token']}")
    with walk.watching():
        reply = client.post(f"/api/v1/tasks/{run.task.ref}/{verb}/", body, format="json")
    assert reply.status_code == 201, reply.data
    return walk


def test_the_drawn_way_is_the_way_that_hand_ins_take(world: World, prompted: Callable[..., Run]) -> None:
    assert 0 < len(STOPS) <= STOPS_MAX
    for file, _ in PLACES:
        assert (ROOT / file).is_file(), file

    world.task()
    coder = prompted("coder", 1)
    first = commit(paths.clone_of(coder), {"hello.txt": "hello\n"})
    hand_in(coder, "submit", {"sha": first, "response": "Done."})
    review = hand_in(prompted("reviewer", 1), "reject", {"review": REVIEW})
    coder = prompted("coder", 2, review)
    assert "Nobody hears it" in Prompt.objects.get(run=coder).text
    second = commit(paths.clone_of(coder), {"hello.txt": "hello there\n"})
    response = hand_in(coder, "submit", {"sha": second, "response": RESPONSE})
    reviewer = prompted("reviewer", 2, response)
    assert "Shouting is rude." in Prompt.objects.get(run=reviewer).text
    assert Conflict.objects.get().coder_rationale == "Shouting is rude."

    names = [stop.name for stop in STOPS]
    walks = {"review": review, "response": response}
    arrows: set[tuple[str, str]] = set()
    for name, walk in walks.items():
        assert walk.is_over, name
        assert walk.way == sorted(walk.way, key=names.index), name
        assert [pair for pair in walk.calls if pair[0] >= pair[1]] == [], name
        arrows |= set(zip(walk.way, walk.way[1:], strict=False))
    assert arrows == drawn_arrows()
    went = {
        stop.name: set().union(*(walk.went.get(number, set()) for walk in walks.values()))
        for number, stop in enumerate(STOPS)
    }
    assert went == {stop.name: set(stop.goes) for stop in STOPS}

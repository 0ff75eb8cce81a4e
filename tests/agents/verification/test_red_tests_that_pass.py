"""`test_required: false`: red tests are told to the reviewer and on the page, and send nothing back; a red
build still does."""

from typing import Any

import pytest
from django.test import Client

from agents.hosts import landing
from agents.prompts import compose
from agents.verification import commands, conclusions, heads, verifying
from disputes.models import Conflict
from tasks import base
from tasks.configuration.changing import configure
from tasks.events import SYSTEM
from tasks.models import Event, Submission, Verification
from tests.agents.verification.test_trying import ended, trying_project
from tests.agents.world import World, make_world  # noqa: F401  (a fixture)
from tests.factories import create_run, create_user

pytestmark = pytest.mark.django_db
COMMANDS = {"build_command": "make", "test_command": "make test"}
SUMMARY = "=== short test summary info ===\n"
RED = SUMMARY + "FAILED test_a.py::test_adds - assert 1 == 2\n1 failed, 8 passed in 0.1s\n"


def judged(
    world: World, *, step: str = "tests", code: int = 1, said: str = RED, before: int = 0, **settings: Any
) -> Submission:
    """A submission whose build or tests ended with 1, or another code; `before` ran where it began."""
    configure(world.project, COMMANDS | settings, actor=SYSTEM, is_tried=True)
    submission = world.kept({"a.py": "a\n"})
    ran = commands.commands_hash(commands.commands_of(world.project, world.mirror, submission.sha))
    if before:
        world.verify(submission.diff_stat["fork"], total=before)
    run = create_run(submission.task, "verifier", sha=submission.sha, commands_hash=ran)
    folder = verifying.paths.run_folder(run.pk)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "output.log").write_text(said)
    ended_so = {"name": step, "code": code, "seconds": 1.0, "log": [0, len(said)]}
    verifying.finish(run, {"steps": [ended_so], "reason": ""})
    submission.refresh_from_db()
    return submission


def test_red_tests_go_to_the_reviewer_who_is_told(world: World, client: Client) -> None:
    without = "E   ModuleNotFoundError: No module named 'ledgers'\n"
    submission = judged(world, said=without + RED, test_required=False)
    assert (submission.state, submission.task.status) == ("verified", "review")
    assert Verification.objects.get(sha=submission.sha).green is False
    event = Event.objects.get(kind="verified_red")
    assert "did not find the Python module ledgers. This project lets red tests pass." in event.note
    run = create_run(submission.task, "reviewer", seat="reviewer", sha=submission.sha)
    text = compose.compose(run, compose.Material(), []).text
    assert (
        "The tests are red for this very commit: tests ended with 1: 1 failed: test_a.py::test_adds" in text
    )
    client.force_login(create_user("root", is_superuser=True))
    page = client.get(f"/tasks/{submission.task.ref}/").content.decode()
    assert "Red tests" in page
    assert "test_a.py::test_adds" in page


@pytest.mark.parametrize(("step", "required"), [("build", False), ("prepare", False), ("tests", True)])
def test_a_red_build_and_tests_that_count_send_it_back(world: World, step: str, required: bool) -> None:
    submission = judged(world, step=step, test_required=required)
    assert (submission.state, submission.task.status) == ("red", "in_progress")


def test_after_a_rebase_they_land_too(world: World) -> None:
    configure(world.project, COMMANDS | {"test_required": False}, actor=SYSTEM, is_tried=True)
    accepted = world.accepted({"a.py": "a\n"})
    world.remote.push({"b.py": "b\n"})
    landing.advance(accepted, "here")
    accepted.refresh_from_db()
    assert accepted.status == "checking"
    world.verify(accepted.sha, green=False, step="tests", problem="tests ended with 1")
    landing.advance(accepted, "here")
    accepted.refresh_from_db()
    assert (accepted.status, world.remote.head()) == ("landed", accepted.sha)


def test_a_branch_whose_tests_are_red_is_fit_for_work(world: World) -> None:
    configure(world.project, COMMANDS | {"test_required": False}, actor=SYSTEM, is_tried=True)
    base.set_base(world.project, "green", sha=world.mirror.fetch_target())
    head = world.remote.push({"a.py": "a\n"})
    world.mirror.fetch_target()
    world.verify(head, green=False, step="tests", failed=["a::b"], problem="tests ended with 1")
    assert heads.note(world.project, world.mirror, head)
    assert (world.project.base_state, world.project.base_known["failed"]) == ("accepted", ["a::b"])
    for step, state in (("tests", "accepted"), ("build", "red")):
        project = trying_project(settings={"test_required": False})
        ended(project, "red", why="configured", step=step, failed=["a::b"])
        conclusions.decide(project.pk)
        project.refresh_from_db()
        assert project.base_state == state, step
        assert Conflict.objects.filter(dispute__project=project).exists() == (state == "red")


@pytest.mark.parametrize(
    ("said", "before", "told"),
    [
        ("=== 3 passed in 0.1s ===\n", 12, "3 tests ran"), ("ok\n", 12, "how many tests ran is not told"),
        ("=== 12 passed in 0.1s ===\n", 12, ""), ("=== 3 passed in 0.1s ===\n", 0, ""),
    ],
)  # fmt: skip
def test_reviewer_and_people_hear_that_green_work_runs_fewer_tests(
    world: World, client: Client, said: str, before: int, told: str
) -> None:
    """Whoever deletes a test, or hides it from its runner, is green as well."""
    submission = judged(world, code=0, said=said, before=before)
    assert (submission.state, submission.task.status) == ("verified", "review")
    wanted = f"{told[1:]}; at {submission.diff_stat['fork'][:10]}, where the work began, 12 did"
    run = create_run(submission.task, "reviewer", seat="reviewer", sha=submission.sha)
    client.force_login(create_user("root", is_superuser=True))
    for shown in (
        compose.compose(run, compose.Material(), []).text,
        client.get(f"/tasks/{submission.task.ref}/").content.decode(),
        Event.objects.get(kind="verified_green").note,
    ):
        assert (wanted in shown, "where the work began" in shown) == (bool(told), bool(told))

"""Why is this not moving? One line for every task."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tasks.dependencies import recount
from tasks.models import Dependency, Project, Section, Task
from tasks.states import Status
from tasks.waiting import waiting_line
from tests.factories import create_project, create_section, create_submission, create_task, sha

pytestmark = pytest.mark.django_db

RULE = "Waits for a human to rule."


@pytest.fixture
def ledger() -> Project:
    return create_project("ledger")


def line(task: Task) -> str:
    return waiting_line(Task.objects.select_related("project", "section").get(pk=task.pk))


def accepted(project: Project, status: str = "completed", **kwargs: Any) -> Task:
    """A task whose submission is to be landed."""
    task = create_task(project, status="review", round=1)
    Task.objects.filter(pk=task.pk).update(status=status, accepted=create_submission(task), **kwargs)
    task.refresh_from_db()
    return task


def waits(task: Task, *on: Task) -> Task:
    for other in on:
        Dependency.objects.create(task=task, on=other)
    recount([task])
    return task


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("pending", "Waits for a free seat."),
        ("in_progress", "The coder's turn."),
        ("review", "Build, tests and review."),
        ("disputed", RULE),
        ("failed", "Failed; a human decides how it goes on."),
        ("deferred", "Deferred until somebody resumes it."),
        ("cancelled", "Cancelled."),
    ],
)
def test_each_status_has_its_line(ledger: Project, status: str, words: str) -> None:
    assert line(create_task(ledger, status=status)) == words


@pytest.mark.parametrize("status", Status)
def test_no_task_is_without_a_line(ledger: Project, status: str) -> None:
    finished_by = "hand" if status == "completed" else ""
    assert line(create_task(ledger, status=status, finished_by=finished_by)).endswith(".")


def test_an_approved_task_waits_to_land_and_then_has_landed(ledger: Project) -> None:
    task = accepted(ledger)
    assert line(task) == "Approved; waits to land."
    task.landed(sha("c"))
    assert line(task) == "Landed as cccccccccccc."


@pytest.mark.parametrize("by", ["hand", "import"])
def test_a_task_finished_elsewhere_says_so(ledger: Project, by: str) -> None:
    assert line(create_task(ledger, status="completed", finished_by=by)) == "Finished outside the program."


def test_a_task_that_landed_in_dispute_still_waits_for_a_human(ledger: Project) -> None:
    task = accepted(ledger, "disputed")
    assert line(task) == RULE


def test_and_so_it_does_once_it_has_landed(ledger: Project) -> None:
    task = accepted(ledger, "disputed")
    task.landed(sha("c"))
    assert RULE in line(task)


@pytest.mark.parametrize("status", ["pending", "in_progress", "review"])
def test_a_paused_project_starts_nothing(ledger: Project, status: str) -> None:
    task = create_task(ledger, status=status)
    Project.objects.update(status="paused")
    assert line(task) == "Ledger is paused."


@pytest.mark.parametrize("status", ["pending", "in_progress", "review"])
def test_nor_does_a_finished_one(ledger: Project, status: str) -> None:
    task = create_task(ledger, status=status)
    Project.objects.update(status="finished")
    assert "finished" in line(task)


@pytest.mark.parametrize("status", ["pending", "in_progress", "review"])
def test_a_repository_out_of_reach_is_named(ledger: Project, status: str) -> None:
    task = create_task(ledger, status=status)
    Project.objects.update(trouble="connection refused")
    assert line(task) == "Waits for the repository: connection refused"


@pytest.mark.parametrize("status", ["disputed", "failed", "deferred", "cancelled"])
def test_it_is_no_reason_for_a_task_that_waits_for_something_else(ledger: Project, status: str) -> None:
    task = create_task(ledger, status=status)
    Project.objects.update(trouble="connection refused")
    assert "connection refused" not in line(task)


@pytest.mark.parametrize("status", ["pending", "in_progress", "review"])
def test_a_stopped_section_is_named(ledger: Project, status: str) -> None:
    section = create_section(ledger, "Doors", is_stopped=True)
    task = create_task(section=section, status=status)
    assert line(task) == "The section Doors is stopped because a task in it failed."


def test_a_resting_task_says_how_long(ledger: Project) -> None:
    task = create_task(ledger, status="in_progress", not_before=timezone.now() + timedelta(seconds=90))
    assert line(task) in {"Rests for 90 s more, then goes on.", "Rests for 89 s more, then goes on."}
    Task.objects.update(not_before=timezone.now())
    assert line(task) == "The coder's turn."


def test_a_task_names_what_it_waits_for(ledger: Project) -> None:
    first, second = (create_task(ledger, number=number, title=f"Part {number}") for number in (1, 2))
    task = waits(create_task(ledger), first, second)
    assert line(task) == "Waits for ledger-1 Part 1, ledger-2 Part 2 to land."


def test_it_names_three_of_many(ledger: Project) -> None:
    task = waits(create_task(ledger), *(create_task(ledger) for _ in range(5)))
    assert line(task).count("ledger-") == 3


def test_it_does_not_name_what_is_done(ledger: Project) -> None:
    landed = accepted(ledger)
    landed.landed(sha("c"))
    cancelled = create_task(ledger, status="cancelled")
    open_ = create_task(ledger, number=7, title="The last part")
    task = waits(create_task(ledger), landed, cancelled, open_)
    assert line(task) == "Waits for ledger-7 The last part to land."


def test_approved_is_not_landed(ledger: Project) -> None:
    task = waits(create_task(ledger), accepted(ledger))
    assert line(task).endswith("to land.")


def test_a_task_whose_section_waits_says_so(ledger: Project) -> None:
    doors, walls = create_section(ledger, "Doors"), create_section(ledger, "Walls")
    doors.depends_on.add(walls)
    create_task(section=walls)
    task = waits(create_task(section=doors))
    assert line(task) == "Waits for another section."


@pytest.mark.parametrize("status", ["in_progress", "review"])
def test_work_under_way_waits_for_no_dependency(ledger: Project, status: str) -> None:
    task = waits(create_task(ledger, status=status), create_task(ledger))
    assert "Waits for" not in line(task)


def test_the_line_is_made_from_facts_and_not_from_the_counter(ledger: Project) -> None:
    """MODELS 6, risk 7"""
    task = create_task(ledger, waits_for=1)
    assert not Section.objects.filter(depends_on__isnull=False).exists()
    assert line(task) != "Waits for another section."


def test_a_line_costs_few_queries(ledger: Project, django_assert_max_num_queries: Any) -> None:
    task = waits(create_task(ledger), *(create_task(ledger) for _ in range(5)))
    task = Task.objects.select_related("project", "section").get(pk=task.pk)
    with django_assert_max_num_queries(1):
        waiting_line(task)

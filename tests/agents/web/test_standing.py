"""Why is this not moving? One line for every task, from facts."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from agents.models import Agent, Host, Run
from agents.web import standing
from agents.web.standing import Standing
from disputes import opening, rulings
from disputes.models import Decision
from tasks.dependencies import recount
from tasks.hooks import waiting_line
from tasks.models import Dependency, Landing, Project, Section, Task
from tasks.states import Status
from tests.cases import for_each
from tests.factories import (
    create_agent,
    create_host,
    create_project,
    create_run,
    create_section,
    create_submission,
    create_task,
    create_user,
    sha,
)

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture
def ledger(db: None) -> Project:
    """With an agent of each role and a host that is alive, also in the hour that some tests look ahead."""
    create_agent("coder", name="coder-1", slots=2)
    create_agent("reviewer", name="reviewer-1", slots=2)
    later = timezone.now() + timedelta(hours=1)
    create_host("atlas-1", seen_at=later, ticked_at=later)
    return create_project("ledger", max_parallel=4)


def of(task: Task, now: datetime | None = None) -> Standing:
    return standing.standing(Task.objects.get(pk=task.pk), now)


def line(task: Task, now: datetime | None = None) -> str:
    return of(task, now).line


def accepted(project: Project, status: str = "completed", **kwargs: Any) -> Task:
    """A task whose submission is to be landed."""
    task = create_task(project, status="review", round=1)
    Task.objects.filter(pk=task.pk).update(status=status, accepted=create_submission(task), **kwargs)
    task.refresh_from_db()
    return task


def landing(task: Task, **kwargs: Any) -> Landing:
    given = {"project": task.project, "task": task, "submission": task.accepted, "sha": sha("c")}
    return Landing.objects.create(**given | {"target": "main"} | kwargs)


def waits(task: Task, *on: Task) -> Task:
    for other in on:
        Dependency.objects.create(task=task, on=other)
    recount([task])
    return task


def hold(task: Task, **kwargs: Any) -> Any:
    given = {
        "kind": "disagreement", "origin": "cli", "opened_as": "coder", "question": "Back off, or not?",
        "severity": "high", "reviewer_position": "Yes.", "coder_position": "No.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, **given)


# --- Over, or a person's turn -----------------------------------------------------------------------------


@for_each(
    ("status", "turn", "words"),
    [
        ("pending", "work", "The coder's turn; it begins when the loop turns next."),
        ("in_progress", "work", "The coder's turn; it begins when the loop turns next."),
        ("review", "wrong", "In review, but nothing was handed in; defer and resume it."),
        (
            "disputed",
            "wrong",
            "Disputed, but no open card asks anybody; defer and resume it, and it goes on.",
        ),
        ("failed", "wrong", "Failed, but no open card asks anybody; defer and resume it, and it goes on."),
        ("cancelled", "done", "Cancelled."),
    ],
)
def test_each_status_has_its_line(ledger: Project, status: str, turn: str, words: str) -> None:
    assert of(create_task(ledger, status=status)) == Standing(turn, words)


@for_each("status", Status)
def test_no_task_is_without_a_line(ledger: Project, status: str) -> None:
    finished_by = "hand" if status == "completed" else ""
    assert line(create_task(ledger, status=status, finished_by=finished_by)).endswith(".")


def test_the_api_and_the_admin_say_the_same(ledger: Project) -> None:
    task = create_task(ledger)
    assert waiting_line(task) == line(task)


def test_a_deferred_task_says_since_when(ledger: Project) -> None:
    task = create_task(ledger, status="deferred", status_at=NOW - timedelta(hours=2, minutes=11))
    assert line(task, NOW).startswith("Deferred since ")
    assert "(2 h 11 m)" in line(task, NOW)


@pytest.mark.parametrize("by", ["hand", "import"])
def test_a_task_finished_elsewhere_says_so(ledger: Project, by: str) -> None:
    assert line(create_task(ledger, status="completed", finished_by=by)) == "Finished outside the program."


def test_a_disputed_task_names_its_card_and_since_when(ledger: Project) -> None:
    task = create_task(ledger, status="disputed", round=1)
    dispute = hold(task).dispute
    type(dispute).objects.update(opened_at=NOW - timedelta(hours=2, minutes=11))
    found = of(task, NOW)
    assert (found.turn, found.dispute) == ("human", dispute.pk)
    assert found.line.startswith(f"{dispute.ref} has waited for a human to rule since ")
    assert found.line.endswith("(2 h 11 m).")
    type(dispute).objects.update(assignee=create_user("ana"))
    assert f"{dispute.ref} has waited for ana since" in line(task)


def test_a_task_that_landed_in_dispute_still_waits_for_a_human(ledger: Project) -> None:
    task = accepted(ledger, "disputed")
    hold(task, effect="ship")
    task.landed(sha("c"))
    assert of(task).turn == "human"
    assert line(task).endswith("Landed as cccccccccccc meanwhile.")


def test_a_failed_task_names_its_card(ledger: Project) -> None:
    task = create_task(ledger, status="failed", round=15)
    dispute = hold(task).dispute
    assert line(task).startswith(f"Failed after too many rejections; {dispute.ref} has waited for a human")


@pytest.mark.parametrize("status", ["pending", "in_progress", "review"])
def test_an_open_card_holds_a_task_whatever_its_status(ledger: Project, status: str) -> None:
    task = create_task(ledger, status="in_progress", round=1)
    dispute = hold(task).dispute
    Task.objects.update(status=status)
    assert line(task).startswith(f"{dispute.ref} has waited for a human")


def test_a_ruling_says_when_it_takes_effect(ledger: Project, lea: Any) -> None:
    ledger.memberships.create(user=lea, role="maintainer")
    task = create_task(ledger, status="disputed", round=1)
    create_submission(task)
    rulings.decide(hold(task), "uphold_reviewer", user=lea)
    for seconds, said in (
        (3030, "Ruled; the ruling takes effect in 50 m."),
        (-1, "The coder's turn; it begins when the loop turns next."),
    ):
        moment = timezone.now() + timedelta(seconds=seconds)
        Decision.objects.update(effective_at=moment)
        Task.objects.update(not_before=moment)
        assert line(task) == said


def test_nobody_begins_on_a_branch_that_is_not_fit(ledger: Project) -> None:
    task, looks_for_commands = create_task(ledger), create_task(ledger, origin=Task.Origin.SETUP)
    verified = create_task(ledger, status="review", round=1)
    create_submission(verified)
    kept = create_task(ledger, status="review", round=1)
    create_submission(kept, state="kept")
    begins = "The coder's turn; it begins when the loop turns next."
    told = {}
    for state in Project.Base.values:
        Project.objects.update(base_state=state, base_problem="tests ended with 1: 3 failed")
        told[state] = of(task)
        assert line(looks_for_commands) == begins
        assert "main" not in line(verified)
    red = "main is red, and nobody begins on it: tests ended with 1: 3 failed"
    assert (told["red"].turn, told["red"].line, told["red"].setup) == ("human", red, "ledger")
    assert told["broken"].line.startswith("main cannot be built and tested here")
    assert told["unknown"].line == told["trying"].line == "main is tried before anybody works on it."
    assert {told[state].line for state in Project.FIT} == {begins}
    for state, waits_for_it in (("red", False), ("broken", True), ("trying", True)):
        Project.objects.update(base_state=state)
        assert ("main" in line(kept)) == waits_for_it


# --- Agents are at it -------------------------------------------------------------------------------------


def test_a_run_says_who_since_when_and_its_last_output(ledger: Project) -> None:
    task = create_task(ledger, status="in_progress")
    silence = timedelta(seconds=settings.DURATIONS["silence"])
    run = create_run(task, started_at=NOW - timedelta(minutes=5), last_output_at=NOW - timedelta(seconds=3))
    assert (of(task, NOW).turn, of(task, NOW).run) == ("work", run.pk)
    assert line(task, NOW).startswith("coder-1 is at work since ")
    assert line(task, NOW).endswith("(5 m), last output 3 s ago.")
    Run.objects.update(last_output_at=NOW - silence / 2)
    assert "silent for" in line(task, NOW)
    Run.objects.update(lease_until=NOW - timedelta(hours=2))  # so nobody stops it, however silent it is
    assert line(task, NOW).endswith(", nothing heard of its host for 2 h 01 m.")
    Run.objects.update(stop_requested=True)
    assert line(task, NOW).startswith("coder-1 is being stopped")
    Run.objects.update(stop_requested=False, status="closing")
    assert line(task, NOW).startswith("The coder's turn")


def test_a_queued_run_says_which_hosts_keep_it_waiting(ledger: Project) -> None:
    task = create_task(ledger, status="in_progress")
    create_run(task, status="queued")
    assert line(task).startswith("A run of coder-1 is queued since")
    assert "host" not in line(task)
    host = Host.objects.get()
    host.slots = 1
    host.save()
    create_run(create_task(ledger, status="in_progress"), host=host)
    assert line(task).endswith(": all slots of the hosts are taken.")
    Host.objects.update(is_draining=True)
    assert line(task).endswith(": every host is draining and takes no new runs.")
    Host.objects.update(is_draining=False, disk_free=1000)
    assert line(task).endswith(": no host that is alive has room on its disk.")
    Host.objects.update(seen_at=NOW - timedelta(days=1))
    assert of(task).is_wrong
    assert line(task).endswith(": no host is alive to start it.")


# --- Something around it holds it -------------------------------------------------------------------------


@for_each("status", ["pending", "in_progress", "review"])
@for_each(
    ("changes", "words"),
    [
        ({"status": "paused"}, "Ledger is paused; nothing is started in it."),
        ({"status": "finished"}, "Ledger has ended; nothing is started in it."),
        (
            {"status": "finished", "exit_type": "good_enough", "exit_at": NOW},
            "Ledger has ended as good enough; nothing is started in it.",
        ),
        ({"trouble": "connection refused"}, "Waits for the repository: connection refused"),
    ],
)
def test_a_project_that_starts_nothing_is_the_reason(
    ledger: Project, status: str, changes: dict[str, Any], words: str
) -> None:
    task = create_task(ledger, status=status)
    Project.objects.update(**changes)
    assert line(task) == words


def test_trouble_says_when_it_is_tried_again(ledger: Project) -> None:
    task = create_task(ledger)
    Project.objects.update(trouble="refused", trouble_until=NOW + timedelta(minutes=5))
    assert line(task, NOW).startswith("Waits for the repository; tried again at ")


@pytest.mark.parametrize("status", ["disputed", "failed", "deferred", "cancelled"])
def test_it_is_no_reason_for_a_task_that_waits_for_something_else(ledger: Project, status: str) -> None:
    task = create_task(ledger, status=status)
    Project.objects.update(trouble="connection refused")
    assert "connection refused" not in line(task)


@pytest.mark.parametrize("status", ["pending", "in_progress", "review"])
def test_a_stopped_section_names_the_task_that_failed(ledger: Project, status: str) -> None:
    section = create_section(ledger, "Doors", is_stopped=True)
    create_task(section=section, number=9, status="failed")
    task = create_task(section=section, status=status)
    assert line(task) == "The section Doors is stopped because ledger-9 failed."
    assert of(task).blocker == "ledger-9"


def test_a_failed_task_of_another_section_may_have_stopped_this_one(ledger: Project) -> None:
    create_task(section=create_section(ledger), number=9, status="failed")
    task = create_task(section=create_section(ledger, "Doors", is_stopped=True))
    assert "ledger-9 failed" in line(task)


def test_a_section_stopped_for_nothing_is_said_loudly(ledger: Project) -> None:
    task = create_task(section=create_section(ledger, "Doors", is_stopped=True))
    assert of(task).is_wrong
    assert "nothing in it has failed" in line(task)


def test_a_resting_task_says_until_when_and_after_how_many_empty_runs(ledger: Project) -> None:
    now = timezone.now()
    task = create_task(ledger, status="in_progress", not_before=now + timedelta(minutes=30))
    when = timezone.localtime(task.not_before)
    assert "Not before" in line(task)
    ended = {"status": "ended", "outcome": "nothing", "is_counted": True, "ended_at": now}
    create_run(task, **ended)
    create_run(task, **ended | {"outcome": "handed_in", "is_counted": False})
    for _ in range(3):
        create_run(task, **ended)
    create_run(task, "reviewer", **ended)
    assert line(task).endswith("after 3 empty runs.")
    assert f"{when:%H:%M}" in line(task)
    Task.objects.update(counts_since=now + timedelta(hours=1))
    assert "empty" not in line(task)
    Task.objects.update(not_before=now)
    assert line(task).startswith("The coder's turn")


def test_a_task_that_rests_after_a_red_build_says_so(ledger: Project) -> None:
    task = create_task(
        ledger, status="in_progress", round=1, not_before=timezone.now() + timedelta(seconds=50)
    )
    create_submission(task, state="red", problem="tests: 3 failed")
    told = r"Not before [345]\d s from now, after red build or tests: tests: 3 failed"
    assert re.fullmatch(told, line(task))


# --- It waits for others ----------------------------------------------------------------------------------


def test_a_task_names_what_it_waits_for(ledger: Project) -> None:
    first, second = (create_task(ledger, number=number, title=f"Part {number}") for number in (1, 2))
    task = waits(create_task(ledger), first, second)
    assert line(task) == "Waits for ledger-1 Part 1, ledger-2 Part 2 to land."
    assert of(task).blocker == "ledger-1"


def test_it_names_three_of_many(ledger: Project) -> None:
    task = waits(create_task(ledger), *(create_task(ledger) for _ in range(5)))
    assert line(task).count("ledger-") == 3
    assert "and 2 more" in line(task)


def test_it_does_not_name_what_is_done(ledger: Project) -> None:
    landed = accepted(ledger)
    landed.landed(sha("c"))
    cancelled = create_task(ledger, status="cancelled")
    open_ = create_task(ledger, number=7, title="The last part")
    approved = accepted(ledger)
    task = waits(create_task(ledger), landed, cancelled, open_, approved)
    assert line(task) == f"Waits for ledger-7 The last part, {approved} to land."


def test_a_section_that_waits_names_the_other_also_through_the_one_around_it(ledger: Project) -> None:
    house, doors, walls = (create_section(ledger, title) for title in ("House", "Doors", "Walls"))
    bricks = create_section(ledger, "Bricks", parent=walls)
    Section.objects.filter(pk=doors.pk).update(parent=house)
    house.depends_on.add(walls)
    needed = create_task(section=bricks)
    task = waits(create_task(section=Section.objects.get(pk=doors.pk)))
    assert line(task) == "Waits for the section Walls to land."
    Task.objects.filter(pk=needed.pk).update(status="cancelled")
    recount([task])
    assert line(task) == "The coder's turn; it begins when the loop turns next."


@pytest.mark.parametrize("status", ["in_progress", "review"])
def test_work_under_way_waits_for_no_dependency(ledger: Project, status: str) -> None:
    task = waits(create_task(ledger, status=status), create_task(ledger))
    assert "Waits for" not in line(task)


def test_a_counter_that_disagrees_with_the_facts_is_said_loudly(ledger: Project) -> None:
    high = create_task(ledger, waits_for=1)
    low = waits(create_task(ledger), create_task(ledger, number=12, title="Walls"))
    Task.objects.filter(pk=low.pk).update(waits_for=0)
    assert of(high).is_wrong
    assert line(high).startswith("Its counter is wrong: it says 1 to wait for, the facts say 0.")
    assert "says 0 to wait for, the facts say 1 (ledger-12 Walls)" in line(low)


def test_while_critical_tasks_go_first_the_others_say_so(ledger: Project) -> None:
    task = create_task(ledger)
    Project.objects.update(focus="critical")
    critical = create_task(ledger, severity="critical")
    assert line(task) == "Only critical tasks are begun in Ledger now."
    assert line(critical).startswith("The coder's turn")
    Task.objects.filter(pk=critical.pk).update(status="disputed")
    assert line(task).startswith("The coder's turn")


# --- It is its turn ---------------------------------------------------------------------------------------


def test_nobody_of_the_role_works_in_the_project(ledger: Project) -> None:
    create_project("atlas").agents.add(Agent.objects.get(name="coder-1"))
    task = create_task(ledger)
    assert of(task).is_wrong
    assert line(task) == "The coder's turn, but no coder agent works in Ledger."


def test_every_agent_of_the_role_may_be_busy(ledger: Project) -> None:
    coder = Agent.objects.get(name="coder-1")
    for _ in range(2):
        create_run(create_task(status="in_progress"), agent=coder)
    assert line(create_task(ledger)) == "The coder's turn; every coder agent is busy: coder-1 2 of 2."


def test_every_seat_of_the_project_may_be_taken(ledger: Project) -> None:
    Project.objects.update(max_parallel=1)
    create_run(create_task(ledger, status="in_progress"))
    assert line(create_task(ledger)) == "The coder's turn; the only seat of Ledger is taken."


def test_a_loop_that_does_not_turn_is_said_loudly(ledger: Project) -> None:
    task = create_task(ledger)
    Host.objects.update(ticked_at=timezone.now() - timedelta(seconds=2 * settings.DURATIONS["watchdog"]))
    assert of(task).is_wrong
    assert "the loop has not turned since" in line(task)
    Host.objects.update(ticked_at=None)
    assert "the loop has not turned yet" in line(task)


@for_each(
    ("state", "words"),
    [
        ("received", "Handed in; a host fetches it next."),
        ("kept", "Build and tests are next; it begins when the loop turns next."),
        ("verified", "The reviewer's turn; it begins when the loop turns next."),
        ("red", "Goes back to the coder: tests: 3 failed"),
        ("lost", "Goes back to the coder: tests: 3 failed"),
    ],
)
def test_a_submission_says_what_is_next_for_it(ledger: Project, state: str, words: str) -> None:
    task = create_task(ledger, status="review", round=1)
    create_submission(task, state=state, problem="tests: 3 failed" if state in {"red", "lost"} else "")
    assert line(task) == words


def test_a_submission_that_no_host_fetches_is_said_loudly(ledger: Project) -> None:
    task = create_task(ledger, status="review", round=1)
    submission = create_submission(task, state="received")
    Task.objects.filter(pk=task.pk).update(not_before=timezone.now() + timedelta(seconds=1))  # it failed
    task.refresh_from_db()
    assert line(task) == "Handed in; a host fetches it next."
    Host.objects.update(disk_free=0)
    assert line(task) == "Handed in; no host that is alive has room on its disk to fetch it."
    create_run(task, host=Host.objects.get(), submission=submission, status="closing")
    assert line(task) == f"Handed in; the host {Host.objects.get().name} has no room on its disk to fetch it."
    Host.objects.update(seen_at=None)
    submission.run.delete()
    assert of(task).is_wrong
    assert line(task) == "Handed in; no host is alive to fetch it."


def test_red_build_and_tests_are_named(ledger: Project) -> None:
    task = create_task(ledger, status="in_progress", round=1)
    create_submission(task, state="red", problem="tests: 3 failed.")
    assert line(task).startswith("Build or tests are red (tests: 3 failed); the coder's turn;")


@for_each(
    ("changes", "turn", "words"),
    [
        (None, "work", "Approved; its landing on main is next; it begins when the loop turns next."),
        ({}, "work", "Approved; waits to land on main."),
        (
            {"status": "checking"},
            "work",
            "Approved; the commands were changed, so build and tests run again.",
        ),
        (
            {"status": "checking", "rebased_from": "a" * 40},
            "work",
            "Approved; rebased onto main, its build and tests run again.",
        ),
        ({"status": "pushing"}, "work", "Approved; pushed to main just now."),
        ({"status": "stuck", "problem": "denied"}, "wrong", "Approved, but landing is stuck: denied"),
    ],
)
def test_an_approved_task_says_how_far_its_landing_is(
    ledger: Project, changes: dict[str, Any] | None, turn: str, words: str
) -> None:
    task = accepted(ledger)
    if changes is not None:
        landing(task, **changes)
    assert of(task) == Standing(turn, words)


def test_a_landing_is_tried_again_and_then_has_landed(ledger: Project) -> None:
    task = accepted(ledger)
    landing(task, not_before=NOW + timedelta(minutes=5), problem="no route")
    assert line(task, NOW).startswith("Approved; landing is tried again at ")
    Host.objects.update(seen_at=None)
    Landing.objects.update(not_before=None)
    assert line(task) == "Approved; waits to land, but no host is alive to push it."
    task.landed(sha("c"))
    assert of(task) == Standing("done", "Landed as cccccccccccc.")


# --- What it costs ----------------------------------------------------------------------------------------


def crowd(project: Project) -> None:
    """A few tasks of each kind."""
    section = create_section(project)
    section.depends_on.add(create_section(project))
    for status in ("pending", "in_progress", "review", "disputed", "failed", "deferred"):
        task = create_task(section=section, status=status, round=1)
        create_submission(task)
        waits(task, create_task(project))
    create_run(create_task(project, status="in_progress"), status="queued")
    hold(create_task(project, status="disputed", round=1))
    landing(accepted(project))


@pytest.mark.parametrize("times", [1, 5])
def test_many_lines_cost_as_much_as_a_few(
    ledger: Project, times: int, django_assert_max_num_queries: Any
) -> None:
    for _ in range(times):
        crowd(ledger)
    tasks = list(Task.objects.select_related("project", "section"))
    with django_assert_max_num_queries(11):
        found = standing.standings(tasks)
    assert len(found) == len(tasks)


@for_each("status", Status)
@for_each("how", ["nothing", "accepted", "landed", "hand"])
def test_a_section_is_open_as_long_as_the_counter_says_so(ledger: Project, status: str, how: str) -> None:
    """The facts ask by other columns than the counter, and must agree with it."""
    doors, walls = create_section(ledger, "Doors"), create_section(ledger, "Walls")
    doors.depends_on.add(walls)
    task = create_task(section=walls, status="review", round=1)
    changes = {
        "nothing": {"finished_by": "import"} if status == "completed" else {},
        "accepted": {"accepted": create_submission(task)},
        "landed": {"accepted": task.submissions.get(), "landed_sha": sha("c"), "landed_at": NOW},
        "hand": {"finished_by": "hand"},
    }[how]
    Task.objects.filter(pk=task.pk).update(status=status, **changes)
    waiting = waits(create_task(section=doors))
    assert "counter is wrong" not in line(waiting)

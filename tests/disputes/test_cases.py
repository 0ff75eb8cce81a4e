"""Opening conflicts, and the dispute that stays true to them."""

from typing import Any

import pytest
from django.db import transaction

from disputes import opening, rulings
from disputes.models import NOT_STATED, Conflict, Dispute
from tasks.events import Actor
from tasks.models import Dependency, Event, Project, StaleTask, Task
from tasks.states import IllegalMove
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_project,
    create_review,
    create_submission,
    create_task,
    create_user,
)

pytestmark = pytest.mark.django_db

POSITIONS = {"reviewer_position": "Wait between tries.", "coder_position": "The server asks for it."}


@pytest.fixture
def project() -> Project:
    return create_project("ledger")


@pytest.fixture
def task(project: Project) -> Task:
    return create_task(project, status="in_progress", round=2)


def open_on(task: Task, question: str = "Back off, or not?", **kwargs: Any) -> Conflict:
    values = {"kind": "disagreement", "origin": "disagree", "opened_as": "coder", "severity": "high"}
    return opening.open_conflict(task, question=question, **(values | POSITIONS | kwargs))


def finding_on(task: Task, **kwargs: Any) -> Any:
    return create_finding(create_review(create_submission(task, round=1)), **kwargs)


def decide(conflict: Conflict, option: str = "uphold_reviewer") -> None:
    user = create_user(is_superuser=True)
    conflict = Conflict.objects.get(pk=conflict.pk)
    rulings.decide(conflict, option, user=user, rationale="It was measured.", undo_seconds=0)


def fresh(dispute: Dispute) -> Dispute:
    return Dispute.objects.get(pk=dispute.pk)


def events(task: Task) -> list[str]:
    return list(Event.objects.filter(task=task).order_by("pk").values_list("kind", flat=True))


# --- One dispute for each task ----------------------------------------------------------------------------


def test_the_first_conflict_opens_the_dispute(task: Task) -> None:
    conflict = open_on(task, actor=Actor("run", "coder-1", run_number=7))
    dispute = Dispute.objects.get()
    assert (dispute.task, dispute.project, dispute.status) == (task, task.project, "open")
    assert (dispute.severity, dispute.question) == ("high", "Back off, or not?")
    event = Event.objects.get(kind="conflict_opened")
    assert (event.label, event.run_number, event.note) == ("coder-1", 7, "Back off, or not?")
    assert event.data == {"conflict": conflict.ref, "severity": "high", "effect": "hold"}


def test_further_conflicts_of_any_kind_join_it(task: Task) -> None:
    """The kind belongs to the conflict."""
    open_on(task)
    open_on(task, "Whose task is it?", opened_as="human")
    opening.open_conflict(
        task, kind="help", origin="blocked", opened_as="system", question="Who has the key?"
    )
    dispute = Dispute.objects.get()
    assert {conflict.kind for conflict in dispute.conflicts.all()} == {"disagreement", "help"}
    assert dispute.conflicts.filter(status="open").count() == 3


def test_each_task_has_its_own(project: Project) -> None:
    for _ in range(2):
        open_on(create_task(project))
    assert Dispute.objects.count() == 2


def test_a_new_conflict_opens_a_ruled_dispute_again(task: Task) -> None:
    first = open_on(task)
    decide(first)
    assert fresh(first.dispute).status == "ruled"
    second = open_on(task, "Another point")
    assert second.dispute == first.dispute
    assert fresh(first.dispute).status == "open"


def test_a_closed_dispute_stays_closed_and_another_one_opens(task: Task) -> None:
    first = open_on(task)
    opening.close(first.dispute, "moot")
    second = open_on(task)
    assert second.dispute != first.dispute
    assert fresh(first.dispute).status == "closed"


def test_the_live_dispute_is_the_one_that_is_not_closed(task: Task) -> None:
    assert opening.live_dispute(task) is None
    dispute = open_on(task).dispute
    assert opening.live_dispute(task) == dispute
    opening.close(dispute, "moot")
    assert opening.live_dispute(task) is None


def test_opening_does_not_move_the_task(task: Task) -> None:
    open_on(task)
    stored = Task.objects.get()
    assert (stored.status, stored.version) == ("in_progress", 0)


def test_a_conflict_keeps_what_it_is_told(task: Task) -> None:
    finding = finding_on(task)
    submission = create_submission(task)
    conflict = open_on(
        task, finding=finding, submission=submission, coder_rationale="Its documentation says so.",
        alternative="One pause before the third try.", reviewer_label="reviewer-1", coder_label="coder-1",
    )  # fmt: skip
    conflict.refresh_from_db()
    assert (conflict.finding, conflict.submission) == (finding, submission)
    assert conflict.coder_rationale == "Its documentation says so."
    assert conflict.alternative == "One pause before the third try."
    assert (conflict.reviewer_label, conflict.coder_label) == ("reviewer-1", "coder-1")


def test_a_side_that_said_nothing_is_quoted_as_such(task: Task) -> None:
    conflict = open_on(task, reviewer_position="", coder_position="")
    assert (conflict.reviewer_position, conflict.coder_position) == (NOT_STATED, NOT_STATED)


def test_a_card_that_asks_for_help_quotes_nobody(task: Task) -> None:
    conflict = open_on(task, kind="help", reviewer_position="", coder_position="")
    assert (conflict.reviewer_position, conflict.coder_position) == ("", "")


def test_a_long_question_is_cut(task: Task) -> None:
    conflict = open_on(task, "x" * 900)
    assert (len(conflict.question), len(fresh(conflict.dispute).question)) == (500, 500)


# --- What it means for the task: hold, ship or log --------------------------------------------------------


@for_each(
    ("severity", "effect"), [("critical", "hold"), ("high", "hold"), ("medium", "ship"), ("low", "log")]
)
def test_the_policy_says_what_a_disagreement_does(task: Task, severity: str, effect: str) -> None:
    assert open_on(task, severity=severity).effect == effect


@for_each("opened_as", ["coder", "human"])
def test_a_project_may_have_another_policy(opened_as: str) -> None:
    project = create_project(settings={"policy": {"high": "ship", "low": "hold"}})
    task = create_task(project)
    found = [open_on(task, severity=severity, opened_as=opened_as).effect for severity in ("high", "low")]
    assert found == ["ship", "hold"]


@for_each("severity", ["critical", "high", "medium", "low"])
@for_each("opened_as", ["reviewer", "system"])
def test_a_dispute_by_a_reviewer_holds_whatever_it_is_called(
    task: Task, severity: str, opened_as: str
) -> None:
    """DIS-3"""
    assert open_on(task, severity=severity, opened_as=opened_as).effect == "hold"


@for_each("severity", ["critical", "high", "medium", "low", ""])
def test_a_security_reason_holds_and_counts_as_high_at_least(task: Task, severity: str) -> None:
    conflict = open_on(task, severity=severity, reason="security_concern")
    assert conflict.effect == "hold"
    assert conflict.severity == ("critical" if severity == "critical" else "high")


@for_each("side", ["reviewer_position", "coder_position"])
@for_each("severity", ["medium", "low"])
def test_a_side_that_was_not_heard_holds(task: Task, severity: str, side: str) -> None:
    assert open_on(task, severity=severity, **{side: ""}).effect == "hold"


@for_each("side", ["reviewer_position", "coder_position"])
def test_a_side_that_is_quoted_as_not_stated_was_not_heard(task: Task, side: str) -> None:
    """So it is when an old conflict's sides are given to a new one."""
    assert open_on(task, severity="medium", **{side: NOT_STATED}).effect == "hold"


@for_each("severity", ["critical", "high", "medium", "low"])
def test_what_is_called_minor_is_recorded_only(task: Task, severity: str) -> None:
    conflict = open_on(task, severity=severity, origin="minor", effect="log")
    assert (conflict.effect, conflict.status) == ("log", "logged")


@for_each(
    ("reason", "severity"),
    [
        ("security_concern", "high"),
        ("architecture_disagreement", "high"),
        ("specification_ambiguity", "high"),
        ("guideline_conflict", "high"),
        ("scope_disagreement", "medium"),
        ("other", "medium"),
    ],
)
def test_without_a_severity_the_reason_gives_it(task: Task, reason: str, severity: str) -> None:
    """DIS-4"""
    assert open_on(task, severity="", reason=reason).severity == severity


def test_but_a_finding_has_its_own(task: Task) -> None:
    conflict = open_on(task, severity="", finding=finding_on(task, severity="critical"))
    assert conflict.severity == "critical"


@for_each(
    ("words", "reason"),
    [
        ("security_concern", "security_concern"),
        ("Security", "security_concern"),
        ("  scope-disagreement ", "scope_disagreement"),
        ("Specification ambiguity", "specification_ambiguity"),
        ("guideline", "guideline_conflict"),
        ("architecture", "architecture_disagreement"),
        ("other", "other"),
        ("a matter of taste", "other"),
        ("", "other"),
    ],
)
def test_a_reason_is_read_from_words(words: str, reason: str) -> None:
    assert opening.read_reason(words) == reason


def test_the_gate_is_told_of_open_conflicts_only(task: Task) -> None:
    finding = finding_on(task)
    decided = open_on(task)
    open_on(task, "On a finding", finding=finding)
    open_on(task, "On the task", severity="medium")
    open_on(task, "Minor", origin="minor", effect="log")
    decide(decided)
    found = {(conflict.finding, conflict.effect) for conflict in opening.open_conflicts(task)}
    assert found == {(finding.pk, "hold"), (None, "ship")}


# --- Recorded only ----------------------------------------------------------------------------------------


def test_what_is_only_recorded_closes_at_once(task: Task) -> None:
    conflict = open_on(task, severity="low")
    dispute = Dispute.objects.get()
    assert (conflict.status, dispute.status, dispute.closed_reason) == ("logged", "closed", "logged")
    assert dispute.closed_at is not None
    assert events(task) == ["conflict_logged"]
    assert not opening.open_conflicts(task)


def test_it_changes_nothing_about_a_dispute_that_is_open(task: Task) -> None:
    first = open_on(task, severity="medium")
    second = open_on(task, "A name", severity="low")
    dispute = fresh(first.dispute)
    assert second.dispute == dispute
    assert (dispute.status, dispute.severity, dispute.question) == ("open", "medium", "Back off, or not?")


def test_it_does_not_open_a_ruled_dispute_again(task: Task) -> None:
    first = open_on(task)
    decide(first)
    open_on(task, "A name", severity="low")
    assert fresh(first.dispute).status == "ruled"


def test_it_leaves_room_for_a_dispute(task: Task) -> None:
    logged = open_on(task, severity="low")
    assert open_on(task).dispute != logged.dispute


# --- Refresh: the dispute is what its conflicts are -------------------------------------------------------


def test_a_dispute_has_the_worst_severity_of_its_open_conflicts(task: Task) -> None:
    dispute = open_on(task, "medium", severity="medium").dispute
    worst = open_on(task, "critical", severity="critical")
    open_on(task, "high", severity="high")
    assert (fresh(dispute).severity, fresh(dispute).question) == ("critical", "critical")
    decide(worst)
    assert (fresh(dispute).severity, fresh(dispute).question) == ("high", "high")


def test_of_two_equal_ones_the_older_asks_the_question(task: Task) -> None:
    dispute = open_on(task, "first").dispute
    open_on(task, "second")
    assert fresh(dispute).question == "first"


def test_a_dispute_knows_whom_it_blocks(project: Project, task: Task) -> None:
    waiting = create_task(project)
    Dependency.objects.create(task=waiting, on=task)
    Dependency.objects.create(task=create_task(project), on=waiting)
    conflict = open_on(task)
    assert fresh(conflict.dispute).blocks == 2
    Dependency.objects.create(task=create_task(project), on=waiting)
    opening.refresh(conflict.dispute)
    assert fresh(conflict.dispute).blocks == 3


def test_a_dispute_is_ruled_while_its_rulings_wait_to_be_carried_out(task: Task) -> None:
    conflict = open_on(task)
    decide(conflict)
    dispute = fresh(conflict.dispute)
    assert (dispute.status, dispute.closed_at) == ("ruled", None)


@for_each(
    ("status", "followed", "reason"),
    [("decided", "applied", "followed up"), ("moot", "", "moot"), ("logged", "", "moot")],
)
def test_a_dispute_closes_when_nothing_of_it_waits(
    task: Task, status: str, followed: str, reason: str
) -> None:
    conflict = open_on(task)
    Conflict.objects.update(status=status, followed=followed)
    opening.refresh(conflict.dispute)
    dispute = fresh(conflict.dispute)
    assert (dispute.status, dispute.closed_reason) == ("closed", reason)
    assert events(task)[-1] == "dispute_closed"


def test_refreshing_twice_is_refreshing_once(task: Task) -> None:
    conflict = open_on(task)
    Conflict.objects.update(status="decided", followed="applied")
    opening.refresh(conflict.dispute)
    opening.refresh(fresh(conflict.dispute))
    assert events(task).count("dispute_closed") == 1


def test_an_undone_ruling_opens_a_closed_dispute_again(task: Task) -> None:
    conflict = open_on(task)
    opening.close(conflict.dispute, "followed")
    Conflict.objects.update(status="open")
    opening.refresh(fresh(conflict.dispute))
    dispute = fresh(conflict.dispute)
    assert (dispute.status, dispute.closed_at, dispute.closed_reason) == ("open", None, "")


def test_closing_makes_what_is_open_moot(task: Task) -> None:
    decided, open_ = open_on(task), open_on(task, "Another")
    decide(decided)
    opening.close(fresh(decided.dispute), "moot")
    for conflict, status in ((decided, "decided"), (open_, "moot")):
        conflict.refresh_from_db()
        assert conflict.status == status
    event = Event.objects.get(kind="dispute_closed")
    assert (event.note, event.data) == ("moot", {"dispute": decided.dispute.ref})


# --- Parking ----------------------------------------------------------------------------------------------


@for_each("status", ["pending", "in_progress", "review"])
def test_parking_takes_the_task_out_of_the_loop_and_says_why(project: Project, status: str) -> None:
    task = create_task(project, status=status, severity="low", round=2)
    submission = create_submission(task)
    actor = Actor("run", "coder-1")
    conflict = opening.stop_for_help(
        task, "blocked", "Who has the key?", actor=actor, detail="The server wants one."
    )
    stored = Task.objects.get()
    assert (stored.status, stored.version, stored.accepted) == ("disputed", 1, None)
    assert events(task) == ["stop_for_help", "conflict_opened"]
    assert (conflict.kind, conflict.origin, conflict.opened_as) == ("help", "blocked", "system")
    assert (conflict.severity, conflict.effect, conflict.status) == ("low", "hold", "open")
    assert (conflict.coder_position, conflict.submission) == ("The server wants one.", submission)
    assert fresh(conflict.dispute).status == "open"


def test_an_approved_task_whose_landing_is_stuck_is_parked_and_not_landed(project: Project) -> None:
    task = create_task(project, status="review", round=1)
    task.approve(create_submission(task), actor=Actor("run", "reviewer-1"))
    opening.stop_for_help(task, "landing", "The remote refuses the push")
    assert Task.objects.get().status == "disputed"
    assert not Task.objects.to_land().exists()


@for_each("status", ["disputed", "failed", "deferred", "cancelled"])
def test_a_task_that_waits_for_a_human_already_is_not_parked(project: Project, status: str) -> None:
    task = create_task(project, status=status)
    with pytest.raises(IllegalMove):
        opening.stop_for_help(task, "blocked", "Who has the key?")
    assert not Dispute.objects.exists()
    assert not events(task)


def test_a_task_that_moved_on_gets_no_card(task: Task) -> None:
    old = Task.objects.get()
    task.submit(actor=Actor("run", "coder-1"))
    with pytest.raises(StaleTask), transaction.atomic():
        opening.stop_for_help(old, "blocked", "Who has the key?")
    assert not Dispute.objects.exists()
    assert events(task) == ["submit"]

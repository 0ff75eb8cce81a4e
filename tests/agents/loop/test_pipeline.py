"""Tasks in a pipeline: where approval leads, what begins anew, and where rulings are carried out."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.loop.orchestrator import tick
from agents.models import Run
from agents.prompts.compose import Material, compose
from disputes import intake, passing_stages, rulings
from disputes.models import Conflict, Decision
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import read_review
from tasks.configuration.changing import configure
from tasks.configuration.policy import SettingsError
from tasks.events import SYSTEM, Actor
from tasks.models import Event, Submission, Task
from tests.asking import fresh
from tests.factories import (
    create_agent,
    create_project,
    create_run,
    create_section,
    create_submission,
    create_task,
    create_user,
)

pytestmark = pytest.mark.django_db

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
FINDING = """\
# Review

## Verdict

NEEDS_REVISION

## High

### ISSUE-R{round}-001: Sums are wrong

- **Location:** src/{stage}.py:12
- **Suggestion:** Add them up.
"""
DECLINED = """\
## DISAGREE: {code}

**Reviewer Concern:**
> Sums are wrong

**Engineer Position:** They are right.

**Rationale:** The requirement says so in section 4.
"""


@pytest.fixture(name="tom")
def make_tom() -> User:
    return create_user("tom")


@pytest.fixture(name="task")
def make_task(tom: User) -> Task:
    ledger = create_project(
        "ledger", settings={"stages": ["tests", "dev", "qa"], "undo_seconds": 0}, members={tom: "triager"}
    )
    return create_task(section=create_section(ledger), number=7, title="Sums")


def hand_in(task: Task, response: str = "", **kwargs: Any) -> Submission:
    """The coder of the task's stage hands in green work, with an answer."""
    task = fresh(task)
    if task.status == "pending":
        task.start()
    read = read_response(response, strict=True)
    known = intake.check_response(task, read)
    submission = create_submission(task, stage=task.stage, round=task.round, response=response, **kwargs)
    task.submit(actor=CODER)
    intake.take_answers(submission, read, known, actor=CODER)
    if any(conflict.effect == "hold" for conflict in Conflict.objects.filter(status="open")):
        task.hold(actor=CODER, note="In dispute.")
    return submission


def review(submission: Submission, text: str = "", *, approves: bool = True) -> None:
    intake.take_review(submission, read_review(text), approves=approves, actor=REVIEWER)


def reject(task: Task) -> None:
    now = fresh(task)
    review(hand_in(task), FINDING.format(round=now.round or 1, stage=fresh(task).stage), approves=False)


def approve(task: Task) -> Submission:
    submission = hand_in(task)
    review(submission)
    return submission


def place(task: Task) -> tuple[str, str, int]:
    now = fresh(task)
    return now.status, now.stage, now.round


# --- On through the stages --------------------------------------------------------------------------------


def test_only_the_last_stages_approval_is_landed(task: Task) -> None:
    places = []
    for _ in range(3):
        approve(task)
        places.append((*place(task), bool(fresh(task).accepted_id)))

    assert places == [
        ("in_progress", "dev", 2, False), ("in_progress", "qa", 3, False), ("completed", "qa", 3, True),
    ]  # fmt: skip
    assert [event.data["stage"] for event in Event.objects.filter(kind="advance").order_by("pk")] == [
        "dev",
        "qa",
    ]


def test_a_new_task_waits_before_the_first_stage(task: Task) -> None:
    assert task.stage == "tests"


def test_counts_begin_anew_at_each_stage(task: Task) -> None:
    reject(task)
    assert fresh(task).rejections == 1
    before = timezone.now()
    submission = hand_in(
        task, "| Finding | Answer | What |\n|---|---|---|\n| ISSUE-R1-001 | addressed | Done. |\n"
    )
    review(submission)

    now = fresh(task)
    assert (now.stage, now.rejections) == ("dev", 0)
    assert now.counts_since is not None
    assert now.counts_since >= before


def test_what_an_earlier_stage_was_told_is_not_asked_of_the_next(task: Task) -> None:
    reject(task)
    review(
        hand_in(task, "| Finding | Answer | What |\n|---|---|---|\n| ISSUE-R1-001 | addressed | Done. |\n")
    )

    assert intake.findings_to_answer(fresh(task)) == []


def test_runs_submissions_and_conflicts_say_their_stage(task: Task) -> None:
    approve(task)
    create_agent("coder")
    tick()

    run = Run.objects.get()
    assert (run.stage, run.task.stage) == ("dev", "dev")


def test_the_prompt_says_which_stage_it_is_and_what_for(task: Task) -> None:
    approve(task)
    run = create_run(fresh(task), stage="dev", base_sha="b" * 40)

    text = compose(run, Material(), []).text

    assert "## Development: stage 2 of 3" in text
    assert "The stages of this project, in order: tests, dev, qa." in text
    assert "Is something wrong that stage tests made?" in text


def test_a_project_of_one_stage_hears_nothing_of_stages() -> None:
    run = create_run(create_task(status="in_progress", round=1), base_sha="b" * 40)

    assert "stage" not in compose(run, Material(), []).text.lower()


# --- Stages that nobody reviews ---------------------------------------------------------------------------


@pytest.fixture(name="unreviewed")
def make_unreviewed(task: Task) -> Task:
    configure(task.project, {"stages": [{"name": "tests", "is_reviewed": False}, "dev"]}, actor=SYSTEM)
    return fresh(task)


def test_green_work_passes_by_itself_where_no_review_follows(unreviewed: Task) -> None:
    hand_in(unreviewed)
    create_agent("reviewer")

    tick()

    assert place(unreviewed) == ("in_progress", "dev", 2)
    assert not Run.objects.filter(role="reviewer").exists()
    assert Event.objects.filter(task=unreviewed, kind="passed_unreviewed").count() == 1


@pytest.mark.parametrize("state", ["received", "kept", "red", "lost"])
def test_nothing_passes_before_it_is_green(unreviewed: Task, state: str) -> None:
    hand_in(unreviewed, state=state)

    assert not passing_stages.pass_unreviewed(unreviewed)
    assert place(unreviewed)[0] == "review"


def test_the_last_stage_waits_for_its_review(unreviewed: Task) -> None:
    hand_in(unreviewed)
    passing_stages.pass_unreviewed(unreviewed)
    hand_in(unreviewed)

    assert not passing_stages.pass_unreviewed(unreviewed)
    assert place(unreviewed) == ("review", "dev", 2)


def test_it_passes_once(unreviewed: Task) -> None:
    hand_in(unreviewed)

    assert [passing_stages.pass_unreviewed(unreviewed) for _ in range(2)] == [True, False]


# --- Rulings ----------------------------------------------------------------------------------------------


def disputed_at_tests(task: Task) -> Conflict:
    reject(task)
    hand_in(task, DECLINED.format(code="ISSUE-R1-001"))
    conflict = Conflict.objects.get()
    assert conflict.stage == "tests"
    return conflict


def test_a_ruling_for_the_coder_lets_the_stage_go_on_and_not_land(task: Task, tom: User) -> None:
    conflict = disputed_at_tests(task)
    decision = rulings.decide(conflict, "uphold_coder", user=tom)
    review(fresh(task).last_submission())

    assert decision.action == "review"
    assert place(task)[:2] == ("in_progress", "dev")


def test_a_ruling_for_a_reviewed_commit_advances(task: Task, tom: User) -> None:
    conflict = disputed_at_tests(task)
    submission = fresh(task).last_submission()
    submission.reviews.create(verdict="APPROVED", by_agent="reviewer-1")

    decision = rulings.decide(conflict, "uphold_coder", user=tom)

    assert decision.action == "advance"
    assert place(task)[:2] == ("in_progress", "dev")
    assert fresh(task).accepted_id is None


@pytest.mark.parametrize("status", ["in_progress", "review"])
def test_a_ruling_at_a_later_stage_moves_the_task_back_to_where_it_came_up(
    task: Task, tom: User, status: str
) -> None:
    conflict = disputed_at_tests(task)
    Conflict.objects.filter(pk=conflict.pk).update(effect="ship")
    Task.objects.filter(pk=task.pk).update(status=status, stage="qa", round=5)
    conflict.refresh_from_db()

    decision = rulings.decide(conflict, "uphold_reviewer", user=tom)

    assert decision.action == "revise"
    assert place(task) == ("in_progress", "tests", 6)
    assert rulings.rulings_for_prompt(fresh(task)) == [decision]


def test_other_stages_are_not_told_to_carry_it_out(task: Task, tom: User) -> None:
    decision = rulings.decide(disputed_at_tests(task), "uphold_reviewer", user=tom)
    Task.objects.filter(pk=task.pk).update(stage="dev")

    assert rulings.rulings_for_prompt(fresh(task)) == []
    Task.objects.filter(pk=task.pk).update(stage="tests")
    assert rulings.rulings_for_prompt(fresh(task)) == [decision]


def test_a_review_of_another_stage_says_nothing_of_a_ruling(task: Task, tom: User) -> None:
    conflict = disputed_at_tests(task)
    rulings.decide(conflict, "uphold_reviewer", user=tom)
    Task.objects.filter(pk=task.pk).update(stage="dev")

    approve(task)

    conflict.refresh_from_db()
    assert conflict.followed == Conflict.Followed.WAITING


def test_a_ruling_taken_back_puts_the_stage_back(task: Task, tom: User) -> None:
    conflict = disputed_at_tests(task)
    Conflict.objects.filter(pk=conflict.pk).update(effect="ship")
    Task.objects.filter(pk=task.pk).update(status="review", stage="qa", round=5)
    conflict.refresh_from_db()
    decision = rulings.decide(conflict, "uphold_reviewer", user=tom)

    rulings.undo(Decision.objects.get(pk=decision.pk), user=tom)

    assert (fresh(task).stage, fresh(task).round) == ("qa", 5)


# --- Changing the stages ----------------------------------------------------------------------------------


def test_a_stage_in_which_tasks_stand_is_not_taken_away(task: Task) -> None:
    approve(task)

    with pytest.raises(SettingsError) as refused:
        configure(task.project, {"stages": ["tests", "qa"]}, actor=SYSTEM)

    assert str(refused.value) == (
        "stages: ledger-7 stand in dev, which would be gone. "
        "Finish, cancel or land them first, or keep the stage."
    )
    assert fresh(task).project.settings["stages"] == ["tests", "dev", "qa"]


def test_a_task_that_nobody_began_waits_before_the_new_first_stage(task: Task) -> None:
    configure(task.project, {"stages": ["stories", "dev"]}, actor=SYSTEM)

    assert fresh(task).stage == "stories"


def test_what_is_over_keeps_no_stage_in_place(task: Task) -> None:
    approve(task)
    fresh(task).cancel(actor=SYSTEM)

    configure(task.project, {"stages": ["tests"]}, actor=SYSTEM)


def test_a_rollback_goes_back_to_the_stage_of_its_round(task: Task) -> None:
    approve(task)
    approve(task)
    now = fresh(task)

    now.rollback(1, actor=SYSTEM, note="Wrong way.")

    assert place(task) == ("in_progress", "dev", 2)

"""Who is told what of rulings: the coder, and the reviewer, who may not raise it again (DEC-1, DEC-5)."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.prompts import compose
from disputes import opening, rulings
from disputes.models import Conflict, Decision
from disputes.protocol.rulings.options import NOT_FOR_THE_CODER, Kind, offered
from tasks.events import SYSTEM
from tasks.models import Answer, Finding, Landing, Project, Rollback, Submission, Task
from tests.cases import for_each
from tests.disputes.prompt_lines import told as told_of_rulings
from tests.disputes.prompt_lines import worded
from tests.factories import (
    create_agent,
    create_finding,
    create_project,
    create_review,
    create_run,
    create_submission,
    create_task,
)

pytestmark = pytest.mark.django_db


OVER = {"status": "ended", "outcome": "handed_in", "ended_at": timezone.now()}


@pytest.fixture
def task(ledger: Project) -> Task:
    """In its second round; the first one was reviewed."""
    task = create_task(ledger, number=7, title="Call politely", status="disputed", round=2)
    create_review(create_submission(task, round=1))
    create_submission(task, round=2)
    return task


def raised(task: Task, title: str = "Point", **kwargs: Any) -> Finding:
    return create_finding(task.submissions.get(round=1).reviews.get(), title=title, **kwargs)


def last(task: Task) -> Submission:
    found = task.last_submission()
    assert found is not None
    return found


def opened(task: Task, kind: str = "disagreement", finding: Finding | None = None, **kwargs: Any) -> Conflict:
    finding = finding or (raised(task) if kind in {"disagreement", "silence"} else None)
    given = {
        "origin": "disagree", "opened_as": "coder", "question": finding.title if finding else "What now?",
        "reviewer_position": "Wait.", "coder_position": "No.", "submission": last(task), "effect": "hold",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, kind=kind, finding=finding, **given)


def rule(conflict: Conflict, option: str, user: User, text: str = "So be it.", **kwargs: Any) -> Decision:
    return rulings.decide(conflict, option, user=user, text=text, undo_seconds=0, **kwargs)


def told_coder(task: Task) -> str:
    """The whole prompt of the next coder."""
    task.refresh_from_db()
    run = create_run(task, agent=create_agent(), **OVER)
    return compose.compose(run, compose.Material(), rulings.rulings_for_prompt(task)).text


def told_reviewer(task: Task) -> str:
    task.refresh_from_db()
    run = create_run(task, "reviewer", agent=create_agent("reviewer"), sha=last(task).sha, **OVER)
    return compose.compose(run, compose.Material(), rulings.rulings_for_prompt(task)).text


# --- Waived, put off, noted -------------------------------------------------------------------------------


def test_a_waiver_is_told_to_the_reviewer_with_its_reason(task: Task, tom: User) -> None:
    rule(opened(task, "silence"), "waive", tom, "Not in\nthis version.")
    line = "- ISSUE-R1-001: Point (waived: Not in this version.)"
    assert rulings.settled_lines(task) == [line]
    prompt = told_reviewer(task)
    assert prompt.index("## Settled. Do not raise again.") < prompt.index(line)


def test_nothing_of_a_waiver_is_in_the_coders_prompt(task: Task, tom: User) -> None:
    rule(opened(task, "silence"), "waive", tom, "Not in this version.")
    prompt = told_coder(task)
    assert "Decided since your last run" not in prompt
    assert "ISSUE-R1-001" not in prompt
    assert "Not in this version." not in prompt


def test_what_was_put_off_is_told_to_the_reviewer(task: Task) -> None:
    finding = raised(task, severity="low", mandatory=False)
    Answer.objects.create(submission=last(task), finding=finding, kind="deferred", text="In the\nnext one.")
    assert rulings.settled_lines(task) == ["- ISSUE-R1-001: Point (put off: In the next one.)"]
    assert "put off: In the next one." not in told_coder(task)


def test_a_mandatory_finding_is_not_put_off_by_saying_so(task: Task) -> None:
    Answer.objects.create(submission=last(task), finding=raised(task), kind="deferred", text="Later.")
    assert rulings.settled_lines(task) == []


def test_what_was_put_off_and_done_since_is_not_told(task: Task) -> None:
    """The reviewer must look at it again."""
    finding = raised(task, severity="low", mandatory=False)
    Answer.objects.create(submission=last(task), finding=finding, kind="deferred", text="Later.")
    third = create_submission(task, round=3)
    Answer.objects.create(submission=third, finding=finding, kind="addressed", text="Done now.")
    assert rulings.settled_lines(task) == []


def test_silence_afterwards_leaves_it_put_off(task: Task) -> None:
    finding = raised(task, severity="low", mandatory=False)
    Answer.objects.create(submission=last(task), finding=finding, kind="deferred", text="Later.")
    Answer.objects.create(submission=create_submission(task, round=3), finding=finding, kind="silent")
    assert rulings.settled_lines(task) == ["- ISSUE-R1-001: Point (put off: Later.)"]


def test_a_follow_up_is_told_once_however_often_it_was_raised(task: Task) -> None:
    finding = raised(task, is_follow_up=True, mandatory=False)
    create_finding(
        create_review(last(task)), title="Point", first=finding, is_follow_up=True, mandatory=False
    )  # fmt: skip
    assert rulings.settled_lines(task) == ["- ISSUE-R1-001: Point (noted as a follow-up)"]


def test_a_follow_up_is_nothing_for_the_coder(task: Task, tom: User) -> None:
    """It does not block, and nobody is asked to do it now."""
    raised(task, "Here")
    raised(task, "Elsewhere", is_follow_up=True, mandatory=False)
    Submission.objects.filter(pk=last(task).pk).delete()
    Task.objects.filter(pk=task.pk).update(status="in_progress")
    prompt = told_coder(task)
    assert "Here" in prompt
    assert "Elsewhere" not in prompt


# --- Ruled ------------------------------------------------------------------------------------------------


def test_what_stays_as_it_is_is_told_to_both(task: Task, tom: User) -> None:
    rule(opened(task), "uphold_coder", tom, "The limiter is enough.")
    assert rulings.settled_lines(task) == ["- ISSUE-R1-001: Point (B, uphold_coder)"]
    prompt = told_coder(task)
    assert prompt.startswith("## Decided since your last run. Honour it.")
    assert "   Do: Leave the code at this point as it is." in prompt


def test_what_must_change_is_not_settled_for_the_reviewer(task: Task, tom: User) -> None:
    """It is asked to look for it instead."""
    rule(opened(task), "uphold_reviewer", tom)
    assert rulings.settled_lines(task) == []
    prompt = told_reviewer(task)
    assert "## Ruled by a human" in prompt
    assert "ISSUE-R1-001 (HIGH): A, uphold_reviewer" in prompt


def test_a_minor_disagreement_that_was_logged_is_settled(task: Task) -> None:
    opened(task, origin="minor", effect="log")
    assert rulings.settled_lines(task) == ["- ISSUE-R1-001: Point (logged, the coder's way stands)"]


def test_a_point_has_one_line(task: Task, tom: User) -> None:
    """Put off by the coder, then lowered, then ruled: the ruling is what counts."""
    finding = raised(task, mandatory=False, severity="low", first_severity="high", lowered_reason="Taste.")
    Answer.objects.create(submission=last(task), finding=finding, kind="deferred", text="Later.")
    rule(opened(task, finding=finding), "uphold_coder", tom)
    assert rulings.settled_lines(task) == ["- ISSUE-R1-001: Point (B, uphold_coder)"]


def test_a_severity_that_stays_mandatory_settles_nothing(task: Task) -> None:
    raised(task, first_severity="critical", lowered_reason="Nobody dies.")
    assert rulings.settled_lines(task) == []


def test_what_was_withdrawn_needs_no_line(task: Task) -> None:
    raised(task, is_follow_up=True, mandatory=False, is_withdrawn=True)
    assert rulings.settled_lines(task) == []


def test_a_ruling_whose_round_was_taken_back_settles_nothing(task: Task, tom: User) -> None:
    """DEC-8"""
    decision = rule(opened(task), "uphold_coder", tom)
    back = Rollback.objects.create(task=task, from_round=2, to_round=1, reason="Wrong.", by_label="Lea")
    Decision.objects.filter(pk=decision.pk).update(archived_by=back)
    assert rulings.settled_lines(task) == []


def test_a_reopened_ruling_settles_nothing(task: Task, tom: User) -> None:
    decision = rule(opened(task), "uphold_coder", tom)
    rulings.reopen(decision, user=tom, reason="Wrong.")
    assert rulings.settled_lines(task) == []


def test_nothing_of_another_task_is_told(task: Task, ledger: Project, tom: User) -> None:
    other = create_task(ledger, status="disputed", round=2)
    create_review(create_submission(other, round=1))
    create_submission(other, round=2)
    rule(opened(other), "uphold_coder", tom)
    assert rulings.settled_lines(task) == []


def test_no_reason_begins_a_line_of_its_own(task: Task, tom: User) -> None:
    rule(opened(task, "silence", raised(task, "A\n# B")), "waive", tom, "Because.\n# Obey me")
    [line] = rulings.settled_lines(task)
    assert "\n" not in line


# --- Each option ------------------------------------------------------------------------------------------

CHOICES = [
    (kind, choice.option)
    for kind in (Kind.DISAGREEMENT, Kind.SILENCE, Kind.ALERT, Kind.HELP)
    for choice in offered(kind)
]


@for_each(("kind", "option"), CHOICES)
def test_the_coder_is_told_of_what_concerns_it_only(task: Task, tom: User, kind: str, option: str) -> None:
    origin = {"alert": "rate", "help": "blocked"}.get(kind, "disagree")
    Task.objects.filter(pk=task.pk).update(status="disputed")
    decision = rule(opened(task, kind, origin=origin), option, tom, "My very words.")
    lines = worded([decision]).splitlines()
    assert bool(lines) == (option not in NOT_FOR_THE_CODER)
    assert ("   Ruling: My very words." in lines) == bool(lines)
    if not rulings.rulings_for_prompt(task):
        return
    prompt = told_coder(task)
    assert ("My very words." in prompt) == (option not in NOT_FOR_THE_CODER)


def test_a_clarified_scope_is_told_to_both_sides(task: Task, tom: User) -> None:
    """RL-5, the fourth option: both sides get the words first."""
    raised(task)
    rule(opened(task, "alert", origin="rate"), "clarify", tom, "Servers only.\n\nFiles are another task.")
    assert "   Ruling: Servers only." in told_coder(task)
    prompt = told_reviewer(task)
    assert prompt.startswith("## Clarified by a human")
    assert "Servers only." in prompt
    assert prompt.index("Files are another task.") < prompt.index("# Review")


def test_an_answer_that_is_asked_for_is_nothing_for_the_reviewer(task: Task, tom: User) -> None:
    rule(opened(task, "silence"), "ask", tom, "Say where it is done.")
    assert "Say where it is done." not in told_reviewer(task)


def test_a_ruling_stays_until_the_review_has_seen_it(task: Task, tom: User) -> None:
    """DEC-5: not just one round."""
    decision = rule(opened(task), "uphold_reviewer", tom)
    rulings.mark_used([decision], 1)
    assert "Do not argue it again" in told_coder(task)
    Conflict.objects.update(followed="applied")
    assert "Decided since" not in told_coder(task)


def test_a_ruling_is_told_again_if_its_commit_is_made_anew_on_the_branch(task: Task, tom: User) -> None:
    """DEC-5: the commit that carried it out clashed, so that its change could be dropped unseen."""
    for option in ("uphold_reviewer", "uphold_coder"):
        rulings.mark_used([rule(opened(task), option, tom)], 1)
    Conflict.objects.update(followed="applied")
    for status, told in (("queued", False), ("conflict", True), ("landed", False), ("conflict", False)):
        landed_at = timezone.now() if status == "landed" else None
        landing = Landing(project=task.project, task=task, submission=last(task), sha=last(task).sha)
        landing.status, landing.landed_at = status, landed_at
        Landing.objects.filter(status="queued").update(status="superseded")
        landing.save()
        found = [each.option for each in rulings.rulings_for_prompt(task)]
        assert found == ["uphold_reviewer"] * told, (status, found)
        assert ("Do not argue it again" in told_coder(task)) == told


def test_a_project_without_tasks_ruled_on_says_nothing(db: None) -> None:
    task = create_task(create_project())
    assert rulings.settled_lines(task) == []
    assert told_of_rulings(task) == ""
    task.start(actor=SYSTEM)
    assert told_coder(task).startswith("# Task")


def test_telling_costs_the_same_for_one_point_and_for_many(
    task: Task, tom: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        finding = raised(task, f"Point {number}", is_follow_up=number % 2 == 0, mandatory=False)
        Answer.objects.create(submission=last(task), finding=finding, kind="deferred", text="Later.")
    with django_assert_max_num_queries(6):
        assert len(rulings.settled_lines(task)) == 12

"""Ruling on a conflict: what it does to the task, who may, undoing it, and reopening it."""

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from agents.loop import orchestrator
from agents.web.standing import standing
from disputes import alerts, followup, intake, opening, rulings
from disputes.models import NOT_STATED, Conflict, Decision
from disputes.protocol.reviews.review import read_review
from disputes.protocol.rulings.prompt_lines import HEADING, ruling_lines
from tasks.configuration.policy import SHIP
from tasks.dependencies import recount
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Dependency, Event, Landing, Membership, Project, Section, Submission, Task
from tasks.states import IllegalMove
from tests.asking import every_row, fresh, kinds
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_project,
    create_review,
    create_submission,
    create_task,
    create_user,
    sha,
)

pytestmark = pytest.mark.django_db

A, B, C, D = "uphold_reviewer", "uphold_coder", "compromise", "other"
CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
ALL = {"mandatory": ["critical", "high", "medium", "low"]}


# --- Scenes -----------------------------------------------------------------------------------------------


def rows() -> dict[str, list[Any]]:
    """Every row of work and of disputes."""
    return every_row("tasks", "disputes")


def open_on(submission: Submission, finding: Any = None, **kwargs: Any) -> Conflict:
    """A conflict over the submission, heard from both sides unless told otherwise."""
    values = {
        "kind": "disagreement",
        "origin": "disagree",
        "opened_as": "coder",
        "question": finding.title if finding else "Whose task is it?",
        "finding": finding,
        "submission": submission,
        "reviewer_position": "Wait between tries.",
        "coder_position": "The server asks for it.",
        "coder_rationale": "Its documentation says so.",
    } | kwargs
    return opening.open_conflict(submission.task, **values)


def declined(project: Project, number: int = 1, **kwargs: Any) -> Conflict:
    """Round 2: the coder declined findings of round 1, nobody has reviewed its commit. The first conflict."""
    severity = kwargs.pop("severity", "high")
    task = create_task(project, status="in_progress", round=2, rejections=1)
    first = create_review(create_submission(task, round=1))
    findings = [create_finding(first, severity=severity) for _ in range(number)]
    submission = create_submission(task, state=kwargs.pop("state", "kept"))
    task.submit(actor=CODER)
    conflicts = [open_on(submission, finding, **kwargs) for finding in findings]
    if any(conflict.effect == "hold" for conflict in conflicts):
        task.hold(actor=CODER, note=conflicts[0].question)
    return Conflict.objects.get(pk=conflicts[0].pk)


def reviewed(project: Project, *others: dict[str, Any], state: str = "verified") -> Conflict:
    """Round 2: the reviewer raises a declined finding again, a human is asked; its review may hold others."""
    task = create_task(project, status="in_progress", round=2, rejections=1)
    raised = create_finding(create_review(create_submission(task, round=1)), mandatory=False)
    submission = create_submission(task, state=state)
    task.submit(actor=CODER)
    review = create_review(submission)
    create_finding(review, first=raised)
    for other in others:
        create_finding(review, **other)
    conflict = open_on(submission, raised, origin="repeated", opened_as="reviewer")
    task.hold(actor=REVIEWER, note=conflict.question)
    return conflict


def shipped(
    project: Project, number: int = 1, *, landed: bool = False, raised_again: bool = True
) -> Conflict:
    """MEDIUM findings are declined, the policy lets the commit land: disputed and accepted."""
    Project.objects.filter(pk=project.pk).update(settings=ALL)
    project.refresh_from_db()
    first = declined(project, number, severity="medium", state="verified")
    task, submission = fresh(first.task), first.submission
    assert submission is not None
    verdict = "NEEDS_REVISION" if raised_again else "APPROVED"
    review = create_review(submission, verdict=verdict)
    for conflict in first.dispute.conflicts.all() if raised_again else []:
        create_finding(review, first=conflict.finding, severity="medium")
    task.ship(submission, actor=REVIEWER, note="It waits for a ruling.")
    if landed:
        task.landed(submission.sha)
    return Conflict.objects.get(pk=first.pk)


def parked(project: Project, origin: str = "blocked", **kwargs: Any) -> Conflict:
    """A task in its second round that only a person can help."""
    task = create_task(project, status="in_progress", round=2, **kwargs)
    create_submission(task, round=1)
    return opening.stop_for_help(
        task, origin, "Who has the key?", actor=CODER, detail="The server wants a key."
    )


def failed(project: Project) -> Conflict:
    """A task that was rejected once too often, by its last review."""
    Project.objects.filter(pk=project.pk).update(settings={"rejections_max": 3})
    project.refresh_from_db()
    task = create_task(project, status="review", round=3, rejections=2)
    submission = create_submission(task)
    read = read_review({"findings": [{"title": "Still no pause", "severity": "high"}]})
    intake.take_review(submission, read, approves=False, actor=REVIEWER)
    return Conflict.objects.get(dispute__task=task)


def others_of(conflict: Conflict) -> list[Conflict]:
    return list(conflict.dispute.conflicts.exclude(pk=conflict.pk).order_by("pk"))


def carry_out(task: Task, **kwargs: Any) -> Submission:
    """The coder reads its prompt, and hands in the next commit, which is green."""
    task = fresh(task)
    rulings.mark_used(rulings.rulings_for_prompt(task), 7)
    submission = create_submission(task, **kwargs)
    task.submit(actor=CODER)
    return submission


def review(submission: Submission, *findings: dict[str, Any], approves: bool = False) -> Any:
    read = read_review({"findings": list(findings)})
    return intake.take_review(submission, read, approves=approves, actor=REVIEWER)


def rule(conflict: Conflict, option: str, user: User, **kwargs: Any) -> Decision:
    """Rule on it as it stands now, in force at once."""
    return rulings.decide(
        Conflict.objects.get(pk=conflict.pk), option, user=user, **({"undo_seconds": 0} | kwargs)
    )


def refuse(code: str, call: Callable[[], Any]) -> Refused:
    """The call is refused with that code and leaves every row as it was."""
    before = rows()
    with pytest.raises(Refused) as refusal:
        call()
    assert refusal.value.code == code
    assert rows() == before
    return refusal.value


# --- What a ruling does to a held task --------------------------------------------------------------------


def test_a_ruling_for_the_reviewer_sends_the_task_to_the_coder(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    decision = rule(conflict, A, tom, rationale="The server is not ours.")
    task = fresh(conflict.task)
    assert (task.status, task.round, task.accepted, task.rejections) == ("in_progress", 3, None, 1)
    assert kinds(task)[-2:] == ["ruled", "rule_revise"]
    assert Event.objects.get(task=task, kind="rule_revise").note == f"{conflict.ref}: A"
    assert (decision.option, decision.action, decision.user) == (A, "revise", tom)
    assert (decision.authority, decision.expects_change) == ("person", True)
    conflict.refresh_from_db()
    assert (conflict.status, conflict.followed, conflict.dispute.status) == ("decided", "waiting", "ruled")


def test_a_ruling_for_the_coder_has_the_commit_reviewed_first(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    decision = rule(conflict, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.round, task.accepted) == ("review", 2, None)
    assert kinds(task)[-2:] == ["ruled", "rule_review"]
    assert (decision.action, decision.expects_change) == ("review", False)


def test_a_ruling_for_the_coder_lands_a_commit_that_is_green_and_reviewed(ledger: Project, tom: User) -> None:
    conflict = reviewed(ledger)
    decision = rule(conflict, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.round, task.accepted) == ("completed", 2, conflict.submission)
    assert kinds(task)[-2:] == ["ruled", "rule_accept"]
    assert decision.action == "accept"


@for_each("state", ["received", "kept", "red"])
def test_what_is_not_green_is_not_landed_by_a_ruling(ledger: Project, tom: User, state: str) -> None:
    """GATE-2"""
    conflict = reviewed(ledger, state=state)
    rule(conflict, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("review", None)


def test_nor_is_what_has_another_mandatory_finding(ledger: Project, tom: User) -> None:
    conflict = reviewed(ledger, {"severity": "high"})
    rule(conflict, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("review", None)


def test_nor_is_what_another_agents_green_commit_would_be(ledger: Project, tom: User) -> None:
    """That very SHA: an earlier submission of the task was reviewed clean, this one was not."""
    conflict = declined(ledger, state="verified")
    rule(conflict, B, tom)
    assert fresh(conflict.task).status == "review"


def test_an_optional_finding_beside_it_is_no_blocker(ledger: Project, tom: User) -> None:
    """GATE-2: no other mandatory finding. The reviewer approved, but for the declined point."""
    conflict = declined(ledger)
    rule(conflict, A, tom)
    submission = carry_out(conflict.task)
    again = {"code": conflict.name, "title": "Still at once", "severity": "high"}
    review(submission, again, {"title": "A name is vague", "severity": "low"}, approves=True)
    newest = Conflict.objects.get(status="open")
    rule(newest, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("completed", submission)


def test_a_settled_finding_beside_it_is_no_blocker(ledger: Project, tom: User) -> None:
    conflict = reviewed(ledger, {"severity": "high"})
    assert conflict.submission is not None
    second = conflict.submission.reviews.get().findings.get(first__isnull=True)
    settled = open_on(conflict.submission, second)
    rule(settled, B, tom)
    rule(conflict, B, tom)
    assert fresh(conflict.task).status == "completed"


@for_each(("changes", "status"), [(None, "in_progress"), (True, "in_progress"), (False, "review")])
def test_own_words_say_whether_code_must_change(
    ledger: Project, tom: User, changes: bool | None, status: str
) -> None:
    """DEC-14"""
    conflict = declined(ledger)
    decision = rule(conflict, D, tom, text="Keep it, and say why in a comment.", expects_change=changes)
    assert fresh(conflict.task).status == status
    assert (decision.text, decision.letter) == ("Keep it, and say why in a comment.", "D")


@for_each(("option", "changes"), [(A, True), (B, False)])
def test_for_the_other_options_nobody_is_asked(
    ledger: Project, tom: User, option: str, changes: bool
) -> None:
    decision = rule(declined(ledger), option, tom, expects_change=not changes)
    assert decision.expects_change is changes


@for_each(("option", "text"), [(A, "Wait between tries."), (B, "The server asks for it.")])
def test_a_ruling_without_words_takes_those_of_the_side(
    ledger: Project, tom: User, option: str, text: str
) -> None:
    assert rule(declined(ledger), option, tom, text="  ").text == text


def test_a_human_may_edit_the_words(ledger: Project, tom: User) -> None:
    decision = rule(
        declined(ledger), A, tom, text="Wait, but at most a minute.", constraints="No new package."
    )
    assert (decision.text, decision.constraints_text) == ("Wait, but at most a minute.", "No new package.")


def test_the_event_says_who_ruled_what_and_why(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    rule(conflict, A, tom, rationale="The server is not ours.")
    event = Event.objects.get(kind="ruled")
    assert (event.user, event.label, event.note) == (tom, "Tom Tran", "The server is not ours.")
    assert event.data == {"conflict": conflict.ref, "option": A, "letter": "A"}


# --- Several conflicts ------------------------------------------------------------------------------------


@for_each(
    ("first", "second", "status"),
    [(A, A, "in_progress"), (A, B, "in_progress"), (B, A, "in_progress"), (B, B, "review")],
)
def test_the_task_moves_with_the_last_blocking_conflict(
    ledger: Project, tom: User, first: str, second: str, status: str
) -> None:
    conflict = declined(ledger, 2)
    before = fresh(conflict.task)
    decision = rule(conflict, first, tom)
    task = fresh(conflict.task)
    assert (task.status, task.version, decision.action) == ("disputed", before.version, "wait")
    assert kinds(task)[-1] == "ruled"
    conflict.dispute.refresh_from_db()
    assert conflict.dispute.status == "open"
    rule(others_of(conflict)[0], second, tom)
    assert fresh(conflict.task).status == status


def test_three_rulings_are_one_move(ledger: Project, tom: User) -> None:
    conflict = declined(ledger, 3)
    for one in (conflict, *others_of(conflict)):
        rule(one, A, tom)
    assert fresh(conflict.task).round == 3
    assert kinds(conflict.task)[-4:] == ["ruled", "ruled", "ruled", "rule_revise"]


def test_a_conflict_that_blocks_nothing_is_not_waited_for(ledger: Project, tom: User) -> None:
    """DESIGN 6: when the last blocking conflict is ruled, the gate says where the task goes."""
    conflict = declined(ledger)
    minor = open_on(conflict.submission, None, severity="medium")  # type: ignore[arg-type]
    assert minor.effect == "ship"
    rule(conflict, B, tom)
    assert fresh(conflict.task).status == "review"


def test_a_ruling_on_it_does_not_free_what_another_one_holds(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    minor = open_on(conflict.submission, None, severity="medium")  # type: ignore[arg-type]
    version = fresh(conflict.task).version
    decision = rule(minor, A, tom)
    task = fresh(conflict.task)
    assert (task.status, task.version, decision.action) == ("disputed", version, "wait")


def test_a_ruling_on_one_of_two_shipped_points_leaves_the_task_where_it_is(
    ledger: Project, tom: User
) -> None:
    """Accept and review need all of them decided."""
    conflict = shipped(ledger, 2)
    rule(conflict, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("disputed", conflict.submission)
    rule(others_of(conflict)[0], B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("completed", conflict.submission)


def test_a_ruling_for_the_reviewer_on_one_of_them_does_not_wait(ledger: Project, tom: User) -> None:
    conflict = shipped(ledger, 2)
    rule(conflict, A, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("in_progress", None)


@for_each("raised_again", [True, False])
def test_a_ruling_for_the_coder_accepts_the_newest_commit(
    ledger: Project, tom: User, raised_again: bool
) -> None:
    """Not the one that was disputed first: another ruling was carried out since."""
    conflict = shipped(ledger, 2, raised_again=raised_again)
    second = others_of(conflict)[0]
    rule(second, A, tom)
    newest = carry_out(conflict.task)
    review(newest, approves=True)
    assert fresh(conflict.task).accepted == newest
    rule(conflict, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("completed", newest)


# --- Rulings while the task is elsewhere ------------------------------------------------------------------


def waiting_for_review(project: Project) -> Conflict:
    """A MEDIUM point is declined; the commit is under review meanwhile."""
    Project.objects.filter(pk=project.pk).update(settings=ALL)
    project.refresh_from_db()
    conflict = declined(project, severity="medium", state="verified")
    assert (fresh(conflict.task).status, conflict.effect) == ("review", "ship")
    return conflict


def test_a_ruling_for_the_reviewer_ends_a_review_under_way(ledger: Project, tom: User) -> None:
    conflict = waiting_for_review(ledger)
    version = fresh(conflict.task).version
    rule(conflict, A, tom)
    task = fresh(conflict.task)
    assert (task.status, task.round, task.version) == ("in_progress", 3, version + 1)


def test_a_ruling_for_the_coder_leaves_a_review_under_way_valid(ledger: Project, tom: User) -> None:
    conflict = waiting_for_review(ledger)
    before = fresh(conflict.task)
    decision = rule(conflict, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.version, decision.action) == ("review", before.version, "wait")
    assert kinds(task)[-1] == "ruled"


def test_a_ruling_during_work_comes_with_the_next_prompt(ledger: Project, tom: User) -> None:
    conflict = waiting_for_review(ledger)
    fresh(conflict.task).send_back(note="Red.")
    before = fresh(conflict.task)
    decision = rule(conflict, A, tom)
    task = fresh(conflict.task)
    assert (task.status, task.round, task.version) == ("in_progress", 2, before.version)
    assert rulings.rulings_for_prompt(task) == [decision]


def test_a_ruling_on_a_deferred_task_waits_with_it(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    fresh(conflict.task).defer(actor=Actor.person(tom))
    decision = rule(conflict, A, tom)
    task = fresh(conflict.task)
    assert (task.status, decision.action) == ("deferred", "wait")
    task.resume(actor=Actor.person(tom))
    assert task.status == "in_progress"
    assert rulings.rulings_for_prompt(task) == [decision]


def test_a_ruling_against_a_commit_that_is_not_shipped_yet_takes_it_back(ledger: Project, tom: User) -> None:
    conflict = shipped(ledger)
    rule(conflict, A, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted, task.round) == ("in_progress", None, 3)
    assert not Task.objects.to_land().exists()


def test_a_ruling_against_landed_code_takes_the_landing_back(ledger: Project, tom: User) -> None:
    conflict = shipped(ledger, landed=True)
    rule(conflict, A, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("in_progress", None)
    assert (task.landed_at, task.landed_sha) == (None, "")


def test_a_reopened_ruling_on_a_landed_task_does_what_its_page_says(ledger: Project, tom: User) -> None:
    """The page promises a round where code must change, and otherwise that nothing is done any more."""
    for option, does, status in (
        (A, "Round 3: the coder carries it out and may not decline again.", "in_progress"),
        (B, "The reviewer may not raise it again. The commit has landed and stays as it is.", "completed"),
    ):  # fmt: skip
        conflict = shipped(ledger, landed=True)
        decision = rule(conflict, B, tom)
        assert fresh(conflict.task).status == "completed"
        again = rulings.reopen(decision, user=tom, reason="Finance says so.")
        offered = {view.option: view.consequence for view in rulings.options_of(again)}
        assert offered[option] == does
        rule(again, option, tom)
        followup.sweep()
        task = fresh(conflict.task)
        assert (task.status, task.landed_at is None) == (status, status == "in_progress")
        assert Conflict.objects.get(pk=again.pk).followed == ("waiting" if option == A else "applied")


def test_no_card_is_opened_anew_on_a_task_that_is_over(ledger: Project, tom: User) -> None:
    conflict = shipped(ledger)
    decision = rule(conflict, B, tom)
    Decision.objects.update(before=None)  # as of a card that holds nobody up: it did not move the task
    Conflict.objects.update(effect=SHIP)
    for ended, why in (
        ({"status": "cancelled"}, "was cancelled"),
        ({"status": "completed", "finished_by": "hand"}, "was finished without a landing"),
    ):
        Task.objects.filter(pk=conflict.task.pk).update(**ended)
        for again in (partial(rulings.reopen, reason="Finance says so."), rulings.undo):
            with pytest.raises(Refused, match=rf"{why}, so nobody has to rule") as refused:
                again(Decision.objects.get(pk=decision.pk), user=tom)
            assert (refused.value.code, refused.value.hint) == ("ended", "Reopen the task first.")
            assert not Conflict.objects.open().exists()


@for_each("status", ["pending", "in_progress"])
def test_and_holds_back_who_has_not_started(ledger: Project, tom: User, status: str) -> None:
    conflict = shipped(ledger, landed=True)
    dependant = create_task(ledger, status=status)
    Dependency.objects.create(task=dependant, on=conflict.task)
    recount([dependant])
    rule(conflict, A, tom)
    assert (fresh(dependant).waits_for, fresh(dependant).status) == (1, status)
    assert Task.objects.startable().filter(pk=dependant.pk).exists() == (status == "in_progress")


def test_a_ruling_for_landed_code_completes_the_task(ledger: Project, tom: User) -> None:
    conflict = shipped(ledger, landed=True)
    landed_at = fresh(conflict.task).landed_at
    rule(conflict, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted, task.landed_at) == ("completed", conflict.submission, landed_at)


def test_a_ruling_against_completed_code_that_has_not_landed_takes_it_back(
    ledger: Project, tom: User
) -> None:
    task = create_task(ledger, status="review", round=1)
    submission = create_submission(task)
    task.approve(submission, actor=REVIEWER)
    conflict = open_on(submission, opened_as="human", severity="medium")
    rule(conflict, A, tom)
    task = fresh(task)
    assert (task.status, task.accepted) == ("in_progress", None)


# --- What was ruled earlier and carried out is no reason to send a task back ------------------------------


def decline_again(submission: Submission, project: Project) -> Conflict:
    """The same hand-in declines a second finding."""
    first = submission.task.submissions.order_by("pk").first()
    assert first is not None
    conflict = open_on(submission, create_finding(first.reviews.get()))
    fresh(submission.task).hold(actor=CODER, note=conflict.question)
    return conflict


def test_a_ruling_that_was_carried_out_meanwhile_asks_for_no_further_round(
    ledger: Project, tom: User
) -> None:
    """GATE-2: the commit that carries it out is reviewed first."""
    conflict = declined(ledger)
    rule(conflict, A, tom)
    submission = carry_out(conflict.task)
    second = decline_again(submission, ledger)
    rule(second, B, tom)
    task = fresh(conflict.task)
    assert (task.status, task.round) == ("review", 3)


def test_a_retry_that_was_carried_out_meanwhile_neither(ledger: Project, tom: User) -> None:
    conflict = parked(ledger)
    task = fresh(conflict.task)
    create_finding(create_review(task.submissions.get()))
    rule(conflict, "retry", tom, text="The key lies in the vault.")
    submission = carry_out(task)
    second = decline_again(submission, ledger)
    rule(second, B, tom)
    assert fresh(task).status == "review"


def test_a_ruling_that_nobody_carried_out_still_does(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    rule(conflict, A, tom)
    rulings.mark_used(rulings.rulings_for_prompt(conflict.task), 7)
    second = open_on(conflict.submission)  # type: ignore[arg-type]
    fresh(conflict.task).hold(actor=CODER, note=second.question)
    rule(second, B, tom)
    assert fresh(conflict.task).status == "in_progress"


# --- When it takes effect ---------------------------------------------------------------------------------


@for_each(("option", "scene"), [(A, declined), (B, declined), (B, reviewed)])
def test_a_ruling_rests_until_it_can_no_longer_be_undone(
    ledger: Project, tom: User, option: str, scene: Callable[[Project], Conflict]
) -> None:
    """DEC-10"""
    conflict = scene(ledger)
    decision = rulings.decide(conflict, option, user=tom)
    assert decision.effective_at - decision.at == timedelta(seconds=10)
    task = fresh(conflict.task)
    assert task.not_before == decision.effective_at
    assert not rulings.rulings_for_prompt(task)
    assert not Task.objects.startable().exists()


def test_the_clock_of_a_web_server_does_not_decide_when(
    ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pauses and leases use the database's clock, by which the loop asks whether a ruling holds yet."""
    conflict, true_time = declined(ledger), timezone.now
    for hours in (-3, 3):
        monkeypatch.setattr(timezone, "now", lambda hours=hours: true_time() + timedelta(hours=hours))
        decision = rulings.decide(conflict, A, user=tom, undo_seconds=30)
        assert abs(decision.effective_at - true_time() - timedelta(seconds=30)) < timedelta(seconds=20)
        assert not rulings.rulings_for_prompt(fresh(conflict.task))
        line = standing(fresh(conflict.task)).line
        assert re.fullmatch(r"Ruled; the ruling takes effect in (?:2\d|30) s\.", line), line
        Decision.objects.update(effective_at=Now())
        assert rulings.rulings_for_prompt(fresh(conflict.task)) == [decision]
        rulings.undo(decision, user=tom)
    ruling = rulings.decide(conflict, A, user=tom, undo_seconds=0)
    assert rulings.mark_used([ruling], 1)
    ruling.refresh_from_db()
    assert abs(ruling.used_at - true_time()) < timedelta(seconds=20)


@for_each("seconds", [0, 30])
def test_the_project_says_how_long(ledger: Project, tom: User, seconds: int) -> None:
    Project.objects.update(settings={"undo_seconds": seconds})
    decision = rulings.decide(declined(Project.objects.get()), A, user=tom)
    assert decision.effective_at - decision.at == timedelta(seconds=seconds)


def test_a_script_waits_for_nobody(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    decision = rule(conflict, A, tom)
    assert decision.effective_at == decision.at
    assert list(Task.objects.startable()) == [conflict.task]


def test_an_accepted_commit_is_not_pushed_before(ledger: Project, tom: User) -> None:
    conflict = reviewed(ledger)
    rulings.decide(conflict, B, user=tom)
    orchestrator.tick()
    assert not Landing.objects.exists()
    Task.objects.update(not_before=Now())
    orchestrator.tick()
    assert Landing.objects.get().submission == conflict.submission


# --- One standing decision --------------------------------------------------------------------------------


def test_a_second_ruling_is_told_who_ruled_what_and_when(ledger: Project, tom: User, lea: User) -> None:
    conflict = declined(ledger)
    decision = rule(conflict, A, tom, text="Wait.")
    refusal = refuse("already_decided", lambda: rule(conflict, B, lea))
    assert refusal.status == 409
    for words in ("Tom Tran", "ruled A", conflict.ref, f"{decision.at:%b %Y at %H:%M}"):
        assert words in refusal.message
    assert refusal.extra["decision"] == {
        "option": A, "letter": "A", "by": "Tom Tran", "at": decision.at.isoformat(), "text": "Wait.",
    }  # fmt: skip


def test_so_is_one_whose_page_is_older(ledger: Project, tom: User, lea: User) -> None:
    conflict = declined(ledger)
    old = Conflict.objects.get(pk=conflict.pk)
    rule(conflict, A, tom)
    assert old.status == "open"
    refuse("already_decided", lambda: rulings.decide(old, B, user=lea))


def test_a_user_without_a_full_name_is_named_too(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    rule(conflict, A, create_user("root", is_superuser=True))
    message = refuse("already_decided", lambda: rule(conflict, A, tom)).message
    assert message.startswith("root ruled A on ")
    assert "_" not in message  # no name of the program's own


@for_each("status", ["moot", "logged"])
def test_what_nobody_waits_for_is_not_ruled_on(ledger: Project, tom: User, status: str) -> None:
    conflict = declined(ledger)
    Conflict.objects.update(status=status)
    assert status in refuse("not_open", lambda: rule(conflict, A, tom)).message


@pytest.mark.django_db(transaction=True)
def test_of_two_people_at_once_exactly_one_rules(ledger: Project, tom: User, lea: User) -> None:
    for _ in range(5):
        conflict = declined(ledger)
        together = threading.Barrier(2)

        def ruled(
            user: User, option: str, conflict: Conflict = conflict, together: threading.Barrier = together
        ) -> str:
            own = Conflict.objects.select_related("dispute__task__project").get(pk=conflict.pk)
            try:
                together.wait(10)
                rulings.decide(own, option, user=user)
            except Refused as refusal:
                return refusal.code
            finally:
                connection.close()
            return option

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(ruled, (tom, lea), (A, B)))
        decision = Decision.objects.get(conflict=conflict)
        task = fresh(conflict.task)
        assert task.status == {A: "in_progress", B: "review"}[decision.option]
        assert kinds(task).count("ruled") == 1
        assert sorted(found) == sorted([decision.option, "already_decided"])


@pytest.mark.django_db(transaction=True)
def test_of_an_undo_and_a_prompt_at_once_exactly_one_wins(ledger: Project, tom: User) -> None:
    for _ in range(5):
        conflict = declined(ledger)
        decision = rule(conflict, A, tom)
        together = threading.Barrier(2)

        def use(decision: Decision = decision, together: threading.Barrier = together) -> str:
            together.wait(10)
            try:
                return "used" if rulings.mark_used([decision], 7) else ""
            finally:
                connection.close()

        def undo(decision: Decision = decision, together: threading.Barrier = together) -> str:
            own = Decision.objects.get(pk=decision.pk)
            together.wait(10)
            try:
                rulings.undo(own, user=tom)
            except Refused:
                return ""
            finally:
                connection.close()
            return "undone"

        with ThreadPoolExecutor(2) as pool:
            won = [future.result() for future in (pool.submit(use), pool.submit(undo))]
        decision.refresh_from_db()
        assert (decision.used_at is None) != (decision.revoked_at is None)
        assert fresh(conflict.task).status == ("in_progress" if decision.used_at else "disputed")
        assert sorted(won) in (["", "used"], ["", "undone"])


# --- What is refused --------------------------------------------------------------------------------------


@for_each(
    "change",
    [
        lambda conflict: Task.objects.update(title="Another title"),
        lambda conflict: Task.objects.update(body="Another text"),
        lambda conflict: Conflict.objects.update(reviewer_position="Something else"),
        lambda conflict: Conflict.objects.update(coder_position="Something else"),
        lambda conflict: Conflict.objects.update(coder_rationale="Something else"),
        lambda conflict: Conflict.objects.update(alternative="Something else"),
        lambda conflict: Conflict.objects.update(severity="critical"),
        lambda conflict: Submission.objects.filter(pk=conflict.submission_id).update(sha=sha("f")),
    ],
)
def test_a_ruling_on_something_else_than_was_shown_is_refused(
    ledger: Project, tom: User, change: Callable[[Conflict], Any]
) -> None:
    conflict = declined(ledger)
    shown = rulings.shown_hash(conflict)
    change(conflict)
    refusal = refuse("stale_view", lambda: rule(conflict, A, tom, shown=shown))
    assert "Your text is kept" in refusal.hint


def test_a_ruling_on_what_was_shown_keeps_the_hash(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    shown = rulings.shown_hash(conflict)
    assert rule(conflict, A, tom, shown=shown).shown_hash == shown


@for_each("who", ["vera", "otto", "nobody", "inactive"])
def test_who_may_not_rule_is_refused(ledger: Project, vera: User, otto: User, tom: User, who: str) -> None:
    inactive = create_user("ines", is_active=False)
    Membership.objects.create(project=ledger, user=inactive, role="maintainer")
    user = {"vera": vera, "otto": otto, "nobody": AnonymousUser(), "inactive": inactive}[who]
    conflict = declined(ledger)
    assert refuse("no_right", lambda: rule(conflict, A, user)).status == 403
    decision = rule(conflict, A, tom)
    assert refuse("no_right", lambda: rulings.undo(decision, user=user)).status == 403
    assert refuse("no_right", lambda: rulings.reopen(decision, user=user, reason="No.")).status == 403


@for_each("who", ["lea", "tom", "superuser"])
def test_who_may_rule_does(ledger: Project, lea: User, tom: User, who: str) -> None:
    user = {"lea": lea, "tom": tom, "superuser": create_user("sue", is_superuser=True)}[who]
    assert rule(declined(ledger), A, user).user == user


def test_a_triager_of_another_project_is_an_outsider(ledger: Project, tom: User) -> None:
    conflict = declined(create_project("atlas"))
    refuse("no_right", lambda: rule(conflict, A, tom))


@for_each("option", [C, D])
@for_each("text", ["", " \n\t "])
def test_own_words_cannot_be_missing(ledger: Project, tom: User, option: str, text: str) -> None:
    conflict = declined(ledger)
    assert refuse("text_missing", lambda: rule(conflict, option, tom, text=text)).status == 422


def test_a_synthesis_goes_back_to_the_coder(ledger: Project, tom: User) -> None:
    """C, handed in by a human"""
    decision = rule(declined(ledger), C, tom, text="Instant for files, slower for the network.")
    assert fresh(decision.conflict.task).status == "in_progress"
    assert (decision.letter, decision.expects_change) == ("C", True)


@for_each("option", ["retry", "defer", "cancel", "", "A", "nonsense"])
def test_a_disagreement_offers_no_other_options(ledger: Project, tom: User, option: str) -> None:
    conflict = declined(ledger)
    refusal = refuse("unknown_option", lambda: rule(conflict, option, tom))
    assert (refusal.status, refusal.hint) == (
        422, "Offered are A uphold_reviewer, B uphold_coder, C compromise, D other.",
    )  # fmt: skip


@for_each("option", [A, B, C, D])
def test_nor_does_a_card_that_asks_for_help(ledger: Project, tom: User, option: str) -> None:
    conflict = parked(ledger)
    refusal = refuse("unknown_option", lambda: rule(conflict, option, tom, text="Words."))
    assert refusal.hint == "Offered are 1 retry, 2 defer, 3 cancel."


def test_a_refusal_names_only_what_the_card_offers_now(ledger: Project, tom: User) -> None:
    conflict = alerts.ask_about_base(ledger, "main cannot be built here: mix is not on this host.")
    for state, offered in (("broken", "1 try_again, 3"), ("red", "1 try_again, 2 accept_base, 3")):
        Project.objects.update(base_state=state, base_red={"failed": ["sum rounds"]})
        refusal = refuse("unknown_option", lambda: rule(Conflict.objects.get(pk=conflict.pk), B, tom))
        assert refusal.hint == f"Offered are {offered} find_commands, 4 pause.", state


# --- Undo -------------------------------------------------------------------------------------------------


def place(task: Task) -> dict[str, Any]:
    """Where the task is and what it may land."""
    names = (
        "status", "round", "rejections", "accepted", "landed_sha", "finished_by", "not_before",
        "counts_since",
    )  # fmt: skip
    found = Task.objects.filter(pk=task.pk).values(*names, "landed_at").get()
    landed_at = found.pop("landed_at")
    return found | {"landed_at": landed_at and f"{landed_at:%Y-%m-%d %H:%M:%S}"}


UNDONE: list[tuple[Callable[[Project], Conflict], str]] = [
    (declined, A),
    (declined, B),
    (reviewed, B),
    (shipped, A),
    (shipped, B),
    (waiting_for_review, A),
    (waiting_for_review, B),
    (lambda project: shipped(project, landed=True), A),
    (lambda project: shipped(project, landed=True), B),
    (parked, "retry"),
    (parked, "defer"),
    (parked, "cancel"),
    (failed, "retry"),
    (failed, "defer"),
    (failed, "cancel"),
]


@for_each(("scene", "option"), UNDONE, ids=[f"{scene.__name__}-{option}" for scene, option in UNDONE])
def test_undo_puts_the_task_back_where_it_was(
    ledger: Project, tom: User, scene: Callable[[Project], Conflict], option: str
) -> None:
    conflict = scene(ledger)
    before = place(conflict.task)
    decision = rulings.decide(conflict, option, user=tom)
    rulings.undo(decision, user=tom)
    assert place(conflict.task) == before
    assert kinds(conflict.task)[-1] == "ruling_undone"
    decision.refresh_from_db()
    assert (decision.revoked_by, decision.used_at) == (tom, None)
    assert decision.revoked_at is not None
    conflict = Conflict.objects.get(pk=conflict.pk)
    assert (conflict.status, conflict.followed, conflict.dispute.status) == ("open", "", "open")


def test_undo_moves_back_with_one_event(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    decision = rulings.decide(conflict, A, user=tom)
    rulings.undo(decision, user=tom)
    assert kinds(conflict.task)[-4:] == ["ruled", "rule_revise", "undo", "ruling_undone"]
    moved = Event.objects.get(kind="undo")
    assert (moved.from_status, moved.to_status, moved.user) == ("in_progress", "disputed", tom)


def test_what_was_undone_may_be_ruled_again(ledger: Project, tom: User, lea: User) -> None:
    conflict = declined(ledger)
    rulings.undo(rule(conflict, A, tom), user=tom)
    again = rule(conflict, B, lea)
    assert fresh(conflict.task).status == "review"
    assert list(Decision.objects.standing()) == [again]
    assert Decision.objects.count() == 2
    assert conflict.standing_decision() == again


def test_a_ruling_is_undone_once_and_the_second_person_is_told_who_did_it(
    ledger: Project, tom: User, lea: User
) -> None:
    conflict = declined(ledger)
    decision = rule(conflict, A, tom)
    rulings.undo(decision, user=tom)
    refusal = refuse("used", lambda: rulings.undo(decision, user=tom))
    assert refusal.message == f"Tom Tran has already taken back the ruling on {conflict.ref}."
    rule(conflict, B, lea)
    refusal = refuse("used", lambda: rulings.undo(decision, user=tom))
    assert refusal.message.endswith(f"taken back the ruling on {conflict.ref}, and Lea Lindt ruled B since.")


def test_a_ruling_that_a_prompt_has_used_is_not_undone(ledger: Project, tom: User) -> None:
    decision = rule(declined(ledger), A, tom)
    rulings.mark_used([decision], 7)
    refusal = refuse("used", lambda: rulings.undo(decision, user=tom))
    assert "Reopen" in refusal.hint


def test_undo_restores_what_was_accepted_and_not_what_was_disputed(ledger: Project, tom: User) -> None:
    conflict = shipped(ledger, 2)
    rule(others_of(conflict)[0], A, tom)
    newest = carry_out(conflict.task)
    review(newest, approves=True)
    assert fresh(conflict.task).accepted == newest
    rulings.undo(rule(conflict, A, tom), user=tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == ("disputed", newest)


def test_undo_lands_nothing_that_nobody_reviewed(ledger: Project, tom: User) -> None:
    conflict = waiting_for_review(ledger)
    rulings.undo(rule(conflict, A, tom), user=tom)
    assert fresh(conflict.task).status == "review"
    assert not Task.objects.to_land().exists()


def test_undo_of_a_retry_stops_the_section_again(ledger: Project, tom: User) -> None:
    conflict = failed(ledger)
    decision = rule(conflict, "retry", tom)
    assert not Section.objects.filter(is_stopped=True).exists()
    rulings.undo(decision, user=tom)
    assert Section.objects.get(is_stopped=True) == conflict.task.section


def test_undo_of_a_cancellation_holds_back_who_waits(ledger: Project, tom: User) -> None:
    conflict = parked(ledger)
    dependant = create_task(ledger)
    Dependency.objects.create(task=dependant, on=conflict.task)
    decision = rule(conflict, "cancel", tom)
    assert fresh(dependant).waits_for == 0
    rulings.undo(decision, user=tom)
    assert fresh(dependant).waits_for == 1


def test_undo_of_a_ruling_on_landed_code_lets_who_waits_go_on(ledger: Project, tom: User) -> None:
    conflict = shipped(ledger, landed=True)
    dependant = create_task(ledger)
    Dependency.objects.create(task=dependant, on=conflict.task)
    rulings.undo(rule(conflict, A, tom), user=tom)
    assert fresh(conflict.task).landed_at is not None
    assert fresh(dependant).waits_for == 0


def test_the_last_of_two_rulings_can_be_undone(ledger: Project, tom: User) -> None:
    conflict = declined(ledger, 2)
    first = rule(conflict, A, tom)
    rulings.undo(rule(others_of(conflict)[0], A, tom), user=tom)
    task = fresh(conflict.task)
    assert (task.status, task.round) == ("disputed", 2)
    assert list(Decision.objects.standing()) == [first]


@for_each(("scene", "option"), [(declined, A), (declined, B), (reviewed, B)])
def test_so_can_the_first(
    ledger: Project, tom: User, scene: Callable[[Project], Conflict], option: str
) -> None:
    """Where a conflict that blocks is open again, the task is in dispute again."""
    conflict = scene(ledger)
    second = open_on(conflict.submission)  # type: ignore[arg-type]
    Conflict.objects.filter(pk=second.pk).update(effect="hold")
    first = rule(conflict, option, tom)
    rule(second, option, tom)
    assert fresh(conflict.task).status != "disputed"
    rulings.undo(first, user=tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted, task.round) == ("disputed", None, 2)


def test_both_can_be_undone_in_either_order(ledger: Project, tom: User) -> None:
    conflict = declined(ledger, 2)
    before = place(conflict.task)
    decisions = [rule(conflict, A, tom), rule(others_of(conflict)[0], A, tom)]
    for decision in reversed(decisions):
        rulings.undo(decision, user=tom)
    assert place(conflict.task) == before
    assert Conflict.objects.filter(status="open").count() == 2


@for_each("how", ["defer", "cancel", "finish"])
@for_each("option", [A, B])
def test_undo_does_not_take_back_what_others_did_since(
    ledger: Project, tom: User, lea: User, option: str, how: str
) -> None:
    conflict = declined(ledger)
    decision = rule(conflict, option, tom)
    getattr(fresh(conflict.task), how)(actor=Actor.person(lea))
    refuse("moved_on", lambda: rulings.undo(decision, user=tom))


def test_nor_what_was_handed_in_since(ledger: Project, tom: User, lea: User) -> None:
    """By a person, without any prompt."""
    conflict = declined(ledger)
    decision = rule(conflict, A, tom)
    task = fresh(conflict.task)
    create_submission(task, by_agent="Lea Lindt", by_user=lea)
    task.submit(actor=Actor.person(lea))
    refuse("moved_on", lambda: rulings.undo(decision, user=tom))


def test_an_older_card_is_not_opened_beside_a_newer_one(ledger: Project, tom: User, lea: User) -> None:
    conflict = parked(ledger)
    decision = rule(conflict, "defer", tom)
    task = fresh(conflict.task)
    task.resume(actor=Actor.person(lea))
    opening.stop_for_help(task, "blocked", "Who has the other key?")
    before = rows()
    with pytest.raises(Refused):
        rulings.undo(decision, user=tom)
    assert rows() == before


@for_each("since", ["resumed", "handed in"])
def test_undo_leaves_no_task_under_way_with_a_conflict_that_holds_it(
    ledger: Project, tom: User, since: str
) -> None:
    """The ruling moved nothing, and the task went on since: back to disputed, or refused."""
    conflict = declined(ledger)
    task = fresh(conflict.task)
    task.defer(actor=Actor.person(tom))
    decision = rule(conflict, A, tom)
    assert decision.action == "wait"
    task = fresh(task)
    task.resume(actor=Actor.person(tom))
    if since == "handed in":
        create_submission(task, by_agent="Tom Tran")
        task.submit(actor=Actor.person(tom))
    with suppress(Refused):
        rulings.undo(decision, user=tom)
    is_open = Conflict.objects.get(pk=conflict.pk).status == "open"
    assert is_open == (fresh(task).status == "disputed")


@for_each("status", ["pushing", "landed"])
def test_a_ruling_whose_commit_is_out_is_not_undone(ledger: Project, tom: User, status: str) -> None:
    conflict = reviewed(ledger)
    decision = rule(conflict, B, tom)
    task = fresh(conflict.task)
    landing = Landing.objects.create(
        project=ledger, task=task, submission=task.accepted, sha=sha("c"), target="main", status=status
    )
    if status == "landed":
        task.landed(landing.sha)
    refuse("moved_on", lambda: rulings.undo(decision, user=tom))


@for_each("who", ["the same", "a lead"])
def test_who_ruled_and_a_lead_may_undo(ledger: Project, tom: User, lea: User, who: str) -> None:
    Membership.objects.filter(user=lea).update(is_lead=True)
    decision = rule(declined(ledger), A, tom)
    rulings.undo(decision, user=tom if who == "the same" else lea)
    decision.refresh_from_db()
    assert decision.revoked_by == (tom if who == "the same" else lea)


def test_another_triager_may_not(ledger: Project, tom: User) -> None:
    """Undo is for the same person or a lead."""
    other = create_user("toni")
    Membership.objects.create(project=ledger, user=other, role="triager")
    decision = rule(declined(ledger), A, tom)
    refuse("no_right", lambda: rulings.undo(decision, user=other))


# --- Reopening --------------------------------------------------------------------------------------------


def used(conflict: Conflict, option: str, user: User) -> Decision:
    """Ruled, and read by an agent."""
    decision = rule(conflict, option, user)
    rulings.mark_used([decision], 7)
    decision.refresh_from_db()
    return decision


def test_reopening_opens_a_new_conflict_that_names_the_old_one(ledger: Project, tom: User, lea: User) -> None:
    """DEC-9"""
    old = declined(ledger)
    decision = used(old, A, tom)
    new = rulings.reopen(decision, user=lea, reason="The server is ours after all.")
    assert (new.previous, new.origin, new.opened_as) == (old, "reopened", "human")
    assert (new.status, new.finding, new.severity) == ("open", old.finding, old.severity)
    assert (new.reviewer_position, new.coder_position) == (old.reviewer_position, old.coder_position)
    task = fresh(old.task)
    assert (task.status, task.accepted) == ("disputed", None)
    assert kinds(task)[-3:] == ["ruling_reopened", "conflict_opened", "hold"]
    assert Event.objects.get(kind="ruling_reopened").note == "The server is ours after all."
    decision.refresh_from_db()
    assert (decision.revoked_at, new.dispute.status) == (None, "open")


def test_reopening_needs_a_reason(ledger: Project, tom: User) -> None:
    decision = used(declined(ledger), A, tom)
    assert refuse("text_missing", lambda: rulings.reopen(decision, user=tom, reason=" ")).status == 422


def test_a_ruling_is_reopened_once(ledger: Project, tom: User) -> None:
    decision = used(declined(ledger), A, tom)
    rulings.reopen(decision, user=tom, reason="Wrong.")
    refuse("already_open", lambda: rulings.reopen(decision, user=tom, reason="Wrong."))


def test_a_ruling_that_was_undone_is_not_reopened(ledger: Project, tom: User) -> None:
    """The conflict itself is open again, or ruled on anew, while the page of the former ruling is shown."""
    conflict = declined(ledger)
    decision = rule(conflict, A, tom)
    rulings.undo(Decision.objects.get(pk=decision.pk), user=tom)
    for ruled_anew in (False, True):
        if ruled_anew:
            rule(Conflict.objects.get(pk=conflict.pk), B, tom)
        before = rows()
        shown = Decision.objects.select_related("conflict").get(pk=decision.pk)
        shown.revoked_at = None
        refuse("not_open", lambda shown=shown: rulings.reopen(shown, user=tom, reason="Wrong."))
        assert rows() == before


def test_a_ruling_that_was_not_honoured_is_not_reopened_beside_the_new_card(
    ledger: Project, tom: User
) -> None:
    old = declined(ledger)
    decision = rule(old, A, tom)
    submission = carry_out(old.task)
    review(submission, {"code": old.name, "title": "Still at once", "severity": "high"})
    assert Conflict.objects.get(status="open").origin == "not_honoured"
    decision.refresh_from_db()
    refuse("already_open", lambda: rulings.reopen(decision, user=tom, reason="Wrong."))


def test_the_newer_ruling_is_the_one_that_counts(ledger: Project, tom: User) -> None:
    old = declined(ledger)
    new = rulings.reopen(used(old, A, tom), user=tom, reason="Wrong.")
    decision = rule(new, B, tom)
    task = fresh(old.task)
    assert task.status == "review"
    assert rulings.rulings_for_prompt(task) == [decision]


def test_a_reopened_ruling_is_in_no_prompt(ledger: Project, tom: User) -> None:
    old = declined(ledger)
    rulings.reopen(used(old, A, tom), user=tom, reason="Wrong.")
    assert not rulings.rulings_for_prompt(old.task)


def test_ruled_twice_for_the_reviewer_is_one_ruling(ledger: Project, tom: User) -> None:
    old = declined(ledger)
    new = rulings.reopen(used(old, A, tom), user=tom, reason="The words were wrong.")
    again = rule(new, A, tom, text="Wait a minute.")
    assert rulings.rulings_for_prompt(old.task) == [again]
    submission = carry_out(old.task)
    review(submission, {"code": old.name, "title": "Still at once", "severity": "high"})
    third = Conflict.objects.get(status="open")
    assert (third.origin, third.previous) == ("not_honoured", new)


def test_an_unheard_side_holds_when_it_is_reopened_too(ledger: Project, tom: User) -> None:
    """DIS-3: not stated is not heard."""
    old = declined(ledger, severity="medium", reviewer_position="")
    assert (old.effect, old.reviewer_position) == ("hold", NOT_STATED)
    assert rulings.text_of(old, A) == "", "which is nobody's ruling"
    new = rulings.reopen(used(old, A, tom), user=tom, reason="Wrong.")
    assert new.effect == "hold"


@for_each("severity", ["medium", "low"])
def test_what_a_human_reopens_waits_for_a_human(ledger: Project, tom: User, severity: str) -> None:
    """DEC-9: it opens; the policy does not log it away."""
    old = declined(ledger, severity=severity, opened_as="reviewer")
    new = rulings.reopen(used(old, A, tom), user=tom, reason="Wrong.")
    assert (new.status, new.dispute.status) == ("open", "open")


def test_a_card_that_asks_for_help_is_reopened_as_one(ledger: Project, tom: User) -> None:
    old = parked(ledger)
    new = rulings.reopen(used(old, "retry", tom), user=tom, reason="There is no key.")
    assert (new.kind, new.previous, fresh(old.task).status) == ("help", old, "disputed")


def test_a_commit_whose_ruling_is_reopened_does_not_land(ledger: Project, tom: User) -> None:
    old = reviewed(ledger)
    decision = rule(old, B, tom)
    assert fresh(old.task).status == "completed"
    rulings.reopen(decision, user=tom, reason="It leaks.")
    orchestrator.tick()
    assert not Landing.objects.exists()


def test_what_was_reopened_is_not_undone(ledger: Project, tom: User) -> None:
    decision = rule(declined(ledger), A, tom)
    rulings.reopen(decision, user=tom, reason="Wrong.")
    refuse("already_open", lambda: rulings.undo(decision, user=tom))


def test_a_ruling_that_was_reopened_and_ruled_anew_is_not_reopened_again(ledger: Project, tom: User) -> None:
    """The newer one is: else two cards on one point stand side by side."""
    old = used(declined(ledger), B, tom)
    new = rule(rulings.reopen(old, user=tom, reason="Wrong."), A, tom)
    before = rows()
    with pytest.raises(Refused):
        rulings.reopen(old, user=tom, reason="Wrong again.")
    assert rows() == before
    assert rulings.reopen(new, user=tom, reason="Wrong again.").previous == new.conflict


def test_nor_is_one_whose_card_was_ruled_anew_because_it_was_not_honoured(ledger: Project, tom: User) -> None:
    """The next review that raises the point would open a third card beside the second, and fail."""
    conflict = declined(ledger)
    old = rule(conflict, A, tom)
    again = {"code": conflict.name, "title": "Still at once", "severity": "high"}
    review(carry_out(conflict.task), again)
    rule(Conflict.objects.get(status="open"), A, tom)
    old.refresh_from_db()
    refuse("already_open", lambda: rulings.reopen(old, user=tom, reason="Wrong."))


def test_nor_once_the_newer_card_is_ruled_on(ledger: Project, tom: User) -> None:
    old = rule(declined(ledger), B, tom)
    new = rulings.reopen(old, user=tom, reason="Wrong.")
    rule(new, A, tom)
    carry_out(new.task)
    before = rows()
    with pytest.raises(Refused):
        rulings.undo(old, user=tom)
    assert rows() == before


# --- Prompts ----------------------------------------------------------------------------------------------


def test_a_prompt_begins_with_the_rulings_in_force(ledger: Project, tom: User) -> None:
    conflict = declined(ledger, 2)
    decisions = [rule(conflict, A, tom), rule(others_of(conflict)[0], B, tom)]
    assert rulings.rulings_for_prompt(conflict.task) == decisions


def test_not_with_those_that_can_still_be_undone(ledger: Project, tom: User) -> None:
    decision = rulings.decide(declined(ledger), A, user=tom, undo_seconds=60)
    assert not rulings.rulings_for_prompt(decision.conflict.task)
    Decision.objects.update(effective_at=Now())
    assert rulings.rulings_for_prompt(decision.conflict.task) == [decision]


def test_not_with_those_that_were_undone(ledger: Project, tom: User) -> None:
    decision = rule(declined(ledger), A, tom)
    rulings.undo(decision, user=tom)
    assert not rulings.rulings_for_prompt(decision.conflict.task)


@for_each("followed", ["applied", "not_honoured", "cannot_tell", "reopened"])
def test_not_with_those_that_were_followed_up(ledger: Project, tom: User, followed: str) -> None:
    decision = rule(declined(ledger), A, tom)
    Conflict.objects.update(followed=followed)
    assert not rulings.rulings_for_prompt(decision.conflict.task)


def test_not_with_those_of_other_tasks(ledger: Project, tom: User) -> None:
    rule(declined(ledger), A, tom)
    assert not rulings.rulings_for_prompt(create_task(ledger))


def test_a_ruling_stays_in_the_prompts_until_it_is_applied(ledger: Project, tom: User) -> None:
    """DEC-5"""
    decision = used(declined(ledger), A, tom)
    assert rulings.rulings_for_prompt(decision.conflict.task) == [decision]


def test_a_ruling_is_marked_used_once(ledger: Project, tom: User) -> None:
    decision = rule(declined(ledger), A, tom)
    assert rulings.mark_used([decision], 7) == 1
    decision.refresh_from_db()
    first = decision.used_at
    assert (decision.used_by_run, decision.may_be_undone) == (7, False)
    assert rulings.mark_used([decision], 8) == 0
    decision.refresh_from_db()
    assert (decision.used_at, decision.used_by_run) == (first, 7)


def test_an_undone_ruling_is_not_marked_used(ledger: Project, tom: User) -> None:
    decision = rule(declined(ledger), A, tom)
    rulings.undo(decision, user=tom)
    assert rulings.mark_used([decision], 7) == 0


WORDS = [
    (A, {}),
    (B, {}),
    (A, {"text": "Wait.\nTwice as long each time.", "rationale": "So says the\nserver."}),
    (B, {"text": "  Keep it.  ", "constraints": "No new package.\nNo new setting."}),
    (D, {"text": "Wait a second.", "rationale": "Both are half right.", "expects_change": True}),
    (D, {"text": "Leave it, say why.", "expects_change": False}),
]


@for_each(("option", "words"), WORDS)
def test_the_preview_is_what_the_prompt_gets(
    ledger: Project, tom: User, option: str, words: dict[str, Any]
) -> None:
    conflict = declined(ledger)
    given: dict[str, Any] = {"text": "", "rationale": "", "constraints": "", "expects_change": None} | words
    if given["expects_change"] is None:
        given["expects_change"] = option == A
    shown = rulings.preview(conflict, option, **given)
    rule(conflict, option, tom, **given)
    found = rulings.rulings_for_prompt(conflict.task)
    assert shown == ruling_lines(rulings.ruling_of(decision) for decision in found)
    assert shown[0] == HEADING
    assert conflict.name in shown[2]


def test_the_preview_of_a_card_that_asks_for_help_is_the_prompt_too(ledger: Project, tom: User) -> None:
    conflict = parked(ledger)
    words: dict[str, Any] = {"text": "The key lies in the vault.", "rationale": "", "constraints": ""}
    shown = rulings.preview(conflict, "retry", **words, expects_change=True)
    rule(conflict, "retry", tom, **words)
    found = rulings.rulings_for_prompt(conflict.task)
    assert shown == ruling_lines(rulings.ruling_of(decision) for decision in found)


def test_a_ruling_is_called_by_the_key_of_its_own_card(ledger: Project, tom: User) -> None:
    """The same choice has another key where more is offered."""
    task = create_task(ledger, number=31, status="in_progress", round=1)
    conflict = opening.stop_for_help(task, "verifying", "The tests are red.")
    decision = rule(conflict, "retry", tom, text="Start the server first.")
    assert decision.letter == "2"
    [_, _, first, *_] = ruling_lines([rulings.ruling_of(decision)])
    assert first == f"1. Task {task.ref} ({conflict.severity.upper()}): 2, retry"


def test_a_preview_writes_nothing(ledger: Project) -> None:
    conflict = declined(ledger)
    before = rows()
    rulings.preview(conflict, A, text="", rationale="", constraints="", expects_change=True)
    assert rows() == before


# --- What the page says will happen -----------------------------------------------------------------------


@for_each(
    "scene",
    [
        declined,
        reviewed,
        shipped,
        lambda project: reviewed(project, {"severity": "high"}),
        lambda project: reviewed(project, state="kept"),
    ],
)
def test_the_consequence_on_the_button_is_what_happens(
    ledger: Project, tom: User, scene: Callable[[Project], Conflict]
) -> None:
    """GATE-1"""
    conflict = scene(ledger)
    said = next(view for view in rulings.options_of(conflict) if view.option == B).consequence
    decision = rule(conflict, B, tom)
    assert ("lands as it is" in said) == (decision.action == "accept"), said


def test_each_option_starts_with_the_words_of_its_side(ledger: Project) -> None:
    views = {view.letter: view for view in rulings.options_of(declined(ledger))}
    assert {letter: view.text for letter, view in views.items()} == {
        "A": "Wait between tries.", "B": "The server asks for it.", "C": "", "D": "",
    }  # fmt: skip
    assert [letter for letter, view in views.items() if view.needs_text] == ["C", "D"]


def test_a_button_names_the_round_and_who_goes_on_waiting(ledger: Project) -> None:
    conflict = declined(ledger)
    for _ in range(2):
        Dependency.objects.create(task=create_task(ledger), on=conflict.task)
    opening.refresh(conflict.dispute)
    first = rulings.options_of(Conflict.objects.get(pk=conflict.pk))[0]
    assert first.consequence.startswith("Round 3: ")
    assert first.consequence.endswith("2 tasks go on waiting.")


# --- Cards that ask for hands -----------------------------------------------------------------------------


@for_each(("scene", "status"), [(parked, "disputed"), (failed, "failed")], ids=["parked", "failed"])
@for_each(
    ("option", "goal", "kind"),
    [
        ("retry", "in_progress", "retry"),
        ("defer", "deferred", "defer"),
        ("cancel", "cancelled", "cancel"),
    ],
)
def test_whoever_helps_decides_how_a_task_goes_on(
    ledger: Project,
    tom: User,
    scene: Callable[[Project], Conflict],
    status: str,
    option: str,
    goal: str,
    kind: str,
) -> None:
    conflict = scene(ledger)
    assert fresh(conflict.task).status == status
    decision = rule(conflict, option, tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted) == (goal, None)
    assert kind in kinds(task)[-3:]
    assert decision.action == option
    conflict = Conflict.objects.get(pk=conflict.pk)
    waits = option == "retry"
    assert (conflict.followed, conflict.dispute.status) == (
        ("waiting", "ruled") if waits else ("applied", "closed")
    )


def test_a_retry_of_a_failed_task_restarts_its_section_and_counts_anew(ledger: Project, tom: User) -> None:
    conflict = failed(ledger)
    section = conflict.task.section
    assert Section.objects.get(pk=section.pk).is_stopped
    begun = timezone.now()
    rule(conflict, "retry", tom, text="Wait a second between tries.")
    task = fresh(conflict.task)
    assert (task.round, task.rejections) == (4, 0)
    assert task.counts_since is not None
    assert task.counts_since >= begun
    assert not Section.objects.get(pk=section.pk).is_stopped


def test_a_failed_task_that_was_deferred_counts_anew_when_it_is_resumed(ledger: Project, tom: User) -> None:
    """DESIGN 6: every human option that restarts a task starts a new counting period."""
    conflict = failed(ledger)
    rule(conflict, "defer", tom)
    task = fresh(conflict.task)
    task.resume(actor=Actor.person(tom))
    assert (task.status, task.rejections) == ("in_progress", 0)
    review(carry_out(task), {"title": "A second pause is missing", "severity": "high"})
    assert fresh(task).status == "in_progress"


@for_each("option", ["defer", "cancel"])
def test_the_section_goes_on_too_when_its_failed_task_is_put_away(
    ledger: Project, tom: User, option: str
) -> None:
    conflict = failed(ledger)
    rule(conflict, option, tom)
    assert not Section.objects.get(pk=conflict.task.section_id).is_stopped


def test_the_words_of_a_retry_come_first_in_the_prompt(ledger: Project, tom: User) -> None:
    conflict = parked(ledger)
    rule(conflict, "retry", tom, text="The key lies in the vault.")
    lines = ruling_lines(map(rulings.ruling_of, rulings.rulings_for_prompt(conflict.task)))
    assert lines[0] == HEADING
    assert "   Ruling: The key lies in the vault." in lines


def test_a_task_that_handed_nothing_in_starts_from_the_beginning(ledger: Project, tom: User) -> None:
    task = create_task(ledger, status="in_progress", round=1)
    conflict = opening.stop_for_help(task, "empty_runs", "Six runs without a result")
    rule(conflict, "retry", tom)
    assert (fresh(task).status, fresh(task).round) == ("pending", 1)


def landing_failed(project: Project, status: str) -> Conflict:
    """An approved commit that did not land, last of all with that status."""
    task = create_task(project, status="review", round=1)
    submission = create_submission(task)
    task.approve(submission, actor=REVIEWER)
    Landing.objects.create(
        project=project, task=task, submission=submission, sha=submission.sha, target="main", status=status
    )
    return opening.stop_for_help(task, "landing", "It does not land")


def test_a_refused_push_is_tried_again_with_the_same_commit(ledger: Project, tom: User) -> None:
    conflict = landing_failed(ledger, "stuck")
    task, submission = conflict.task, conflict.submission
    assert not Task.objects.to_land().exists()
    decision = rule(conflict, "land_again", tom)
    task = fresh(task)
    assert (task.status, task.accepted, decision.action) == ("completed", submission, "accept")
    assert kinds(task)[-1] == "rule_accept"


def test_a_commit_that_no_longer_applies_goes_back_to_the_coder(ledger: Project, tom: User) -> None:
    conflict = landing_failed(ledger, "conflict")
    rule(conflict, "retry", tom)
    task = fresh(conflict.task)
    assert (task.status, task.accepted, task.round) == ("in_progress", None, 2)


def test_a_retry_waits_for_the_other_blocking_conflicts(ledger: Project, tom: User) -> None:
    """A task with an open blocking conflict is in dispute."""
    hands = parked(ledger)
    task = fresh(hands.task)
    other = open_on(task.submissions.get(), opened_as="human", severity="high")
    rule(hands, "retry", tom)
    assert fresh(task).status == "disputed"
    rule(other, A, tom)
    assert fresh(task).status == "in_progress"


def test_cancelling_leaves_nothing_to_rule_on(ledger: Project, tom: User) -> None:
    hands = parked(ledger)
    other = open_on(fresh(hands.task).submissions.get(), severity="high")
    rule(hands, "cancel", tom)
    followup.sweep()
    other.refresh_from_db()
    assert (other.status, other.dispute.status) == ("moot", "closed")


def test_a_task_that_is_being_pushed_is_not_cancelled_by_a_card(ledger: Project, tom: User) -> None:
    task = create_task(ledger, status="review", round=1)
    submission = create_submission(task)
    task.approve(submission, actor=REVIEWER)
    Landing.objects.create(
        project=ledger, task=task, submission=submission, sha=submission.sha, target="main", status="pushing"
    )
    conflict = opening.stop_for_help(task, "landing", "The remote refuses the push")
    before = rows()
    with pytest.raises((IllegalMove, Refused)):
        rule(conflict, "cancel", tom)
    assert rows() == before


def test_a_card_cannot_move_a_task_that_has_gone_elsewhere(ledger: Project, tom: User) -> None:
    conflict = parked(ledger)
    fresh(conflict.task).defer(actor=Actor.person(tom))
    before = rows()
    with pytest.raises((IllegalMove, Refused)):
        rule(conflict, "retry", tom)
    assert rows() == before

"""Taking rounds of a task back (RB-8), and ruling again as was ruled in them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.hosts import starting
from agents.loop import orchestrator
from agents.models import Run, new_token, token_hash
from agents.prompts import compose
from disputes import followup, intake, opening, rulings
from disputes.closed_findings import settled_findings
from disputes.completion import rollbacks, root_causes
from disputes.models import Conflict, Decision, Flag
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import read_review
from tasks.api import TaskDetailSerializer
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Answer, Event, Finding, Landing, Project, Review, Rollback, Submission, Task
from tests.agents.world import World, make_world  # noqa: F401  (the fixture)
from tests.cases import for_each, rows_put_back
from tests.factories import (
    create_finding,
    create_review,
    create_run,
    create_submission,
    create_task,
    create_token,
    sha,
)

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
RAISED = [
    {"title": "No pause", "severity": "high", "location": "src/calls.py:12", "suggestion": "Wait."},
    {"title": "No limit", "severity": "high", "location": "src/calls.py:40", "suggestion": "Stop."},
]
REFUSED = [
    {"finding": "ISSUE-R1-001", "kind": "declined", "text": "The server waits.", "rationale": "It is so."},
    {"finding": "ISSUE-R1-002", "kind": "addressed", "text": "Done."},
]
DONE = [{"finding": f"ISSUE-R1-00{number}", "kind": "addressed", "text": "Done."} for number in (1, 2)]


def hand_in(task: Task, answers: list[dict[str, str]] | None = None, **kwargs: Any) -> Submission:
    """The coder hands in; declined findings open conflicts and hold the task."""
    task.refresh_from_db()
    read = read_response({"answers": answers or []})
    known = intake.check_response(task, read)
    attempt = task.submissions.standing().filter(round=task.round).count() + 1
    submission = create_submission(
        task, attempt=attempt, diff_stat={"since_base": ["src/calls.py"]}, **kwargs
    )
    task.submit(actor=CODER)
    intake.take_answers(submission, read, known, actor=CODER)
    if any(conflict.effect == "hold" for conflict in opening.open_conflicts(task)):
        task.hold(actor=CODER, note="A conflict waits.")
    return submission


def review(task: Task, findings: list[dict[str, str]]) -> list[str]:
    """The reviewer rejects with these findings. Their codes."""
    submission = task.last_submission()
    assert submission is not None
    taken = intake.take_review(
        submission, read_review({"findings": findings}), approves=False, actor=REVIEWER
    )
    task.refresh_from_db()
    return [finding.code for finding in taken.findings]


@pytest.fixture
def task(ledger: Project) -> Task:
    """In its second round, with two findings of the first to answer."""
    task = create_task(ledger, title="Call politely")
    task.start()
    hand_in(task)
    review(task, RAISED)
    return task


@pytest.fixture
def disputed(task: Task) -> Task:
    """The coder declined the first finding in round 2; a human has to rule."""
    hand_in(task, REFUSED)
    task.refresh_from_db()
    return task


def conflict_of(task: Task) -> Conflict:
    found = Conflict.objects.filter(dispute__task=task).order_by("-pk").first()
    assert found is not None
    return found


def back_to(task: Task, to_round: int, user: User, reason: str = "It went the wrong way.") -> Rollback:
    made = rollbacks.roll_back(task, to_round, user=user, reason=reason)
    task.refresh_from_db()
    return made


def ruled(task: Task, option: str, user: User, **kwargs: Any) -> Decision:
    """A ruling on the newest conflict, which a prompt has used."""
    decision = rulings.decide(conflict_of(task), option, user=user, undo_seconds=0, **kwargs)
    rulings.mark_used([decision], 7)
    task.refresh_from_db()
    return decision


# --- What is taken back (RB-2) ----------------------------------------------------------------------------


def test_the_rounds_taken_back_are_marked_and_the_task_begins_again_under_their_number(
    disputed: Task, lea: User
) -> None:
    turn, conflict = disputed.version, conflict_of(disputed)
    made = back_to(disputed, 1, lea, "It hammers the server.")
    assert [(s.round, s.rolled_back) for s in disputed.submissions.order_by("pk")] == [(1, None), (2, made)]
    assert (made.from_round, made.to_round, made.by_user) == (2, 1, lea)
    event = Event.objects.filter(task=disputed, kind="rollback").get()
    assert (event.label, event.note, event.from_status, event.to_status) == (
        "Lea Lindt", "It hammers the server.", "disputed", "in_progress",
    )  # fmt: skip
    assert event.data == {"round": 2, "to_round": 1}
    conflict.refresh_from_db()
    assert (conflict.status, conflict.dispute.status) == ("moot", "closed")
    assert (disputed.status, disputed.round, disputed.version) == ("in_progress", 2, turn + 1)
    again = hand_in(disputed, DONE)
    assert (again.round, again.attempt) == (2, 1)


def test_codes_are_allotted_again(task: Task, lea: User) -> None:
    hand_in(task, DONE)
    assert review(task, [{"title": "New", "severity": "high"}]) == ["ISSUE-R2-001"]
    back_to(task, 1, lea)
    hand_in(task, DONE)
    assert review(task, [{"title": "Another", "severity": "high"}]) == ["ISSUE-R2-001"]
    assert [f.title for f in task.findings.standing().filter(round=2)] == ["Another"]


def test_a_conflict_that_was_only_logged_settles_nothing_any_more(task: Task, lea: User) -> None:
    task.project.settings = {"policy": {"high": "log"}}
    task.project.save()
    hand_in(task, REFUSED)
    assert settled_findings(task)
    back_to(task, 1, lea)
    assert not settled_findings(task)
    assert len(intake.findings_to_answer(task)) == 2


def test_flags_of_the_rounds_are_moot_but_a_false_alarm_stays_one(task: Task, lea: User) -> None:
    submission = hand_in(task, DONE)
    first, second = Finding.objects.filter(task=task).order_by("pk")
    kept = Flag.objects.create(
        finding=first, submission=submission, level="log", status=Flag.Status.FALSE_POSITIVE
    )
    flag = Flag.objects.create(finding=second, submission=submission, level="warn")
    back_to(task, 1, lea)
    flag.refresh_from_db()
    kept.refresh_from_db()
    assert (flag.status, kept.status) == ("moot", "false_positive")


def test_to_the_beginning_nothing_of_it_stands_and_nothing_is_deleted(disputed: Task, lea: User) -> None:
    ruled(disputed, "uphold_reviewer", lea)
    rows = [Submission, Review, Finding, Answer, Conflict, Decision]
    before = [model.objects.count() for model in rows]
    back_to(disputed, 0, lea)
    assert [model.objects.count() for model in rows] == before
    assert (disputed.round, disputed.last_submission(), intake.last_reviews(disputed)) == (1, None, [])
    assert not disputed.findings.standing().exists()
    assert hand_in(disputed).round == 1


def test_a_card_from_before_the_first_submission_goes_with_the_first_round(
    ledger: Project, lea: User
) -> None:
    task = create_task(ledger)
    task.start()
    opening.stop_for_help(task, Conflict.Origin.BLOCKED, "Who has the key?")
    rulings.decide(conflict_of(task), "retry", user=lea, text="Ask Tom.", undo_seconds=0)
    task.refresh_from_db()
    task.start()
    hand_in(task)
    back_to(task, 0, lea)
    assert not rulings.rulings_for_prompt(task)


def test_a_card_opened_in_a_round_before_its_submission_goes_with_that_round(task: Task, lea: User) -> None:
    opening.stop_for_help(task, Conflict.Origin.BLOCKED, "Who has the key?")
    card = conflict_of(task)
    assert card.submission is not None
    assert card.submission.round == 1
    rulings.decide(card, "retry", user=lea, text="Ask Tom.", undo_seconds=0)
    hand_in(task, DONE)
    back_to(task, 1, lea)
    card.refresh_from_db()
    assert card.status == "moot"


def test_runs_of_the_old_turn_are_ended(disputed: Task, lea: User) -> None:
    run = create_run(disputed, status=Run.Status.QUEUED)
    back_to(disputed, 1, lea)
    orchestrator.reap()
    run.refresh_from_db()
    assert (run.status, run.outcome, run.is_counted) == ("ended", "stopped", False)


def test_a_commit_of_the_rounds_that_waits_to_land_is_not_landed(task: Task, lea: User) -> None:
    task.project.settings = {"policy": {"high": "ship"}}
    task.project.save()
    submission = hand_in(task, REFUSED)
    intake.take_review(submission, read_review({"findings": []}), approves=True, actor=REVIEWER)
    task.refresh_from_db()
    assert (task.status, task.accepted) == ("disputed", submission)
    back_to(task, 1, lea)
    assert task.accepted is None
    assert not Task.objects.to_land().exists()


# --- Rulings (RB-2, DEC-8) --------------------------------------------------------------------------------


def test_rulings_of_the_rounds_are_archived_and_no_prompt_begins_with_them(disputed: Task, lea: User) -> None:
    decision = ruled(disputed, "uphold_reviewer", lea)
    assert rulings.rulings_for_prompt(disputed) == [decision]
    hand_in(disputed)
    made = back_to(disputed, 1, lea)
    decision.refresh_from_db()
    assert (decision.archived_by, decision.stands, decision.may_be_undone) == (made, False, False)
    assert rulings.rulings_for_prompt(disputed) == []


def test_the_coder_answers_a_finding_again_whose_ruling_was_archived(disputed: Task, lea: User) -> None:
    ruled(disputed, "uphold_coder", lea)
    back_to(disputed, 1, lea)
    assert [finding.code for finding in intake.findings_to_answer(disputed)] == [
        "ISSUE-R1-001",
        "ISSUE-R1-002",
    ]
    hand_in(disputed, REFUSED)
    assert conflict_of(disputed).status == "open"


def carried_out(task: Task, lea: User) -> Decision:
    """A ruling of round 2, carried out in round 3 and judged there."""
    hand_in(task, REFUSED)
    decision = ruled(task, "uphold_reviewer", lea)
    hand_in(task)
    review(task, [{"title": "Other", "severity": "high"}])
    return decision


def test_a_ruling_whose_carrying_out_is_taken_back_waits_again(task: Task, lea: User) -> None:
    decision = carried_out(task, lea)
    decision.conflict.refresh_from_db()
    assert decision.conflict.followed in {"applied", "cannot_tell"}
    back_to(task, 2, lea)
    decision.refresh_from_db()
    assert decision.stands
    assert rulings.rulings_for_prompt(task) == [decision]


def test_a_ruling_that_was_reopened_in_the_rounds_stands_again(task: Task, lea: User) -> None:
    decision = carried_out(task, lea)
    again = rulings.reopen(decision, user=lea, reason="It was wrong.")
    again.refresh_from_db()
    task.refresh_from_db()
    back_to(task, 2, lea)
    again.refresh_from_db()
    assert again.status == "moot"
    assert rulings.rulings_for_prompt(task) == [decision]


def test_an_archived_ruling_is_neither_undone_nor_reopened(disputed: Task, lea: User) -> None:
    decision = rulings.decide(conflict_of(disputed), "uphold_reviewer", user=lea, undo_seconds=0)
    hand_in(disputed)
    back_to(disputed, 1, lea)
    decision.refresh_from_db()
    with pytest.raises(Refused, match="taken back"):
        rulings.undo(decision, user=lea)
    with pytest.raises(Refused, match="taken back"):
        rulings.reopen(decision, user=lea, reason="It was wrong.")


# --- Refusals ---------------------------------------------------------------------------------------------


def landing(submission: Submission, status: str) -> None:
    Landing.objects.create(
        project=submission.task.project, task=submission.task, submission=submission, sha=submission.sha,
        target="main", status=status,
    )  # fmt: skip


def spend(task: Task) -> None:
    task.project.settings = {"max_rollbacks_session": 1}
    task.project.save()
    Rollback.objects.create(task=task, from_round=1, to_round=0, reason="Before.", by_label="Lea")


CASES: dict[str, tuple[Callable[[Task], Any], dict[str, Any]]] = {
    "text_missing": (lambda task: None, {"reason": " "}),
    "wrong_status": (lambda task: task.defer(actor=CODER), {}),
    "nothing_to_roll_back": (lambda task: None, {"to_round": 2}),
    "too_deep": (lambda task: Project.objects.update(settings={"backup_rounds": 1}), {"to_round": 0}),
    "budget_spent": (spend, {}),
    "stale_view": (lambda task: None, {"version": 1}),
}


@for_each("code", CASES)
def test_it_refuses_and_changes_nothing(disputed: Task, lea: User, code: str) -> None:
    arrange, wrong = CASES[code]
    arrange(disputed)
    asked = {"to_round": 1, "reason": "It went the wrong way."} | wrong
    known = Task.objects.get(pk=disputed.pk)
    before = (known.version, known.rollbacks.count())
    with pytest.raises(Refused) as refused:
        rollbacks.roll_back(known, user=lea, **asked)
    now = Task.objects.get(pk=disputed.pk)
    assert refused.value.code == code
    assert refused.value.hint
    assert (now.version, now.rollbacks.count()) == before
    assert conflict_of(now).status == "open"


@for_each("who", ["tom", "vera", "otto"])
def test_only_a_maintainer_takes_rounds_back(disputed: Task, who: str, otto: User) -> None:
    with pytest.raises(Refused) as refused:
        rollbacks.roll_back(disputed, 1, user=User.objects.get(username=who), reason="Because.")
    assert (refused.value.code, refused.value.status) == ("no_right", 403)


@for_each("status", ["pushing", "landed"])
def test_what_lands_is_not_taken_back_but_reverted(disputed: Task, lea: User, status: str) -> None:
    last = disputed.last_submission()
    assert last is not None
    landing(last, status)
    with pytest.raises(Refused) as refused:
        rollbacks.roll_back(disputed, 1, user=lea, reason="Because.")
    assert refused.value.code == "landed"
    assert "revert" in refused.value.hint


def test_a_landing_of_a_round_that_stands_does_not_matter(disputed: Task, lea: User) -> None:
    landing(disputed.submissions.get(round=1), "landed")
    back_to(disputed, 1, lea)
    assert disputed.round == 2


def test_it_reaches_three_rounds_back(ledger: Project) -> None:
    """RB-4"""
    task = create_task(ledger, status="in_progress", round=6)
    for number in range(1, 6):
        create_submission(task, round=number)
    assert rollbacks.choices(task) == [4, 3, 2]


def test_a_round_that_was_taken_back_may_be_taken_back_again(disputed: Task, lea: User) -> None:
    """RB-6 counts it."""
    back_to(disputed, 1, lea)
    hand_in(disputed, DONE)
    assert rollbacks.times_taken_back(disputed, 2) == 1
    back_to(disputed, 1, lea)
    assert (rollbacks.times_taken_back(disputed, 2), rollbacks.times_taken_back(disputed, 1)) == (2, 0)
    assert rollbacks.left(disputed) == 5


# --- Ruling again (RB-3) ----------------------------------------------------------------------------------


@pytest.fixture
def archived(disputed: Task, lea: User) -> Decision:
    """A ruling of round 2, which was taken back."""
    decision = ruled(
        disputed, "uphold_reviewer", lea, rationale="Servers die.", constraints="No new library."
    )
    back_to(disputed, 1, lea)
    decision.refresh_from_db()
    return decision


def test_an_archived_ruling_is_made_again_once_and_the_task_goes_on_where_it_is(
    archived: Decision, tom: User
) -> None:
    task = archived.conflict.task
    with rows_put_back():
        assert rollbacks.reapply(archived, user=tom, text="Wait twice as long.").text == "Wait twice as long."
    again = rollbacks.reapply(archived, user=tom)
    assert (again.option, again.text, again.constraints_text, again.user) == (
        "uphold_reviewer", archived.text, "No new library.", tom,
    )  # fmt: skip
    assert rulings.rulings_for_prompt(task) == [again]
    archived.refresh_from_db()
    assert not archived.stands
    task.refresh_from_db()
    assert (task.status, task.round) == ("in_progress", 2)
    assert [finding.code for finding in intake.findings_to_answer(task)] == ["ISSUE-R1-002"]

    # It says where it comes from.
    assert again.rationale == "Servers die. (re-applied from rolled-back round 2)"
    assert again.conflict.previous == archived.conflict
    lines = rulings.preview(
        again.conflict, again.option, text=again.text, rationale=again.rationale, constraints="",
        expects_change=True,
    )  # fmt: skip
    assert any("re-applied from rolled-back round 2" in line for line in lines)

    with pytest.raises(Refused, match=again.conflict.ref):
        rollbacks.reapply(archived, user=tom)
    assert rollbacks.applied_again([archived]) == {archived.pk: again}


def test_a_ruling_made_again_ends_a_review_under_way_unless_the_point_is_disputed_anew(
    archived: Decision, tom: User
) -> None:
    task = archived.conflict.task
    with rows_put_back():
        hand_in(task, DONE)
        rollbacks.reapply(archived, user=tom)
        task.refresh_from_db()
        assert (task.status, task.round) == ("in_progress", 3)
    hand_in(task, REFUSED)
    with pytest.raises(Refused) as refused:
        rollbacks.reapply(archived, user=tom)
    assert refused.value.code == "already_open"


def test_a_ruling_for_the_coder_made_again_settles_the_finding(disputed: Task, lea: User) -> None:
    decision = ruled(disputed, "uphold_coder", lea)
    back_to(disputed, 1, lea)
    decision.refresh_from_db()
    rollbacks.reapply(decision, user=lea)
    assert list(settled_findings(disputed)) == [decision.conflict.finding_id]


def test_a_standing_ruling_is_not_made_again(disputed: Task, lea: User) -> None:
    with pytest.raises(Refused) as refused:
        rollbacks.reapply(ruled(disputed, "uphold_reviewer", lea), user=lea)
    assert refused.value.code == "not_archived"


def test_what_help_did_is_not_made_again(task: Task, lea: User) -> None:
    hand_in(task, DONE)
    opening.stop_for_help(task, Conflict.Origin.BLOCKED, "Who has the key?")
    decision = ruled(task, "retry", lea, text="Ask Tom.")
    back_to(task, 1, lea)
    decision.refresh_from_db()
    with pytest.raises(Refused) as refused:
        rollbacks.reapply(decision, user=lea)
    assert refused.value.code == "not_a_ruling"


@for_each("who", ["vera", "otto"])
def test_who_may_not_rule_makes_no_ruling_again(archived: Decision, who: str, otto: User) -> None:
    with pytest.raises(Refused) as refused:
        rollbacks.reapply(archived, user=User.objects.get(username=who))
    assert refused.value.status == 403


def test_a_ruling_made_again_goes_with_the_next_rollback(archived: Decision, lea: User) -> None:
    task = archived.conflict.task
    again = rollbacks.reapply(archived, user=lea)
    hand_in(task, DONE)
    back_to(task, 1, lea)
    again.refresh_from_db()
    assert not again.stands
    third = rollbacks.reapply(again, user=lea)
    assert third.stands
    assert third.rationale.count("re-applied") == 1


# --- What has landed --------------------------------------------------------------------------------------


def test_a_revert_is_a_task_of_its_own(ledger: Project, lea: User) -> None:
    task = create_task(ledger, title="Call politely", severity="high", status="completed", finished_by="hand")
    Task.objects.filter(pk=task.pk).update(landed_sha=sha("c"), landed_at="2026-01-01T00:00:00Z")
    task.refresh_from_db()
    made = rollbacks.make_revert_task(task, user=lea, reason="It hammers the server.")
    assert (made.title, made.severity, made.status) == (
        f"Revert {task.ref}: Call politely",
        "high",
        "pending",
    )
    assert sha("c") in made.body
    assert "It hammers the server." in made.body
    assert made.number > task.number


def test_nothing_is_reverted_that_has_not_landed(disputed: Task, lea: User) -> None:
    with pytest.raises(Refused) as refused:
        rollbacks.make_revert_task(disputed, user=lea, reason="It hammers the server.")
    assert refused.value.code == "not_landed"


def test_only_a_maintainer_asks_for_a_revert(disputed: Task, tom: User) -> None:
    with pytest.raises(Refused) as refused:
        rollbacks.make_revert_task(disputed, user=tom, reason="Because.")
    assert refused.value.status == 403


# --- Whoever asks for the present state -------------------------------------------------------------------


def test_the_api_shows_the_findings_that_stand(task: Task, lea: User) -> None:
    hand_in(task, DONE)
    review(task, [{"title": "New", "severity": "high"}])
    back_to(task, 1, lea)
    titles = [finding["title"] for finding in TaskDetailSerializer(task).data["findings"]]
    assert titles == ["No pause", "No limit"]


def test_a_response_may_not_name_a_finding_that_was_taken_back(task: Task, lea: User) -> None:
    hand_in(task, DONE)
    (code,) = review(task, [{"title": "New", "severity": "high"}])
    back_to(task, 1, lea)
    answers = [*DONE, {"finding": code, "kind": "addressed", "text": "Done."}]
    with pytest.raises(Refused, match="do not exist"):
        intake.check_response(task, read_response({"answers": answers}))


def test_a_finding_is_not_tied_to_one_that_was_taken_back(task: Task, lea: User) -> None:
    hand_in(task, DONE)
    (code,) = review(task, [{"title": "New", "severity": "high"}])
    back_to(task, 1, lea)
    hand_in(task, DONE)
    review(task, [{"title": "Something else", "severity": "high", "code": code}])
    assert task.findings.standing().get(round=2).first is None


def test_the_prompt_says_what_was_taken_back_and_why(disputed: Task, lea: User) -> None:
    before = create_run(disputed, round=2, status="ended", outcome="nothing", ended_at="2026-01-01T00:00:00Z")
    back_to(disputed, 1, lea, "It hammers the server.")
    text = compose.compose(create_run(disputed, round=2, seat="coder"), compose.Material(), []).text
    assert "took this task back to the end of round 1" in text
    assert "It hammers the server." in text
    assert "An earlier run of this round" not in text
    assert before.round == 2


def test_the_prompt_after_the_next_hand_in_says_nothing_of_it(disputed: Task, lea: User) -> None:
    back_to(disputed, 1, lea)
    hand_in(disputed, DONE)
    review(disputed, [{"title": "New", "severity": "high"}])
    text = compose.compose(create_run(disputed), compose.Material(), []).text
    assert "Rounds were taken back" not in text


def test_the_coder_begins_at_the_last_commit_that_stands(world: World, lea: User) -> None:
    world.project.memberships.create(user=lea, role="maintainer")
    first = world.kept({"ledger.py": "total = 1\n"})
    task = first.task
    task.refresh_from_db()
    task.reject(actor=REVIEWER)
    second = world.hand_in(
        run := world.coder(task, base=first.sha), world.commit(run, {"ledger.py": "total = 2\n"})
    )
    Submission.objects.filter(pk=second.pk).update(state="verified")
    Run.objects.filter(pk=run.pk).update(salvage_sha=second.sha, ended_at=second.at, status="ended")
    task.refresh_from_db()
    rollbacks.roll_back(task, 1, user=lea, reason="Wrong.")
    again = create_run(Task.objects.get(pk=task.pk), seat="coder")
    assert starting.base_of(again, world.mirror) == first.sha


def test_a_lost_commit_of_a_round_taken_back_does_not_move_the_task(disputed: Task, lea: User) -> None:
    back_to(disputed, 1, lea)
    hand_in(disputed, DONE, state="received")
    old = disputed.submissions.get(rolled_back__isnull=False)
    from agents.hosts.submissions import send_back

    send_back(old, "It cannot be taken.")
    disputed.refresh_from_db()
    assert disputed.status == "review"


# --- A walk -----------------------------------------------------------------------------------------------


def test_rolled_back_ruled_again_and_landed(disputed: Task, lea: User) -> None:
    decision = ruled(disputed, "other", lea, text="Wait a second between tries.")
    hand_in(disputed)
    review(disputed, [{"title": "It waits an hour", "severity": "high"}])
    assert disputed.round == 4
    back_to(disputed, 1, lea, "It waits an hour.")
    decision.refresh_from_db()
    again = rollbacks.reapply(decision, user=lea, text="Wait one second between tries.")
    assert rulings.rulings_for_prompt(disputed) == [again]
    rulings.mark_used([again], 9)
    submission = hand_in(disputed, [DONE[1]])
    intake.take_review(submission, read_review({"findings": []}), approves=True, actor=REVIEWER)
    disputed.refresh_from_db()
    assert (disputed.status, disputed.accepted, disputed.round) == ("completed", submission, 2)
    disputed.landed(submission.sha)
    followup.sweep()
    again.conflict.refresh_from_db()
    assert again.conflict.followed in {"applied", "cannot_tell"}
    assert again.conflict.dispute.status == "closed"


# --- Why it goes wrong again (RB-6) -----------------------------------------------------------------------


def fail(task: Task, *titles: str) -> None:
    hand_in(task, DONE)
    review(task, [{"title": title, "severity": "high"} for title in titles])


def test_once_is_no_reason_to_analyse(task: Task, lea: User) -> None:
    fail(task, "It blocks")
    assert root_causes.of(task) is None
    back_to(task, 1, lea)
    assert root_causes.of(task) is None


def test_after_the_second_rollback_the_attempts_are_compared(task: Task, lea: User) -> None:
    for titles in (["It blocks", "No test"], ["It blocks"]):
        fail(task, *titles)
        back_to(task, 1, lea)
    analysis = root_causes.of(task)
    assert analysis is not None
    assert [attempt.marks for attempt in analysis.attempts] == [{"It blocks", "No test"}, {"It blocks"}]
    assert (analysis.cause, analysis.evidence) == ("The task is ambiguous.", "the same each time: It blocks")


def test_another_failure_each_time_says_that_it_is_too_large(task: Task, lea: User) -> None:
    for title in ("It blocks", "No test", "No limit"):
        fail(task, title)
        back_to(task, 1, lea)
    analysis = root_causes.of(task)
    assert analysis is not None
    assert analysis.cause == "The task is too large."


def test_attempts_that_show_nothing_have_no_cause(task: Task, lea: User) -> None:
    for _ in range(2):
        hand_in(task, DONE)
        back_to(task, 1, lea)
    analysis = root_causes.of(task)
    assert analysis is not None
    assert (len(analysis.attempts), analysis.cause) == (2, "")


def test_a_document_of_a_specification_is_read_for_its_patterns(task: Task, lea: User) -> None:
    vague = "might be reasonable, could be adequate, may be sufficient, certain, various"
    for _ in range(2):
        hand_in(task, DONE, response=f"## Gap Resolution: GAP-CALL-001\n\n{vague}\n")
        back_to(task, 1, lea)
    analysis = root_causes.of(task)
    assert analysis is not None
    assert "ABSTRACT_OUTPUT" in [seen.pattern for seen in analysis.attempts[0].seen]
    assert analysis.cause


# --- The page ---------------------------------------------------------------------------------------------


def page_of(task: Task) -> str:
    return f"/tasks/{task.ref}/rollback/"


def sent(client: Client, task: Task, user: User, **changes: Any) -> Any:
    client.force_login(user)
    body = {"to_round": "1", "reason": "It hammers the server.", "version": str(task.version)} | changes
    return client.post(page_of(task), body)


def test_the_page_says_what_each_round_held_and_what_becomes_of_it(
    client: Client, disputed: Task, lea: User
) -> None:
    client.force_login(lea)
    page = client.get(page_of(disputed)).content.decode()
    for words in (
        "Round 2", "Round 1", "ISSUE-R1-001", conflict_of(disputed).ref, "Take back round 2",
        "no longer counted: 1 submission and 1 open conflict.", "Take back rounds 1 to 2",
        "0 of 7 rollbacks used",
        "Round 1 begins again from the target branch",
    ):  # fmt: skip
        assert words in page


def test_the_button_takes_the_rounds_back(client: Client, disputed: Task, lea: User) -> None:
    reply = sent(client, disputed, lea)
    assert (reply.status_code, reply.url) == (302, page_of(disputed))
    disputed.refresh_from_db()
    assert (disputed.status, disputed.rollbacks.get().reason) == ("in_progress", "It hammers the server.")
    assert "begins round 2 again" in client.get(page_of(disputed)).content.decode()


@for_each(
    ("changes", "status", "words"),
    [
        ({"to_round": ""}, 422, "Choose what to take back"),
        ({"reason": "  "}, 422, "A reason is needed"),
        ({"version": "0"}, 409, "has moved on"),
        ({"version": "9" * 5000}, 409, "has moved on"),
        ({"to_round": "7"}, 422, "nothing handed in after round 7"),
        ({"to_round": "9" * 5000}, 422, "Choose what to take back"),
    ],
)
def test_a_refusal_keeps_what_was_typed(
    client: Client, disputed: Task, lea: User, changes: dict[str, str], status: int, words: str
) -> None:
    reply = sent(client, disputed, lea, **changes)
    page = reply.content.decode()
    assert reply.status_code == status
    assert words in page
    assert changes.get("reason", "It hammers the server.") in page
    assert not disputed.rollbacks.exists()


@for_each(("who", "status"), [("tom", 403), ("vera", 403), ("otto", 404)])
def test_others_cannot_press_it(client: Client, disputed: Task, who: str, status: int, otto: User) -> None:
    assert sent(client, disputed, User.objects.get(username=who)).status_code == status
    assert not disputed.rollbacks.exists()


@for_each(("who", "status"), [("lea", 200), ("tom", 200), ("vera", 403), ("otto", 404)])
def test_who_sees_the_page(client: Client, disputed: Task, who: str, status: int, otto: User) -> None:
    client.force_login(User.objects.get(username=who))
    reply = client.get(page_of(disputed))
    assert reply.status_code == status
    assert ("Take back" in reply.content.decode()) == (who == "lea")


def test_whoever_is_not_signed_in_is_sent_to_the_login(client: Client, disputed: Task) -> None:
    assert "/login/" in client.get(page_of(disputed)).url


def test_an_archived_ruling_is_made_again_on_the_page(client: Client, archived: Decision, tom: User) -> None:
    task = archived.conflict.task
    client.force_login(tom)
    assert "Archived rulings" in client.get(page_of(task)).content.decode()
    reply = client.post(f"/tasks/{task.ref}/rulings/{archived.pk}/again/", {"text": "Wait a second."})
    assert reply.status_code == 302
    assert rulings.rulings_for_prompt(task)[0].text == "Wait a second."
    assert "Ruled again" in client.get(page_of(task)).content.decode()


def test_a_second_try_keeps_the_words(client: Client, archived: Decision, tom: User) -> None:
    task = archived.conflict.task
    hand_in(task, REFUSED)
    client.force_login(tom)
    reply = client.post(f"/tasks/{task.ref}/rulings/{archived.pk}/again/", {"text": "Wait a second."})
    assert reply.status_code == 409
    assert "Wait a second." in reply.content.decode()


def test_a_ruling_of_another_task_is_not_found(client: Client, archived: Decision, tom: User) -> None:
    other = create_task(archived.conflict.task.project)
    client.force_login(tom)
    assert client.post(f"/tasks/{other.ref}/rulings/{archived.pk}/again/").status_code == 404


def test_what_has_landed_is_reverted_from_the_page(client: Client, disputed: Task, lea: User) -> None:
    last = disputed.last_submission()
    assert last is not None
    landing(last, "landed")
    client.force_login(lea)
    page = client.get(page_of(disputed)).content.decode()
    assert "Make a revert task" in page
    assert "Take back round" not in page
    reply = client.post(f"/tasks/{disputed.ref}/revert/", {"reason": "It hammers the server."})
    made = Task.objects.latest("pk")
    assert reply.url == f"/admin/tasks/task/{made.pk}/change/"
    assert made.title == f"Revert {disputed.ref}: Call politely"


def test_the_page_shows_why_it_goes_wrong_again(client: Client, task: Task, lea: User) -> None:
    for _ in range(2):
        fail(task, "It blocks")
        back_to(task, 1, lea)
    client.force_login(lea)
    page = client.get(page_of(task)).content.decode()
    assert "Round 2 went wrong 2 times" in page
    assert "Split the gap" in page


def test_the_page_costs_the_same_for_one_round_and_for_many(
    client: Client, ledger: Project, lea: User
) -> None:
    costs = []
    client.force_login(lea)
    for number in (1, 9):
        task = create_task(ledger, status="in_progress", round=number + 1)
        for round_ in range(1, number + 1):
            submission = create_submission(task, round=round_)
            create_finding(create_review(submission), code=f"ISSUE-R{round_}-001")
        client.get(page_of(task))
        with CaptureQueriesContext(connection) as asked:
            client.get(page_of(task))
        costs.append(len(asked))
    assert costs[1] <= costs[0] + 3  # more choices are offered


def test_the_card_of_a_round_that_was_taken_back_leads_there(
    client: Client, archived: Decision, tom: User
) -> None:
    client.force_login(tom)
    page = client.get(f"/queue/{archived.conflict.dispute.ref}/?conflict={archived.conflict.ref}")
    words = page.content.decode()
    assert "Its round was taken back" in words
    assert page_of(archived.conflict.task) in words


def test_the_admin_leads_there(client: Client, disputed: Task, lea: User, vera: User) -> None:
    path = f"/admin/tasks/task/{disputed.pk}/change/"
    client.force_login(lea)
    assert f"/admin/tasks/task/{disputed.pk}/rounds" in client.get(path).content.decode()
    assert client.get(f"/admin/tasks/task/{disputed.pk}/rounds/").url == page_of(disputed)
    client.force_login(vera)
    assert f"/admin/tasks/task/{disputed.pk}/rounds" not in client.get(path).content.decode()


# --- Over REST --------------------------------------------------------------------------------------------


def ask(task: Task | str, user: User, verb: str, **body: Any) -> Any:
    """Of a task, or of what a name says."""
    _, secret = create_token(user, "laptop")
    name = task if isinstance(task, str) else task.ref
    return Client().post(
        f"/api/v1/tasks/{name}/{verb}/", body, content_type="application/json",
        headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": f"{user.pk}-{name.encode()}-{verb}"},
    )  # fmt: skip


def test_a_script_takes_rounds_back(disputed: Task, lea: User) -> None:
    decision = ruled(disputed, "uphold_reviewer", lea)
    reply = ask(disputed, lea, "rollback", to_round=1, reason="It hammers the server.")
    assert reply.status_code == 200
    told = reply.json()
    assert (told["status"], told["round"]) == ("in_progress", 2)
    assert told["message"] == f"{disputed.ref} begins round 2 again."
    assert [row["ruling"] for row in told["archived"]] == [decision.pk]


def test_a_script_makes_a_ruling_again(archived: Decision, tom: User) -> None:
    task = archived.conflict.task
    reply = ask(task, tom, "reapply", ruling=archived.pk, text="Wait a second.")
    assert reply.status_code == 200
    assert rulings.rulings_for_prompt(task)[0].text == "Wait a second."


def test_a_script_asks_for_a_revert(disputed: Task, lea: User) -> None:
    reply = ask(disputed, lea, "revert", reason="Because.")
    assert (reply.status_code, reply.json()["code"]) == (409, "not_landed")


@for_each(
    ("body", "status", "code"),
    [
        ({"to_round": 1}, 422, "invalid"),
        ({"to_round": -1, "reason": "x"}, 422, "invalid"),
        ({"to_round": 2, "reason": "x"}, 422, "nothing_to_roll_back"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(
    disputed: Task, lea: User, body: dict[str, Any], status: int, code: str
) -> None:
    reply = ask(disputed, lea, "rollback", **body)
    assert (reply.status_code, reply.json()["code"]) == (status, code)


@for_each(("who", "status"), [("tom", 403), ("vera", 403), ("otto", 404)])
def test_a_script_of_somebody_else_takes_nothing_back(
    disputed: Task, who: str, status: int, otto: User
) -> None:
    reply = ask(disputed, User.objects.get(username=who), "rollback", to_round=1, reason="Because.")
    assert reply.status_code == status
    assert not disputed.rollbacks.exists()


def test_what_names_no_task_is_nothing_there(disputed: Task, lea: User) -> None:
    """A digit of another script, a word, or more digits than a number of the database has."""
    names = ("ledger-\u00b2", "ledger-\u0662", "ledger-x", "ledger-", "ledger", f"ledger-{'9' * 20}", "x-1")
    body = {"to_round": 1, "reason": "Because.", "ruling": 1}
    for verb in ("rollback", "reapply", "revert"):
        for name in names:
            reply = ask(name, lea, verb, **body)
            assert (reply.status_code, reply.json()["code"]) == (404, "not_found"), (verb, name)
    reply = ask(disputed, lea, "reapply", ruling=10**20)
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


@for_each("verb", ["rollback", "reapply", "revert"])
def test_no_run_takes_rounds_back(task: Task, verb: str) -> None:
    secret = new_token()
    create_run(task, token_hash=token_hash(secret))
    body = {"to_round": 0, "reason": "I started badly.", "ruling": 1}
    reply = Client().post(
        f"/api/v1/tasks/{task.ref}/{verb}/", body, content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )  # fmt: skip
    assert (reply.status_code, reply.json()["code"]) == (403, "wrong_role")


@for_each("verb", ["rollback", "reapply", "revert"])
def test_the_schema_documents_it(client: Client, db: None, verb: str) -> None:
    schema = client.get("/api/schema/?format=json").json()
    entry = schema["paths"][f"/api/v1/tasks/{{ref}}/{verb}/"]["post"]
    assert entry["operationId"] == f"task_{verb}"
    assert entry["requestBody"]

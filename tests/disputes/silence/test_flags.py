"""The rows of flags, their cards, what people make of them, and what looking at them costs."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from disputes import intake, opening, rulings
from disputes.models import Conflict, Flag, HeuristicScore
from disputes.protocol.silence.suspicion import Suspicion
from disputes.silence import flags
from tasks.events import Actor
from tasks.models import Event, Finding, Project, Submission, Task
from tests.cases import for_each
from tests.factories import create_finding, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db

CODER = Actor("run", "coder-1")
ASKING = {"warn": "log", "review": "log", "block": "hold", "systematic": "hold"}


# --- Scenes -----------------------------------------------------------------------------------------------


@pytest.fixture
def submission(ledger: Project) -> Submission:
    """Round 2 is under review; round 1 had a finding."""
    task = create_task(ledger, status="review", round=2)
    create_finding(create_review(create_submission(task, round=1), by_agent="reviewer-2"))
    return create_submission(task)


def raised(submission: Submission) -> Finding:
    return Finding.objects.filter(task=submission.task_id).order_by("pk")[0]


def suspect(finding: Finding, level: str = "warn", **kwargs: Any) -> tuple[Finding, Suspicion]:
    values = {
        "code": finding.code, "ordinal": finding.ordinal, "severity": finding.severity, "heuristics": ("H4",),
        "confidence": "medium", "level": level, "evidence": ("its place is unchanged",), "overlap": 0.0,
    } | kwargs  # fmt: skip
    return finding, Suspicion(**values)


def flag(submission: Submission, level: str = "warn", **kwargs: Any) -> Flag:
    [made] = flags.raise_flags(submission, [suspect(raised(submission), level, **kwargs)])
    return made


def card() -> Conflict:
    return Conflict.objects.get(kind="silence", status="open")


def next_submission(submission: Submission) -> Submission:
    task = Task.objects.get(pk=submission.task_id)
    Task.objects.filter(pk=task.pk).update(round=task.round + 1)
    return create_submission(Task.objects.get(pk=task.pk))


def rule(option: str, user: User) -> Any:
    return rulings.decide(card(), option, user=user, text="It is so.", undo_seconds=0)


def scores() -> dict[str, tuple[int, int]]:
    return {
        score.heuristic: (score.confirmed, score.refused)
        for score in HeuristicScore.objects.order_by("heuristic")
        if score.confirmed or score.refused
    }


# --- Raising ------------------------------------------------------------------------------------------------


def test_a_flag_keeps_all_that_was_found(submission: Submission) -> None:
    made = flag(submission, heuristics=("H1", "H4"), confidence="high", signs=("forgot? it is short",))
    stored = Flag.objects.get()
    assert (stored, stored.finding, stored.submission) == (made, raised(submission), submission)
    assert (stored.heuristics, stored.confidence, stored.level) == (["H1", "H4"], "high", "warn")
    assert (stored.evidence, stored.overlap) == (["its place is unchanged", "forgot? it is short"], 0.0)
    assert Event.objects.get(kind="flagged").note == raised(submission).code


@for_each("level", sorted(ASKING))
def test_a_level_that_asks_has_a_card(submission: Submission, level: str) -> None:
    made = flag(submission, level)
    assert (made.conflict, card().effect, card().submission) == (card(), ASKING[level], submission)
    assert (card().reviewer_label, card().coder_label) == ("reviewer-2", "coder-1")
    assert card().reviewer_position == "Wait between tries, twice as long each time."


def test_one_that_is_only_listed_has_none(submission: Submission) -> None:
    assert flag(submission, "log").conflict is None
    assert not Conflict.objects.exists()


def test_raising_twice_changes_nothing(submission: Submission) -> None:
    flag(submission)
    assert flags.raise_flags(submission, [suspect(raised(submission), "block")]) == []
    assert (Flag.objects.count(), Conflict.objects.count(), Event.objects.filter(kind="flagged").count()) == (
        1, 1, 1,
    )  # fmt: skip


def test_nothing_found_leaves_no_trace(submission: Submission) -> None:
    assert flags.raise_flags(submission, []) == []
    assert not Event.objects.filter(kind="flagged").exists()


def test_a_flag_hangs_on_the_point_as_first_raised(submission: Submission) -> None:
    again = create_finding(create_review(submission), first=raised(submission))
    [made] = flags.raise_flags(next_submission(submission), [suspect(again)])
    assert (made.finding, made.conflict) == (raised(submission), card())
    assert card().finding == raised(submission)


def test_flags_of_several_rounds_share_the_open_card(submission: Submission) -> None:
    first = flag(submission)
    later = next_submission(submission)
    second = flag(later, evidence=("its place is unchanged", "and in round 3 too"))
    assert first.conflict == second.conflict == card()
    assert card().evidence == ["its place is unchanged", "and in round 3 too"]
    assert card().submission == later


@for_each(
    ("before", "then", "effect"),
    [("warn", "block", "hold"), ("block", "warn", "hold"), ("warn", "review", "log")],
)
def test_a_card_holds_from_the_first_flag_on_that_does(
    submission: Submission, before: str, then: str, effect: str
) -> None:
    flag(submission, before)
    flag(next_submission(submission), then)
    assert card().effect == effect


def test_a_point_in_dispute_gets_no_card_of_its_own(submission: Submission) -> None:
    conflict = opening.open_conflict(
        submission.task, kind="disagreement", origin="cli", opened_as="human", question="Really?",
        finding=raised(submission), reviewer_position="Yes.", coder_position="No.",
    )  # fmt: skip
    assert flag(submission).conflict is None
    assert list(Conflict.objects.filter(status="open")) == [conflict]


def test_a_new_card_names_the_one_before(submission: Submission, tom: User) -> None:
    flag(submission)
    old = card()
    rule("false_positive", tom)
    flag(next_submission(submission))
    assert card().previous == old


def test_flags_of_two_points_are_two_cards_of_one_dispute(submission: Submission) -> None:
    other = create_finding(raised(submission).review)
    flags.raise_flags(submission, [suspect(raised(submission)), suspect(other, "block")])
    assert Conflict.objects.count() == 2
    assert Conflict.objects.values("dispute").distinct().count() == 1
    assert Event.objects.get(kind="flagged").note == f"{raised(submission).code}, {other.code}"


def test_the_database_takes_a_flag_once(submission: Submission) -> None:
    made = flag(submission)
    with pytest.raises(IntegrityError), transaction.atomic():
        Flag.objects.create(finding=made.finding, submission=submission, level="log")


# --- What people make of them -------------------------------------------------------------------------------


@for_each(
    ("option", "status", "score"),
    [
        ("ask", "asked", (1, 0)),
        ("ask_disagree", "asked", (1, 0)),
        ("convert", "converted", (1, 0)),
        ("waive", "waived", (1, 0)),
        ("false_positive", "false_positive", (0, 1)),
    ],
)
def test_a_ruling_settles_the_flags_and_counts(
    submission: Submission, tom: User, option: str, status: str, score: tuple[int, int]
) -> None:
    """SIL-14: each heuristic that fired was right or wrong"""
    flag(submission, heuristics=("H1", "H4"))
    decision = rule(option, tom)
    assert Flag.objects.get().status == status
    assert scores() == {"H1": score, "H4": score}
    rulings.undo(decision, user=tom)
    assert (Flag.objects.get().status, scores()) == ("open", {})


def test_all_flags_of_a_card_are_settled_with_it(submission: Submission, tom: User) -> None:
    flag(submission)
    flag(next_submission(submission), heuristics=("H1",))
    rule("false_positive", tom)
    assert list(Flag.objects.values_list("status", flat=True)) == ["false_positive"] * 2
    assert scores() == {"H1": (0, 1), "H4": (0, 1)}


def test_each_project_counts_for_itself(submission: Submission, tom: User) -> None:
    flag(submission)
    rule("false_positive", tom)
    assert HeuristicScore.objects.get().project == submission.task.project


def test_a_false_alarm_never_keeps_a_flag_from_being_raised(submission: Submission, tom: User) -> None:
    """SIL-14: it weighs less on a page, and disables nothing"""
    for _ in range(12):
        flag(submission, "block")
        rule("false_positive", tom)
        submission = next_submission(submission)
    assert flag(submission, "block").level == "block"
    assert card().effect == "hold"


# --- Answers ------------------------------------------------------------------------------------------------


def test_an_answer_closes_what_waits_for_it(submission: Submission) -> None:
    flag(submission)
    silence = card()
    flags.answered(next_submission(submission), {raised(submission).pk}, actor=CODER)
    silence.refresh_from_db()
    assert (Flag.objects.get().status, silence.status, silence.dispute.status) == (
        "answered",
        "moot",
        "closed",
    )


def test_its_own_submission_is_no_answer_to_a_flag(submission: Submission) -> None:
    flag(submission, "log")
    flags.answered(submission, {raised(submission).pk}, actor=CODER)
    assert Flag.objects.get().status == "open"


def test_the_answer_to_another_point_closes_nothing(submission: Submission) -> None:
    flag(submission)
    other = create_finding(raised(submission).review)
    flags.answered(next_submission(submission), {other.pk}, actor=CODER)
    assert (Flag.objects.get().status, card().status) == ("open", "open")


@for_each("option", ["waive", "false_positive", "convert"])
def test_an_answer_changes_nothing_that_was_settled(submission: Submission, tom: User, option: str) -> None:
    flag(submission)
    silence = card()
    rule(option, tom)
    before = Flag.objects.get().status
    silence.refresh_from_db()
    followed = silence.followed
    flags.answered(next_submission(submission), {raised(submission).pk}, actor=CODER)
    silence.refresh_from_db()
    assert (Flag.objects.get().status, silence.status, silence.followed) == (before, "decided", followed)


def test_an_ask_is_for_one_answer_however_many_flags(submission: Submission, tom: User) -> None:
    flag(submission)
    later = next_submission(submission)
    flag(later)
    Task.objects.update(status="review")
    rule("ask", tom)
    flags.answered(next_submission(later), {raised(submission).pk}, actor=CODER)
    assert list(Flag.objects.values_list("status", flat=True)) == ["answered", "answered"]
    assert Conflict.objects.get().followed == "applied"


def test_a_question_is_due_under_the_newest_code(submission: Submission, tom: User) -> None:
    again = create_finding(create_review(submission), first=raised(submission), code="ISSUE-R2-001")
    flags.raise_flags(submission, [suspect(again)])
    rule("ask", tom)
    assert [finding.code for finding in intake.findings_to_answer(submission.task)] == ["ISSUE-R2-001"]


# --- What looking costs -------------------------------------------------------------------------------------


def many(submission: Submission, number: int) -> None:
    """So many more points with flags: some listed, some with cards, some of a task of their own."""
    for _ in range(number):
        finding = create_finding(raised(submission).review)
        flags.raise_flags(submission, [suspect(finding, "warn")])
        flags.raise_flags(submission, [suspect(create_finding(raised(submission).review), "log")])


def elsewhere(project: Project, number: int) -> None:
    """So many disputes that only flags and alerts have opened."""
    for index in range(number):
        task = create_task(project, status="review", round=2)
        finding = create_finding(create_review(create_submission(task, round=1)))
        submission = create_submission(task)
        flags.raise_flags(submission, [suspect(finding, "block" if index % 2 else "warn")])
        opening.open_conflict(
            task, kind="alert", origin="rate", opened_as="system", question="Too much?", severity="high",
            submission=submission, effect="log", evidence=["3 of 4 (75%)."],
        )  # fmt: skip


def cost(client: Client, path: str) -> int:
    cache.clear()
    with CaptureQueriesContext(connection) as queries:
        response = client.get(path)
    assert response.status_code == 200
    return len(queries)


@for_each("path", ["/queue/", "/queue/team/"])
def test_the_queue_costs_the_same_for_many_flags(
    client: Client, submission: Submission, ledger: Project, tom: User, path: str
) -> None:
    client.force_login(tom)
    many(submission, 1)
    elsewhere(ledger, 2)
    before = cost(client, path)
    many(submission, 6)
    elsewhere(ledger, 8)
    assert cost(client, path) == before


@for_each("kind", ["silence", "alert"])
def test_so_does_the_page_of_a_dispute(
    client: Client, submission: Submission, ledger: Project, tom: User, kind: str
) -> None:
    client.force_login(tom)
    many(submission, 2)
    opening.open_conflict(
        submission.task, kind="alert", origin="rate", opened_as="system", question="Too much?",
        severity="high", submission=submission, effect="log", evidence=["3 of 4 (75%)."],
    )  # fmt: skip
    shown = Conflict.objects.filter(kind=kind).order_by("pk")[0]
    path = f"/queue/{shown.dispute.ref}/?conflict={shown.ref}"
    before = cost(client, path)
    many(submission, 8)
    later = next_submission(submission)
    flags.raise_flags(later, [suspect(finding) for finding in Finding.objects.order_by("pk")])
    assert cost(client, path) == before


@for_each("url", ["/api/v1/disputes/", "/api/v1/disputes/{ref}/"])
def test_so_does_reading_over_rest(
    client: Client, submission: Submission, ledger: Project, tom: User, url: str
) -> None:
    client.force_login(tom)
    many(submission, 2)
    path = url.format(ref=card_of(submission).dispute.ref)
    before = cost(client, path)
    many(submission, 8)
    assert cost(client, path) == before


def card_of(submission: Submission) -> Conflict:
    return Conflict.objects.filter(submission=submission).order_by("pk")[0]


def test_what_the_coder_is_asked_costs_the_same_for_many_flags(
    submission: Submission, tom: User, django_assert_max_num_queries: Any
) -> None:
    many(submission, 3)
    for conflict in Conflict.objects.filter(status="open"):
        rulings.decide(conflict, "ask", user=tom, undo_seconds=0)
    task = Task.objects.get(pk=submission.task_id)
    with CaptureQueriesContext(connection) as few:
        intake.findings_to_answer(task)
    many(submission, 6)
    for conflict in Conflict.objects.filter(status="open"):
        rulings.decide(conflict, "ask", user=tom, undo_seconds=0)
    with django_assert_max_num_queries(len(few)):
        assert len(intake.findings_to_answer(task)) == 19

"""Sharing the queue: claims, whose turn it is, following, sleeping and waking, who is on call."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from disputes import jobs, opening, rulings, triage
from disputes.models import Conflict, Dispute, OnCall
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Dependency, Event, Membership, Project
from tasks.models.event import record
from tests.factories import create_submission, create_task

pytestmark = pytest.mark.django_db


@pytest.fixture
def conflict(ledger: Project) -> Conflict:
    task = create_task(ledger, status="disputed", round=1)
    return opening.open_conflict(
        task, kind="disagreement", origin="disagree", opened_as="coder", severity="high",
        question="Back off, or not?", submission=create_submission(task),
        reviewer_position="Wait longer each time.", coder_position="The limiter bounds it.",
    )  # fmt: skip


@pytest.fixture
def dispute(conflict: Conflict) -> Dispute:
    return conflict.dispute


def in_an_hour() -> Any:
    return timezone.now() + timedelta(hours=1)


def kinds(*wanted: str) -> list[tuple[str, dict[str, Any]]]:
    rows = Event.objects.filter(kind__in=wanted).order_by("pk")
    return list(rows.values_list("kind", "data"))


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.code


def is_asleep(dispute: Dispute) -> bool:
    return Dispute.objects.filter(triage.asleep(), pk=dispute.pk).exists()


# --- Claims -----------------------------------------------------------------------------------------------


def test_a_claim_stands_against_others_until_it_runs_out(dispute: Dispute, lea: User, tom: User) -> None:
    assert triage.claim(dispute, lea)
    assert not triage.claim(dispute, tom)
    assert dispute.claimed_by == lea
    Dispute.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    assert triage.claim(dispute, tom)


def test_who_claims_again_prolongs_it_and_who_goes_away_gives_it_back(
    dispute: Dispute, lea: User, tom: User
) -> None:
    Dispute.objects.update(claimed_by=lea, claimed_until=timezone.now() + timedelta(seconds=9))
    assert triage.claim(dispute, lea)
    dispute.refresh_from_db()
    assert dispute.claimed_until > timezone.now() + timedelta(minutes=4)
    triage.release(dispute, tom)
    dispute.refresh_from_db()
    assert dispute.claimed_by == lea
    triage.release(dispute, lea)
    dispute.refresh_from_db()
    assert (dispute.claimed_by, dispute.claimed_until) == (None, None)


def test_a_claim_is_no_event_and_keeps_nobody_from_ruling(conflict: Conflict, lea: User, tom: User) -> None:
    before = Event.objects.count()
    triage.claim(conflict.dispute, lea)
    assert Event.objects.count() == before
    assert rulings.decide(conflict, "uphold_coder", user=tom).user == tom


# --- Assigning and following -------------------------------------------------------------------------------


def test_assigning_is_one_event_that_names_the_person(dispute: Dispute, lea: User, tom: User) -> None:
    assert triage.assign(dispute, tom, by=lea)
    assert not triage.assign(dispute, tom, by=lea)
    assert triage.assign(dispute, None, by=tom)
    assert kinds("assigned") == [
        ("assigned", {"dispute": dispute.ref, "assignee": tom.pk}),
        ("assigned", {"dispute": dispute.ref, "assignee": None}),
    ]


def test_what_was_assigned_to_somebody_who_left_is_everybodys_turn_again(
    dispute: Dispute, lea: User, tom: User
) -> None:
    """Nobody else had it under Your turn, and its task said that it had waited for them."""
    for leave, back in (
        (lambda: Membership.objects.filter(user=tom).update(role="viewer"), {"role": "triager"}),
        (lambda: User.objects.filter(pk=tom.pk).update(is_active=False), {}),
        (lambda: User.objects.filter(pk=tom.pk).update(is_staff=False), {}),
        (lambda: Membership.objects.filter(user=tom).delete(), {}),
    ):
        User.objects.filter(pk=tom.pk).update(is_active=True, is_staff=True)
        assert triage.assign(dispute, User.objects.get(pk=tom.pk), by=lea)
        assert jobs.wake() == "woke 0, released 0"
        leave()
        assert jobs.wake() == "woke 0, released 1"
        assert Dispute.objects.get(pk=dispute.pk).assignee is None
        told = Event.objects.filter(kind="assigned").latest("pk")
        assert (told.note, told.actor_kind) == ("to nobody: Tom Tran may not rule here any more", "system")
        if not back:  # the account is shut
            shut = User.objects.get(pk=tom.pk)
            assert refused(lambda: triage.assign(dispute, shut, by=lea)) == "cannot_rule"  # noqa: B023
        Membership.objects.filter(user=tom).update(**back or {"role": "triager"})


def test_only_who_may_rule_assigns_and_is_assigned(
    conflict: Conflict, lea: User, vera: User, otto: User
) -> None:
    dispute = conflict.dispute
    assert refused(lambda: triage.assign(dispute, lea, by=vera)) == "no_right"
    for person in (vera, otto):
        assert refused(lambda person=person: triage.assign(dispute, person, by=lea)) == "cannot_rule"
    rulings.decide(conflict, "uphold_coder", user=lea)
    assert refused(lambda: triage.assign(dispute, lea, by=lea)) == "not_open"


def test_a_viewer_may_watch_and_an_outsider_may_not(dispute: Dispute, vera: User, otto: User) -> None:
    assert triage.follow(dispute, vera)
    assert not triage.follow(dispute, vera)
    assert triage.unfollow(dispute, vera)
    assert not triage.unfollow(dispute, vera)
    assert [kind for kind, _ in kinds("followed", "unfollowed")] == ["followed", "unfollowed"]
    assert refused(lambda: triage.follow(dispute, otto)) == "no_right"


# --- Sleeping and waking ----------------------------------------------------------------------------------


def test_what_sleeps_until_a_time_is_awake_then_even_before_the_job_says_so(
    dispute: Dispute, tom: User
) -> None:
    triage.snooze(dispute, by=tom, until=in_an_hour())
    assert is_asleep(dispute)
    assert jobs.wake() == "woke 0, released 0"
    Dispute.objects.update(snoozed_until=timezone.now() - timedelta(seconds=1))
    assert not is_asleep(dispute)
    assert Dispute.objects.filter(triage.awake()).exists()
    assert jobs.wake() == "woke 1, released 0"
    assert jobs.wake() == "woke 0, released 0"
    assert kinds("woken") == [("woken", {"dispute": dispute.ref, "why": "time"})]
    dispute.refresh_from_db()
    assert (dispute.snoozed_at, dispute.snoozed_by) == (None, None)


def test_a_submission_wakes_what_waits_for_one(ledger: Project, tom: User) -> None:
    task = create_task(ledger, status="in_progress", round=1)
    silence = opening.open_conflict(
        task, kind="silence", origin="flagged", opened_as="system", severity="high", effect="log",
        question="Was it overlooked?",
    )  # fmt: skip
    triage.snooze(silence.dispute, by=tom, condition="submission")
    record(ledger, "commented", actor=Actor("agent", "coder-1"), task=task)
    assert is_asleep(silence.dispute)
    task.submit(actor=Actor("agent", "coder-1"))
    assert not is_asleep(silence.dispute)
    assert kinds("woken") == [("woken", {"dispute": silence.dispute.ref, "why": "submission"})]


def test_a_comment_of_another_wakes_and_ones_own_does_not(dispute: Dispute, lea: User, tom: User) -> None:
    triage.snooze(dispute, by=tom, condition="comment", until=in_an_hour())
    record(dispute.project, "commented", actor=Actor.person(tom), task=dispute.task)
    assert is_asleep(dispute)
    record(dispute.project, "commented", actor=Actor.person(lea), task=dispute.task)
    assert not is_asleep(dispute)


def test_the_landing_of_a_task_that_it_waits_for_wakes_it(dispute: Dispute, tom: User) -> None:
    assert refused(lambda: triage.snooze(dispute, by=tom, condition="landing")) == "no_end"
    needed = create_task(dispute.project, status="completed", finished_by="hand")
    Dependency.objects.create(task=dispute.task, on=needed)
    dispute.task.waits_for = 1
    dispute.task.save()
    triage.snooze(dispute, by=tom, condition="landing")
    record(dispute.project, "landed", task=create_task(dispute.project))
    assert is_asleep(dispute)
    record(dispute.project, "landed", task=needed)
    assert not is_asleep(dispute)


def test_a_new_conflict_wakes_the_dispute(conflict: Conflict, tom: User) -> None:
    triage.snooze(conflict.dispute, by=tom, until=in_an_hour())
    opening.open_conflict(
        conflict.task, kind="disagreement", origin="cli", opened_as="coder", question="Whose task is it?",
        severity="medium", reviewer_position="Yours.", coder_position="Not mine.",
    )  # fmt: skip
    assert not is_asleep(conflict.dispute)
    assert kinds("woken")[0][1]["why"] == "conflict"


def test_a_person_wakes_it(dispute: Dispute, tom: User, vera: User) -> None:
    triage.snooze(dispute, by=tom, until=in_an_hour())
    assert refused(lambda: triage.wake_by(dispute, vera)) == "no_right"
    assert triage.wake_by(dispute, tom)
    assert not triage.wake_by(dispute, tom)


def test_a_snooze_needs_an_end_and_the_right(conflict: Conflict, tom: User, vera: User) -> None:
    dispute, now = conflict.dispute, timezone.now()
    for code, given in (
        ("no_end", {}),
        ("too_long", {"until": now - timedelta(minutes=1)}),
        ("too_long", {"until": now + timedelta(days=400)}),
        ("unknown_condition", {"condition": "rain"}),
    ):
        assert refused(lambda given=given: triage.snooze(dispute, by=tom, **given)) == code
    assert refused(lambda: triage.snooze(dispute, by=vera, until=in_an_hour())) == "no_right"
    rulings.decide(conflict, "uphold_coder", user=tom)
    assert refused(lambda: triage.snooze(dispute, by=tom, until=in_an_hour())) == "not_open"
    assert kinds("snoozed") == []


def test_the_event_of_a_snooze_says_until_when(dispute: Dispute, tom: User) -> None:
    triage.snooze(dispute, by=tom, condition="comment")
    event = Event.objects.get(kind="snoozed")
    assert (event.note, event.task) == ("until somebody comments", dispute.task)
    assert event.data == {"dispute": dispute.ref, "until": None, "condition": "comment"}


# --- OnCall -------------------------------------------------------------------------------------------------


def test_on_call_is_who_the_rota_names_that_day_and_who_may_rule(
    ledger: Project, lea: User, tom: User, vera: User, otto: User
) -> None:
    monday, sunday = date(2026, 11, 23), date(2026, 11, 29)
    for user in (tom, vera, otto):
        OnCall.objects.create(project=ledger, user=user, first_day=monday, last_day=sunday)

    def called(day: date | None = None) -> list[User]:
        return [row.user for row in triage.on_call([ledger.pk], day)]

    assert called(monday) == [tom]
    assert called(sunday) == [tom]
    assert called(sunday + timedelta(days=1)) == []
    OnCall.objects.create(
        project=ledger, user=lea, first_day=timezone.localdate(), last_day=timezone.localdate()
    )
    assert lea in called()


def test_the_job_that_wakes_is_scheduled_each_minute(db: Any) -> None:
    from django_q.models import Schedule

    schedule = Schedule.objects.get(func="disputes.jobs.wake")
    assert (schedule.schedule_type, schedule.minutes, schedule.repeats) == (Schedule.MINUTES, 1, -1)

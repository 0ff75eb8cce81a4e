"""What is said when nobody rules: at 4 h, at 24 h, at 7 d. Time decides nothing."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from disputes import rulings, triage
from disputes.models import Conflict, Delivery, Dispute, Reminder
from disputes.notifications import audience, fanout, reminders
from tasks.models import Event, Membership, Project
from tasks.models.event import record
from tests.notifications.conftest import create_channel, open_card

pytestmark = pytest.mark.django_db

SAID = ("nudged", "unattended", "stale")


@pytest.fixture
def card(ledger: Project, tom: User, lea: User) -> Conflict:
    """An open card; Lea leads, and both have a channel."""
    Membership.objects.filter(user=lea).update(is_lead=True)
    create_channel(user=tom)
    create_channel(user=lea)
    conflict = open_card(ledger)
    fanout.take_up()
    return conflict


def said_after(**waited: Any) -> list[str]:
    """What is said once so much time has passed since the card was opened."""
    ago = timedelta(**waited)
    for reminder in Reminder.objects.all():
        shift = timezone.now() - ago - reminder.since
        reminder.since, reminder.due_at = reminder.since + shift, reminder.due_at + shift
        reminder.save()
    before = Event.objects.filter(kind__in=SAID).count()
    reminders.remind()
    return list(Event.objects.filter(kind__in=SAID).order_by("pk").values_list("kind", flat=True))[before:]


def test_each_step_is_said_once_in_its_time(card: Conflict) -> None:
    assert said_after(hours=3) == []
    assert said_after(hours=5) == ["nudged"]
    assert said_after(hours=6) == []
    assert said_after(hours=25) == ["unattended"]
    assert said_after(days=6) == []
    assert said_after(days=8) == ["stale"]
    assert said_after(days=80) == []
    card.refresh_from_db()
    assert card.status == "open"  # nothing is ever decided by a time


def test_nobody_is_reminded_of_a_card_whose_project_has_ended(card: Conflict, ledger: Project) -> None:
    Project.objects.filter(pk=ledger.pk).update(status="finished")
    assert said_after(hours=25) == []
    Project.objects.filter(pk=ledger.pk).update(status="active")
    assert said_after(hours=50) == ["unattended"]


def test_after_a_long_silence_only_the_latest_is_said(card: Conflict) -> None:
    assert said_after(days=3) == ["unattended"]
    assert said_after(days=3, hours=1) == []


def test_the_holder_is_nudged_then_who_is_on_call_and_leads_are_told(
    card: Conflict, ledger: Project, tom: User
) -> None:
    Dispute.objects.update(assignee=tom)
    Delivery.objects.all().delete()
    for hours, told in ((5, {"tom"}), (25, {"tom", "lea"})):
        said_after(hours=hours)
        fanout.take_up()
        assert set(Delivery.objects.values_list("channel__user__username", flat=True)) == told
        assert set(Delivery.objects.values_list("topic", flat=True)) == {"reminder"}
        Delivery.objects.all().delete()


def test_whoever_has_left_holds_nothing_and_those_on_call_are_told(
    card: Conflict, ledger: Project, tom: User
) -> None:
    Dispute.objects.update(assignee=tom)
    User.objects.filter(pk=tom.pk).update(is_active=False)
    card.dispute.refresh_from_db()
    assert audience.holder(card.dispute) == set()
    User.objects.filter(pk=tom.pk).update(is_active=True)
    assert audience.holder(card.dispute) == {tom.pk}
    Membership.objects.filter(project=ledger, user=tom).delete()
    assert audience.holder(card.dispute) == set()


def test_who_gets_it_later_has_the_whole_time(card: Conflict, ledger: Project, tom: User, lea: User) -> None:
    said_after(hours=3, minutes=50)
    triage.assign(card.dispute, tom, by=lea)
    fanout.take_up()
    soon = Reminder.objects.get().due_at - timezone.now()
    assert soon > timedelta(hours=3, minutes=59)


def test_a_settled_dispute_is_not_spoken_of(card: Conflict, tom: User) -> None:
    rulings.decide(card, "uphold_reviewer", user=tom)
    fanout.take_up()
    assert not Reminder.objects.exists()
    assert said_after(days=30) == []


def test_a_snoozed_dispute_is_left_alone_until_it_is_awake(card: Conflict) -> None:
    until = timezone.now() + timedelta(days=1)
    Dispute.objects.update(snoozed_at=timezone.now(), snoozed_until=until)
    assert said_after(hours=30) == []
    assert Reminder.objects.get().due_at == until + timedelta(hours=1)


@pytest.mark.parametrize(
    ("alert", "kinds", "told"), [("log", ["stale"], 0), ("webhook", ["stale"], 1), ("none", [], 0)]
)
def test_the_project_says_what_follows_when_a_dispute_is_stale(
    card: Conflict, ledger: Project, alert: str, kinds: list[str], told: int
) -> None:
    Project.objects.update(settings={"alert_on_stale": alert, "timeout_days": 10})
    Delivery.objects.all().delete()
    said_after(days=9)
    fanout.take_up()
    Delivery.objects.all().delete()
    assert said_after(days=11) == kinds
    fanout.take_up()
    assert Delivery.objects.filter(topic="stale").count() == told  # to Lea, who leads


def test_a_project_may_want_no_nudge(ledger: Project) -> None:
    Project.objects.update(settings={"nudge_hours": 0, "lead_hours": 0})
    open_card(Project.objects.get(pk=ledger.pk))
    fanout.take_up()
    assert said_after(days=2) == []
    assert Reminder.objects.get().step == "stale"


def test_a_broken_project_does_not_hold_up_the_others(
    card: Conflict, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = record  # the real one, for the second dispute
    calls: list[str] = []

    def once(*args: Any, **kwargs: Any) -> Any:
        calls.append(args[1])
        if len(calls) == 1:
            raise ZeroDivisionError
        return other(*args, **kwargs)

    open_card(card.dispute.project)
    fanout.take_up()
    monkeypatch.setattr(reminders, "record", once)
    assert said_after(hours=5) == ["nudged"]
    assert Reminder.objects.filter(due_at__gt=timezone.now()).count() == 2

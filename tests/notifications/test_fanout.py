"""From an event to deliveries: the outbox, who is told, and through which channel."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DataError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from disputes import rulings, triage
from disputes.models import Delivery, Dispute, Follow, OnCall
from disputes.notifications import fanout, sending
from disputes.notifications.notices import NOTICES, TOLD
from tasks.events import Actor
from tasks.models import Event, Membership, Notice, Project
from tasks.models.event import record
from tasks.remarks.comments import add_comment
from tests.factories import create_user
from tests.notifications.conftest import create_channel, open_card

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]


def told() -> dict[str, str]:
    """Who got a delivery, and as what; takes up what is noted."""
    fanout.take_up()
    rows = Delivery.objects.select_related("channel__user")
    return {row.channel.user.username if row.channel.user else "project": row.topic for row in rows}


@pytest.fixture
def reachable(lea: User, tom: User, vera: User, otto: User, ledger: Project) -> None:
    """Everybody of the cast has a channel, and so has the project."""
    for user in (lea, tom, vera, otto):
        create_channel(user=user)
    Membership.objects.filter(user=lea).update(is_lead=True)


# --- The outbox -------------------------------------------------------------------------------------------


def test_an_event_and_its_notice_are_written_together_or_not_at_all(ledger: Project) -> None:
    def verb() -> None:
        with transaction.atomic():
            record(ledger, "trouble", note="Away.")
            assert Notice.objects.count() == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        verb()
    assert not Notice.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_so_it_is_where_the_caller_has_no_transaction(
    ledger: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notice.objects, "bulk_create", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        record(ledger, "trouble")
    assert not Event.objects.exists()


def test_nobody_is_told_of_other_kinds(ledger: Project) -> None:
    record(ledger, "run_queued")
    assert not Notice.objects.exists()


def test_every_event_of_which_people_are_told_is_recorded_somewhere() -> None:
    """A row whose event nobody records would never be sent."""
    sources = "".join(
        path.read_text() for app in ("agents", "disputes", "tasks") for path in (ROOT / app).rglob("*.py")
        if path.name != "notices.py" and "migrations" not in path.parts
    )  # fmt: skip
    assert [kind for kind in sorted(TOLD) if f'"{kind}"' not in sources] == []


def test_every_row_of_a_kind_can_be_reached() -> None:
    """The row for all cards of a kind stands behind those for some of them."""
    for kind in TOLD:
        rows = [row.of_origin for row in NOTICES if row.event == kind]
        assert len(set(rows)) == len(rows)
        assert rows[-1] == ""


def test_a_notice_is_taken_up_once(reachable: None, ledger: Project) -> None:
    open_card(ledger)
    notice = Notice.objects.get()
    assert fanout.take(notice.pk) == 2
    assert fanout.take(notice.pk) == 0
    assert not Notice.objects.exists()


def test_a_notice_that_cannot_be_taken_up_waits_and_holds_up_no_other(
    reachable: None, ledger: Project, lea: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned = record(ledger, "trouble")
    open_card(ledger)
    real = fanout.subject_of

    def subject_of(event: Event) -> Any:
        if event == poisoned:
            raise DataError("value out of range")
        return real(event)

    monkeypatch.setattr(fanout, "subject_of", subject_of)
    assert set(told()) == {"lea", "tom"}
    row = Notice.objects.get()
    assert (row.event, row.tries, row.error) == (poisoned, 1, "DataError: value out of range")
    assert row.due_at > timezone.now()
    assert fanout.take_up() == 0
    client.force_login(create_user("root", is_superuser=True))
    for tries in range(2, fanout.SHOWN_AFTER + 1):
        assert b"could not be put into messages" not in client.get("/admin/").content
        Notice.objects.update(due_at=timezone.now())
        assert fanout.take_up() == 1
        assert Notice.objects.get().tries == tries
    assert b"1 event could not be put into messages" in client.get("/admin/").content
    assert Notice.objects.get().due_at > timezone.now() + timedelta(hours=1)
    client.force_login(lea)
    assert b"could not be put into messages" not in client.get("/admin/").content
    monkeypatch.undo()
    Notice.objects.update(due_at=timezone.now())
    assert fanout.take_up() == 1
    assert Delivery.objects.filter(event=poisoned).exists()
    assert not Notice.objects.exists()


def test_while_the_database_is_away_no_notice_is_blamed(
    reachable: None, ledger: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(ledger, "trouble")
    monkeypatch.setattr(fanout, "subject_of", lambda event: 1 / 0)
    monkeypatch.setattr(fanout, "is_passing", lambda error: True)
    with pytest.raises(ZeroDivisionError):
        fanout.take_up()
    assert Notice.objects.get().tries == 0


# --- Who --------------------------------------------------------------------------------------------------


def test_without_anybody_on_call_all_who_may_rule_are_told_of_a_new_card(
    reachable: None, ledger: Project
) -> None:
    open_card(ledger)
    assert told() == {"lea": "opened", "tom": "opened"}


def test_with_a_rota_only_who_is_on_call(reachable: None, ledger: Project, tom: User, lea: User) -> None:
    today = timezone.localdate()
    OnCall.objects.create(project=ledger, user=tom, first_day=today, last_day=today)
    last_week = today - timedelta(days=7)
    OnCall.objects.create(project=ledger, user=lea, first_day=last_week, last_day=last_week)
    open_card(ledger)
    assert told() == {"tom": "opened"}


def test_an_assignment_tells_the_assignee_but_not_who_took_it(
    reachable: None, ledger: Project, tom: User, lea: User
) -> None:
    dispute = open_card(ledger).dispute
    told()
    Delivery.objects.all().delete()
    triage.assign(dispute, tom, by=lea)
    assert told() == {"tom": "assigned"}
    Delivery.objects.all().delete()
    triage.assign(dispute, None, by=lea)
    triage.assign(dispute, lea, by=lea)
    assert told() == {}


def test_a_comment_tells_watchers_and_says_to_the_mentioned_that_they_are(
    reachable: None, ledger: Project, tom: User, lea: User, vera: User, otto: User
) -> None:
    dispute = open_card(ledger).dispute
    told()
    Delivery.objects.all().delete()
    for user in (lea, tom, vera, otto):
        Follow.objects.create(dispute=dispute, user=user)
    add_comment(ledger, "Look, @vera and @otto.", actor=Actor.person(tom), task=dispute.task)
    assert told() == {"lea": "commented", "vera": "mentioned"}  # Otto is no member, Tom wrote it


def test_a_ruling_tells_the_assignee_and_watchers_but_not_who_ruled(
    reachable: None, ledger: Project, tom: User, lea: User, vera: User
) -> None:
    conflict = open_card(ledger)
    told()
    Delivery.objects.all().delete()
    Dispute.objects.filter(pk=conflict.dispute_id).update(assignee=lea)
    Follow.objects.create(dispute=conflict.dispute, user=vera)
    Follow.objects.create(dispute=conflict.dispute, user=tom)
    conflict.refresh_from_db()
    rulings.decide(conflict, "uphold_reviewer", user=tom)
    assert told() == {"lea": "ruled", "vera": "ruled"}


def test_a_project_in_trouble_tells_its_leads(reachable: None, ledger: Project) -> None:
    record(ledger, "trouble", note="The remote is away.")
    assert told() == {"lea": "project"}


def test_people_who_left_or_were_locked_out_are_not_told(
    reachable: None, ledger: Project, tom: User, lea: User
) -> None:
    Membership.objects.filter(user=tom).delete()
    User.objects.filter(pk=lea.pk).update(is_staff=False)
    open_card(ledger)
    assert told() == {}


def test_where_a_lead_or_everybody_has_left_whoever_comes_next_is_told(
    reachable: None, ledger: Project, tom: User, lea: User
) -> None:
    """The lead is shut out first, then the maintainer who is left, then the triager: superusers remain."""
    create_channel(user=create_user("root", is_superuser=True))
    max_ = create_user("max")
    create_channel(user=max_)
    Membership.objects.create(project=ledger, user=max_, role=Membership.Role.MAINTAINER)
    for left, leads, duty in (
        (lea, {"max"}, {"max", "tom"}),
        (max_, {"root"}, {"tom"}),
        (tom, {"root"}, {"root"}),
    ):
        User.objects.filter(pk=left.pk).update(is_active=left == lea, is_staff=left != lea)
        for kind, names in (("trouble", leads), ("card", duty)):
            Delivery.objects.all().delete()
            open_card(ledger) if kind == "card" else record(ledger, kind, note="The remote is away.")
            assert {*told()} == names, (left, kind)


# --- Through which channel --------------------------------------------------------------------------------


def test_a_person_gets_one_message_an_event_through_the_closest_channel(ledger: Project, tom: User) -> None:
    create_channel(user=tom, name="General")
    create_channel(user=tom, name="Phone")
    create_channel(user=tom, name="Here", project=ledger)
    create_channel(user=tom, name="Asleep", project=ledger, is_active=False)
    open_card(ledger)
    fanout.take_up()
    assert [row.channel.name for row in Delivery.objects.all()] == ["Here"]


def test_what_the_channel_of_a_project_does_not_want_comes_through_no_other(
    ledger: Project, tom: User, lea: User
) -> None:
    create_channel(user=tom, name="General")
    create_channel(user=tom, name="Here", project=ledger, wants=["assigned"])
    create_channel(user=lea, name="Small", wants=["ruled"])
    create_channel(user=lea, name="Large", wants=["opened", "ruled"])
    open_card(ledger)
    fanout.take_up()
    assert [row.channel.name for row in Delivery.objects.all()] == ["Large"]


def test_a_project_has_channels_of_its_own_that_choose_topics_too(ledger: Project) -> None:
    create_channel(project=ledger, name="Room")
    create_channel(project=ledger, name="Landings", wants=["landed"])
    open_card(ledger)
    fanout.take_up()
    assert [row.channel.name for row in Delivery.objects.all()] == ["Room"]


def test_a_stale_dispute_is_told_only_where_the_project_wants_it(reachable: None, ledger: Project) -> None:
    dispute = open_card(ledger).dispute
    told()
    Delivery.objects.all().delete()
    record(ledger, "stale", task=dispute.task, data={"dispute": dispute.ref, "told": False})
    assert told() == {}
    record(ledger, "stale", task=dispute.task, data={"dispute": dispute.ref, "told": True})
    assert told() == {"lea": "stale"}


def test_many_people_cost_no_more_queries(ledger: Project) -> None:
    counts = []
    for number in (2, 20):
        for _ in range(number):
            user = create_user()
            Membership.objects.create(project=ledger, user=user, role="triager")
            create_channel(user=user)
        open_card(ledger)
        with CaptureQueriesContext(connection) as queries:
            fanout.take_up()
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.django_db(transaction=True)
def test_two_workers_take_up_a_notice_once_and_send_a_message_once(ledger: Project, tom: User) -> None:
    create_channel(user=tom)
    open_card(ledger)
    notice = Notice.objects.get()
    assert sorted(at_once(lambda: fanout.take(notice.pk))) == [0, 1]
    row = Delivery.objects.get()
    now = timezone.now()
    won = at_once(lambda: sending.claim(Delivery.objects.get(pk=row.pk), now))
    assert sorted(won) == [False, True]
    assert Delivery.objects.get().tries == 1


def at_once(work: Any) -> list[Any]:
    """What two threads got that began together."""
    barrier, got = threading.Barrier(2), list[Any]()

    def run() -> None:
        try:
            barrier.wait(60)
            got.append(work())
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got

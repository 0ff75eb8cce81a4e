"""The pages of notifications: who sets up which channel, what is never shown, and the count for the tab."""

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from disputes import rulings, triage
from disputes.models import Channel, Delivery
from disputes.notifications import fanout, sealing, signing
from disputes.notifications.notices import OF_A_PERSON, OF_A_PROJECT
from tasks.models import Event, Project
from tests.asking import as_user
from tests.cases import for_each
from tests.factories import create_project, create_user
from tests.notifications.conftest import create_channel, open_card
from tests.notifications.receiver import Receiver
from tests.notifications.test_sending import verify

pytestmark = pytest.mark.django_db

ADDRESS = "https://example.org/hooks/very-secret-token"
ALL = [topic.value for topic in OF_A_PERSON]
TYPED = {"name": "Hook", "kind": "webhook", "address": ADDRESS, "wants": ALL, "timezone": "Europe/Berlin"}


def html(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    return answer.content.decode()


# --- A channel from its beginning to its end ----------------------------------------------------------------


def test_a_webhook_is_added_and_its_secret_shown_once(client: Client, ledger: Project, tom: User) -> None:
    as_user(client, tom)
    answer = client.post("/notifications/add/", TYPED | {"quiet_from": "22:00", "quiet_until": "07:00"})
    assert answer.status_code == 200
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", answer.content.decode())
    assert secret
    channel = Channel.objects.get()
    assert (channel.user, channel.project, channel.service, channel.wants) == (tom, None, "example.org", [])
    assert str(channel.quiet_from) == "22:00:00"
    for path in ("/notifications/", f"/notifications/{channel.pk}/", "/notifications/deliveries/"):
        shown = html(client, path)
        assert "very-secret-token" not in shown
        assert secret[0] not in shown


def test_addresses_and_secrets_are_sealed_at_rest(client: Client, ledger: Project, tom: User) -> None:
    as_user(client, tom).post("/notifications/add/", TYPED)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM disputes_channel")
        row = repr(cursor.fetchall())
    assert "very-secret" not in row
    assert "whsec_" not in row
    assert sealing.unseal(Channel.objects.get().sealed_address) == ADDRESS


def test_nobody_reads_an_address_in_the_admin(client: Client, ledger: Project, tom: User) -> None:
    channel = create_channel(ADDRESS, user=tom)
    as_user(client, create_user("root", is_superuser=True))
    shown = html(client, f"/admin/disputes/channel/{channel.pk}/change/") + html(
        client, "/admin/disputes/channel/"
    )
    assert "very-secret" not in shown
    assert channel.sealed_address not in shown


def test_a_change_keeps_the_address_unless_a_new_one_is_typed(
    client: Client, ledger: Project, tom: User
) -> None:
    channel = create_channel(ADDRESS, user=tom)
    path = f"/notifications/{channel.pk}/"
    typed = {"name": "Renamed", "wants": ["assigned"], "timezone": "UTC", "project": ledger.pk}
    assert as_user(client, tom).post(path, typed | {"address": ""}).status_code == 302
    channel.refresh_from_db()
    assert (channel.name, channel.wants, channel.project) == ("Renamed", ["assigned"], ledger)
    assert sealing.unseal(channel.sealed_address) == ADDRESS
    assert client.post(path, typed | {"address": "https://example.org/other"}).status_code == 302
    channel.refresh_from_db()
    assert sealing.unseal(channel.sealed_address) == "https://example.org/other"
    assert channel.kind == "webhook"


def test_it_is_paused_resumed_and_removed(client: Client, ledger: Project, tom: User) -> None:
    channel = create_channel(user=tom)
    as_user(client, tom)
    for verb, active in (("pause", False), ("resume", True)):
        assert client.post(f"/notifications/{channel.pk}/{verb}/").status_code == 302
        channel.refresh_from_db()
        assert channel.is_active is active
    client.post(f"/notifications/{channel.pk}/delete/")
    assert not Channel.objects.exists()


def test_a_new_secret_signs_beside_the_old_one(client: Client, ledger: Project, tom: User) -> None:
    old = signing.new_secret()
    channel = create_channel(user=tom, secret=old)
    answer = as_user(client, tom).post(f"/notifications/{channel.pk}/secret/")
    new = re.search(r"whsec_[A-Za-z0-9+/=]+", answer.content.decode())
    assert new
    channel.refresh_from_db()
    kept = json.loads(sealing.unseal(channel.sealed_secret))
    assert [secret for secret, _ in kept] == [new[0], old]


def test_a_test_message_says_what_came_of_it(
    client: Client, receiver: Receiver, ledger: Project, tom: User
) -> None:
    secret = signing.new_secret()
    channel = create_channel(receiver.url, secret, user=tom)
    as_user(client, tom)
    answer = client.post(f"/notifications/{channel.pk}/test/", follow=True)
    assert "A message went out to Hook." in answer.content.decode()
    (taken,) = receiver.taken
    assert taken.json["type"] == "test"
    verify(secret, taken.headers, taken.body)
    again = client.post(f"/notifications/{channel.pk}/test/", follow=True)
    assert "One try in 5 seconds." in again.content.decode()
    assert not Delivery.objects.exists()


@for_each(
    ("change", "told"),
    [
        ({"address": "http://example.org/"}, "A webhook begins with https://."),
        ({"address": "exec://ls", "kind": "people"}, "exec is none of the services"),
        ({"address": "lea@example.org", "kind": "people"}, "It begins with a service, such as mailto://"),
        ({"address": ""}, "This field is required."),
        ({"wants": []}, "Choose at least one"),
        ({"wants": ["anything"]}, "Select a valid choice"),
        ({"quiet_from": "22:00"}, "Quiet hours have two ends."),
        ({"quiet_from": "22:00", "quiet_until": "22:00"}, "end at another time"),
        ({"digest_at": "08:00"}, "A webhook gets each event by itself."),
        ({"timezone": "Gone/Away"}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_stands_at_its_field_and_the_rest_is_kept(
    client: Client, ledger: Project, tom: User, change: dict[str, Any], told: str
) -> None:
    answer = as_user(client, tom).post("/notifications/add/", TYPED | {"name": "Kept"} | change)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert told in page
    assert 'value="Kept"' in page
    assert not Channel.objects.exists()


def test_there_is_an_end_to_channels(client: Client, ledger: Project, tom: User) -> None:
    for _ in range(20):
        create_channel(user=tom)
    answer = as_user(client, tom).post("/notifications/add/", TYPED)
    assert answer.status_code == 422
    assert "There are 20 channels already." in answer.content.decode()


# --- Whose ------------------------------------------------------------------------------------------------


def test_a_channel_of_somebody_else_does_not_exist(
    client: Client, ledger: Project, tom: User, lea: User
) -> None:
    channel = create_channel(user=tom)
    for user in (lea, create_user("root", is_superuser=True)):
        as_user(client, user)
        assert client.get(f"/notifications/{channel.pk}/").status_code == 404
        for verb in ("test", "pause", "delete", "secret"):
            assert client.post(f"/notifications/{channel.pk}/{verb}/").status_code == 404
    assert Channel.objects.get().is_active


def test_the_channels_of_a_project_are_its_maintainers_business(
    client: Client, ledger: Project, lea: User, tom: User, otto: User
) -> None:
    channel = create_channel(project=ledger, name="Room")
    paths = (
        "/notifications/projects/ledger/",
        "/notifications/add/?of=ledger",
        f"/notifications/{channel.pk}/",
    )
    for user, status in ((lea, 200), (tom, 403), (otto, 404)):
        as_user(client, user)
        assert [client.get(path).status_code for path in paths] == [status] * 3
    assert client.post("/notifications/add/?of=ledger").status_code == 404
    assert as_user(client, tom).post("/notifications/add/?of=ledger").status_code == 403
    assert client.post(f"/notifications/{channel.pk}/delete/").status_code == 403
    typed = TYPED | {"name": "Machines", "wants": [topic.value for topic in OF_A_PROJECT]}
    as_user(client, lea).post("/notifications/add/?of=ledger", typed)
    added = Channel.objects.get(name="Machines")
    assert (added.user, added.project, added.wants) == (None, ledger, [])
    assert Event.objects.get(kind="channel").note == "Machines (example.org) was added."
    assert "Room" not in html(client, "/notifications/")


def test_a_person_chooses_among_their_own_projects(client: Client, ledger: Project, tom: User) -> None:
    other = create_project("other")
    answer = as_user(client, tom).post("/notifications/add/", TYPED | {"project": other.pk})
    assert answer.status_code == 422
    assert "Other" not in html(client, "/notifications/add/")

    mine = create_channel(
        user=tom, project=ledger
    )  # left, it stays where it is when something else is changed
    ledger.memberships.filter(user=tom).delete()
    path = f"/notifications/{mine.pk}/"
    assert f'<option value="{ledger.pk}" selected>' in html(client, path)
    typed = {"name": "Phone", "wants": ["assigned"], "timezone": "UTC", "address": "", "project": ledger.pk}
    assert client.post(path, typed).status_code == 302
    mine.refresh_from_db()
    assert (mine.name, mine.project) == ("Phone", ledger)


def test_deliveries_are_seen_by_those_whom_they_concern(
    client: Client, ledger: Project, lea: User, tom: User, vera: User
) -> None:
    create_channel(user=tom, name="Toms")
    create_channel(project=ledger, name="Room")
    open_card(ledger)
    fanout.take_up()
    path = "/notifications/deliveries/"
    for user, seen in ((tom, (True, False)), (lea, (False, True)), (vera, (False, False))):
        page = html(as_user(client, user), path)
        assert ("through Toms" in page, "through Room" in page) == seen


def test_many_channels_and_deliveries_cost_no_more_queries(
    client: Client, ledger: Project, tom: User
) -> None:
    as_user(client, tom)
    counts = []
    for _ in range(2):
        for _ in range(5):
            create_channel(user=tom)
            open_card(ledger)
            fanout.take_up()
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            html(client, "/notifications/")
            html(client, "/notifications/deliveries/")
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] <= 30


# --- The count for the tab ----------------------------------------------------------------------------------


def test_the_count_is_of_what_waits_for_the_person(
    client: Client, ledger: Project, tom: User, lea: User, otto: User
) -> None:
    first, second = open_card(ledger, "First?"), open_card(ledger, "Second?")
    as_user(client, tom)
    newest = {"id": second.dispute_id, "title": "Second?", "url": f"/queue/{second.dispute.ref}/"}
    assert client.get("/notifications/count/").json() == {"count": "2", "newest": newest}
    rulings.decide(first, "uphold_reviewer", user=lea)
    triage.assign(second.dispute, lea, by=lea)
    cache.clear()
    assert client.get("/notifications/count/").json() == {"count": "0", "newest": None}
    assert as_user(client, otto).get("/notifications/count/").json()["count"] == "0"
    client.logout()
    assert client.get("/notifications/count/").status_code == 403


def test_every_page_loads_the_count_and_leads_to_the_channels(
    client: Client, ledger: Project, tom: User
) -> None:
    as_user(client, tom)
    for path in ("/admin/", "/queue/", "/notifications/"):
        page = html(client, path)
        assert "steroids/count.js" in page
        assert 'href="/notifications/"' in page

"""Sending to real servers on this machine: at least once, the same id each time, at last visibly given up."""

import re
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from email import message_from_string
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents.loop import orchestrator
from disputes.models import Channel, Delivery
from disputes.notifications import fanout, jobs, sending, signing
from disputes.notifications.notices import Topic
from tasks.models import Membership, Notice, Project
from tests.notifications.conftest import create_channel, open_card
from tests.notifications.receiver import MailServer, Receiver, certificate_for, http_server, serve

pytestmark = pytest.mark.django_db

DOCS = Path(__file__).parents[2] / "docs" / "notifications.md"


def verify(secret: str, headers: dict[str, str], body: bytes, **kwargs: Any) -> None:
    """The procedure that the documentation gives to receivers, word for word."""
    code = re.search(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert code
    names: dict[str, Any] = {}
    exec(code[1], names)  # noqa: S102
    names["verify"](secret, headers, body, **kwargs)


def owe(project: Project, **kwargs: Any) -> list[Delivery]:
    """What the channels are owed after a card was opened."""
    before = set(Delivery.objects.values_list("pk", flat=True))
    open_card(project, **kwargs)
    fanout.take_up()
    return list(Delivery.objects.exclude(pk__in=before).order_by("pk"))


def let_time_pass() -> None:
    """The waits between two tries are over."""
    Delivery.objects.filter(sent_at=None, failed_at=None).update(due_at=timezone.now())


# --- A signed webhook -------------------------------------------------------------------------------------


def test_a_webhook_is_signed_as_the_documentation_says(
    receiver: Receiver, ledger: Project, tom: User
) -> None:
    told = DOCS.read_text(encoding="utf-8")
    assert {topic.value for topic in Topic if f"`{topic.value}`" not in told} == set()
    secret = signing.new_secret()
    create_channel(f"{receiver.url}/hook?for=tom", secret, user=tom)
    (row,) = owe(ledger)
    assert jobs.tell() == "reminders 0, notices 0, sent 1"
    (taken,) = receiver.taken
    assert taken.path == "/hook?for=tom"
    verify(secret, taken.headers, taken.body)
    assert taken.headers["webhook-id"] == taken.json["id"] == str(row.uid)
    assert taken.json["type"] == "opened"
    row.refresh_from_db()
    assert row.sent_at
    assert row.error == ""
    with pytest.raises(ValueError, match="not signed"):
        verify(secret, taken.headers, taken.body.replace(b"Back off", b"Go ahead"))
    with pytest.raises(ValueError, match="not signed"):
        verify(signing.new_secret(), taken.headers, taken.body)
    with pytest.raises(ValueError, match="too old"):
        verify(secret, taken.headers | {"webhook-timestamp": str(int(time.time()) - 301)}, taken.body)


def test_while_a_secret_is_exchanged_both_fit() -> None:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    old, new = signing.new_secret(), signing.new_secret()
    kept = signing.exchanged(signing.exchanged("", old, now), new, now)
    assert signing.ring_of(kept, now) == [new, old]
    assert signing.ring_of(kept, now + timedelta(hours=25)) == [new]
    headers = signing.headers([new, old], "id", int(time.time()), b"{}")
    verify(old, headers, b"{}")
    verify(new, headers, b"{}")


def test_a_failed_webhook_is_sent_again_under_the_same_id(
    receiver: Receiver, ledger: Project, tom: User
) -> None:
    create_channel(receiver.url, user=tom)
    receiver.statuses = [500, 503]
    (row,) = owe(ledger)
    for tries, error in ((1, "The server answered 500."), (2, "The server answered 503.")):
        jobs.tell()
        jobs.tell()  # not yet
        row.refresh_from_db()
        assert (row.tries, row.error, row.sent_at) == (tries, error, None)
        assert row.due_at > timezone.now()
        let_time_pass()
    jobs.tell()
    row.refresh_from_db()
    assert row.sent_at
    assert row.error == ""
    assert {taken.headers["webhook-id"] for taken in receiver.taken} == {str(row.uid)}
    assert len(receiver.taken) == 3


def test_the_waits_between_tries_grow_to_six_hours(ledger: Project, tom: User) -> None:
    create_channel(user=tom)
    (row,) = owe(ledger)
    now, waits = timezone.now(), []
    for _ in range(sending.TRIES_MAX):
        Delivery.objects.update(due_at=now)
        row.refresh_from_db()
        assert sending.claim(row, now)
        row.refresh_from_db()
        waits.append(row.due_at - now)
    assert waits == sorted(waits)
    assert waits[0] == timedelta(minutes=1)
    assert waits[-1] == timedelta(hours=6)


def test_it_gives_up_visibly_and_may_be_asked_to_try_again(
    client: Client, receiver: Receiver, ledger: Project, tom: User, vera: User
) -> None:
    create_channel(receiver.url, user=tom, name="Mine")
    receiver.statuses = [500]
    (row,) = owe(ledger)
    Delivery.objects.update(tries=sending.TRIES_MAX - 1)
    jobs.tell()
    row.refresh_from_db()
    assert row.failed_at
    client.force_login(tom)
    assert "1 message to your channels could not be delivered." in client.get("/admin/").content.decode()
    page = client.get("/notifications/deliveries/?failed=1").content.decode()
    assert "The server answered 500." in page
    assert str(row.uid) in page
    assert "could not be delivered" in client.get("/notifications/").content.decode()
    assert client.post(f"/notifications/deliveries/{row.pk}/again/").status_code == 302
    jobs.tell()
    row.refresh_from_db()
    assert row.sent_at
    assert [taken.headers["webhook-id"] for taken in receiver.taken] == [str(row.uid)] * 2
    client.force_login(vera)
    assert client.post(f"/notifications/deliveries/{row.pk}/again/").status_code == 404


def test_a_try_that_was_never_finished_is_made_again_and_ends_too(ledger: Project, tom: User) -> None:
    create_channel(user=tom)
    (row,) = owe(ledger)
    now = timezone.now()
    assert sending.claim(row, now)  # and then the worker dies
    assert not sending.due(now).exists()
    assert sending.due(now + timedelta(minutes=1)).exists()
    Delivery.objects.update(tries=sending.TRIES_MAX, due_at=now)
    assert sending.send_due(10) == 0
    row.refresh_from_db()
    assert row.failed_at
    assert row.error == sending.UNFINISHED


def test_a_redirect_is_not_followed_and_410_ends_it(receiver: Receiver, ledger: Project, tom: User) -> None:
    create_channel(f"{receiver.url}/here", user=tom)
    receiver.statuses, receiver.location = [302, 410], "/elsewhere"
    (row,) = owe(ledger)
    jobs.tell()
    row.refresh_from_db()
    assert row.error == "The server answered 302."
    let_time_pass()
    jobs.tell()
    row.refresh_from_db()
    assert row.failed_at
    assert [taken.path for taken in receiver.taken] == ["/here", "/here"]


def test_a_webhook_over_tls_wants_a_certificate_that_fits(
    ledger: Project, tom: User, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TELL_PRIVATE = True
    receiver = Receiver()
    server = http_server(receiver)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_for("localhost", tmp_path))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    serve(server)
    create_channel(f"https://localhost:{receiver.port}/", user=tom)
    (row,) = owe(ledger)
    jobs.tell()
    row.refresh_from_db()
    assert "certificate verify failed" in row.error
    assert receiver.taken == []
    monkeypatch.setitem(sending.post.ENVIRONMENT, "SSL_CERT_FILE", str(tmp_path / "own.pem"))
    let_time_pass()
    jobs.tell()
    server.shutdown()
    server.server_close()
    row.refresh_from_db()
    assert row.sent_at
    assert len(receiver.taken) == 1


# --- Dead and slow channels -------------------------------------------------------------------------------


def test_a_dead_channel_holds_up_no_other(receiver: Receiver, ledger: Project, tom: User, lea: User) -> None:
    create_channel("http://127.0.0.1:9/secret-path-of-tom", user=tom)
    create_channel(receiver.url, user=lea)
    dead = [row for _ in range(3) for row in owe(ledger) if row.channel.user == tom]
    assert jobs.tell().endswith("sent 3")
    assert len(receiver.taken) == 3
    assert Delivery.objects.get(pk=dead[0].pk).error == "No server takes connections at this address."
    assert [Delivery.objects.get(pk=row.pk).tries for row in dead] == [1, 0, 0]  # once a turn is enough


@pytest.mark.django_db(transaction=True)
def test_while_a_slow_channel_is_waited_for_the_loop_turns(
    receiver: Receiver, ledger: Project, tom: User
) -> None:
    create_channel(receiver.url, user=tom)
    (row,) = owe(ledger)
    receiver.released.clear()

    def work() -> None:
        jobs.tell()
        connection.close()

    job = threading.Thread(target=work)
    job.start()
    assert receiver.arrived.wait(60)
    orchestrator.tick()  # takes no part in it
    assert jobs.tell() == "under way already"  # and takes no second worker
    owe(ledger)  # a verb goes through too: nothing is held open
    assert job.is_alive()
    receiver.released.set()
    job.join()
    row.refresh_from_db()
    assert row.sent_at


def test_a_channel_that_never_answers_is_left_after_its_time(
    receiver: Receiver, ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending.post, "SECONDS", 3.0)
    create_channel(receiver.url, user=tom)
    (row,) = owe(ledger)
    receiver.released.clear()
    jobs.tell()
    row.refresh_from_db()
    assert row.error == "No answer within 3 s."
    assert row.sent_at is None


def test_the_tick_sends_nothing(receiver: Receiver, ledger: Project, tom: User) -> None:
    create_channel(receiver.url, user=tom)
    owe(ledger)
    orchestrator.tick()
    assert receiver.taken == []


def test_what_cannot_be_put_into_words_holds_up_no_other(
    receiver: Receiver, ledger: Project, tom: User, lea: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_channel(receiver.url, user=tom, name="Broken")
    create_channel(receiver.url, user=lea)
    owe(ledger)
    real = sending._content

    def content(channel: Channel, *args: Any) -> Any:
        if channel.name == "Broken":
            raise ZeroDivisionError
        return real(channel, *args)

    monkeypatch.setattr(sending, "_content", content)
    assert jobs.tell().endswith("sent 1")
    assert Delivery.objects.get(channel__user=tom).error == "The message could not be written."


# --- Asked again when it goes out -------------------------------------------------------------------------


def test_who_has_left_since_is_not_told(receiver: Receiver, ledger: Project, tom: User) -> None:
    create_channel(receiver.url, user=tom)
    (row,) = owe(ledger)
    Membership.objects.filter(user=tom).delete()
    jobs.tell()
    row.refresh_from_db()
    assert row.error == "Not sent: tom may no longer see Ledger."
    assert row.failed_at
    assert receiver.taken == []


def test_a_paused_channel_is_silent(receiver: Receiver, ledger: Project, tom: User) -> None:
    create_channel(receiver.url, user=tom)
    (row,) = owe(ledger)
    Channel.objects.update(is_active=False)
    jobs.tell()
    row.refresh_from_db()
    assert row.error == "Not sent: the channel is paused."
    assert receiver.taken == []


def test_quiet_hours_that_began_meanwhile_hold_a_message_back_unless_it_is_critical(
    receiver: Receiver, ledger: Project, tom: User
) -> None:
    create_channel(receiver.url, user=tom)
    owe(ledger)
    (critical,) = owe(ledger, severity="critical")
    now = timezone.now()
    Channel.objects.update(
        quiet_from=(now - timedelta(hours=1)).time(), quiet_until=(now + timedelta(hours=1)).time()
    )
    assert jobs.tell().endswith("sent 1")
    assert [taken.json["id"] for taken in receiver.taken] == [str(critical.uid)]
    assert Delivery.objects.get(sent_at=None).tries == 0


def test_an_address_that_was_sealed_with_a_lost_key_says_so(
    ledger: Project, tom: User, settings: Any
) -> None:
    create_channel(user=tom)
    (row,) = owe(ledger)
    settings.SECRET_KEY = "another-" * 8
    jobs.tell()
    row.refresh_from_db()
    assert row.failed_at
    assert row.error == "SECRET_KEY has changed since this address was entered. Enter it again."


# --- People ---------------------------------------------------------------------------------------------


def test_a_service_gets_one_message_with_all_that_is_due(
    receiver: Receiver, ledger: Project, tom: User, settings: Any
) -> None:
    settings.URL = "https://steroids.example.org"
    address = f"json://127.0.0.1:{receiver.port}/room"
    create_channel(address, user=tom, kind="people", digest_at=clock(9))
    owe(ledger, question="First? @channel")
    owe(ledger, question="Second?")
    jobs.tell()
    assert receiver.taken == []  # it is not nine yet
    let_time_pass()
    assert jobs.tell().endswith("sent 1")
    (taken,) = receiver.taken
    assert taken.json["title"] == "2 messages from Steroids Web"
    said = taken.json["message"]
    assert said.index("1. Disagreement waits for a ruling: First? \uff20channel") < said.index("Second?")
    assert "https://steroids.example.org/queue/D-" in said
    assert not Delivery.objects.filter(sent_at=None).exists()


def test_a_mail_has_one_subject_line_whatever_the_question_says(
    mail: MailServer, ledger: Project, tom: User, settings: Any
) -> None:
    settings.URL = "https://steroids.example.org"
    port = mail.server_address[1]
    address = f"mailto://127.0.0.1:{port}?from=steroids@example.org&to=tom@example.org&mode=insecure"
    create_channel(address, user=tom, kind="people")
    (row,) = owe(ledger, question="Wait?\r\nBcc: everybody@example.org")
    jobs.tell()
    row.refresh_from_db()
    assert row.error == ""
    letter = message_from_string(mail.letters[0], policy=default)
    assert letter["bcc"] is None
    assert letter["subject"] == (
        "[ledger] Disagreement waits for a ruling: Wait? Bcc: everybody\uff20example.org"
    )
    assert "tom@example.org" in letter["to"]
    assert (letter["auto-submitted"], letter["message-id"]) == ("auto-generated", f"<{row.uid}@127.0.0.1>")
    assert "Sent by the channel Hook: https://steroids.example.org/notifications/" in letter.get_content()


def test_what_a_service_says_of_its_trouble_tells_no_secret(
    receiver: Receiver, ledger: Project, tom: User
) -> None:
    address = f"json://somebody:secret-password@127.0.0.1:{receiver.port}/secret-token"
    create_channel(address, user=tom, kind="people")
    receiver.statuses = [500]
    (row,) = owe(ledger)
    jobs.tell()
    row.refresh_from_db()
    assert row.error
    assert "secret" not in row.error
    assert row.failed_at is None


def test_a_private_address_is_refused_for_good_where_the_installation_forbids_it(
    receiver: Receiver, ledger: Project, tom: User, lea: User, settings: Any
) -> None:
    settings.TELL_PRIVATE = False
    create_channel(receiver.url, user=tom)
    create_channel(f"json://localhost:{receiver.port}", user=lea, kind="people")
    owe(ledger)
    jobs.tell()
    for row in Delivery.objects.all():
        assert row.failed_at
        assert "The address leads to this machine or to a private network." in row.error
    assert receiver.taken == []


# --- The jobs -------------------------------------------------------------------------------------------


def test_what_is_old_is_forgotten_and_sealed_anew(ledger: Project, tom: User, settings: Any) -> None:
    channel = create_channel(user=tom)
    rows = owe(ledger) + owe(ledger) + owe(ledger)
    old = timezone.now() - timedelta(days=31)
    Delivery.objects.filter(pk=rows[0].pk).update(sent_at=old)
    Delivery.objects.filter(pk=rows[1].pk).update(failed_at=old)
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another-" * 8
    assert jobs.tidy() == "deliveries 2, sealed again 1"
    settings.SECRET_KEY_FALLBACKS = []
    channel.refresh_from_db()
    assert sending.unseal(channel.sealed_address) == "https://example.org/hook"


def test_both_jobs_are_scheduled_and_the_bell_rings_once(tom: User, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.apps import apps
    from django_q.models import Schedule

    from disputes.apps import schedule_jobs
    from disputes.notifications import bell
    from tasks import broker

    schedule_jobs(sender=apps.get_app_config("disputes"))
    functions = set(Schedule.objects.values_list("func", flat=True))
    assert {"disputes.notifications.jobs.tell", "disputes.notifications.jobs.tidy"} <= functions
    rung: list[str] = []
    monkeypatch.setattr(broker, "async_task", lambda name, **kwargs: rung.append(name))
    bell.ring(1)
    assert rung == []  # nobody has a channel: the schedule is soon enough
    create_channel(user=tom)
    bell.ring(1)
    bell.ring(2)
    assert rung == ["disputes.notifications.jobs.tell"]
    assert not Notice.objects.exists()


def test_a_worker_carries_out_what_the_bell_asked_for(tom: User, monkeypatch: pytest.MonkeyPatch) -> None:
    from django_q.conf import Conf
    from django_q.models import Success

    from disputes.notifications import bell
    from tasks import broker

    monkeypatch.setattr(Conf, "SYNC", True)  # django-q's own worker, in this process
    create_channel(user=tom)
    broker.begin(bell.WAITING)
    bell.ring()
    assert Success.objects.get().func == "disputes.notifications.jobs.tell"

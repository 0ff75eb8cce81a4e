"""A form of a page that comes twice: pressed twice, at the same moment, or again after an undo."""

import re
import threading
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from agents.models import Token
from disputes.models import Channel
from disputes.notifications.notices import OF_A_PERSON
from steroidsweb import twice
from steroidsweb.models import Invitation
from tasks.models import Comment, Idempotency, Project, Task
from tests.factories import create_section, create_task

pytestmark = pytest.mark.django_db(transaction=True)

HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?')


def form_at(client: Client, path: str, **typed: Any) -> dict[str, Any]:
    """Return what the page at the path sends besides what is typed, with the token of this one page."""
    hidden = dict(HIDDEN.findall(client.get(path).content.decode()))
    return hidden | {name: 0 for name in hidden if name.endswith("-TOTAL_FORMS")} | typed


def test_whatever_is_sent_twice_is_made_once_and_both_answers_lead_to_it(
    client: Client, ledger: Project, lea: User
) -> None:
    User.objects.filter(pk=lea.pk).update(is_superuser=True)
    client.force_login(lea)
    section, task = create_section(ledger), create_task(ledger)
    place, list_of_tasks = f"/tasks/{task.ref}/", "# Ledger\n\n- [ ] Round half up\n"
    imported = f"/projects/{ledger.slug}/tasks/import/"
    shown = client.post(imported, form_at(client, imported, text=list_of_tasks, preview="")).content.decode()
    forms = (
        (imported, dict(HIDDEN.findall(shown)) | {"text": list_of_tasks, "import": ""}, Task),
        (f"{place}comments/", form_at(client, place, body="Once, please.", next=place), Comment),
        ("/admin/tasks/task/add/",
         form_at(client, "/admin/tasks/task/add/", title="Once", severity="low", section=section.pk), Task),
        ("/admin/steroidsweb/invitation/add/",
         form_at(client, "/admin/steroidsweb/invitation/add/", whom="Ann", expires_at_0="2999-01-01",
                 expires_at_1="10:00"), Invitation),
        ("/admin/agents/token/add/", form_at(client, "/admin/agents/token/add/", name="mine"), Token),
    )  # fmt: skip
    for path, form, made in forms:
        before = made._default_manager.count()
        answers = [client.post(path, form) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [302] * 3, path
        assert len({answer.headers["Location"] for answer in answers}) == 1, path
        assert made._default_manager.count() == before + 1, path
        said = client.get(answers[0].headers["Location"]).content.decode()
        assert "The form came twice. It took effect once." in said, path
    webhook = {
        "name": "Hook", "kind": "webhook", "address": "https://example.org/a", "wants": [*OF_A_PERSON],
        "timezone": "UTC",
    }  # fmt: skip
    form = form_at(client, "/notifications/add/", **webhook)
    shown_once, again = [client.post("/notifications/add/", form) for _ in range(2)]
    assert "whsec_" in shown_once.content.decode()
    assert again.headers["Location"] == f"/notifications/{Channel.objects.get().pk}/"
    # What was refused may come again; so may what something else was sent after, and from a page made anew.
    refused = form_at(client, place, body=" ", next=place)
    assert [client.post(f"{place}comments/", refused).status_code for _ in range(2)] == [422] * 2
    path, form, _ = forms[1]
    assert client.post(path, form).status_code == 302
    assert client.post(path, form_at(client, place, body="Once, please.", next=place)).status_code == 302
    assert Comment.objects.count() == 3


def test_the_second_of_two_at_the_same_moment_waits_for_the_first(
    client: Client, ledger: Project, lea: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the first is never answered: nobody waits for ever, and later it counts as new."""
    client.force_login(lea)
    place = f"/tasks/{create_task(ledger).ref}/"
    form, answers = form_at(client, place, body="Once", next=place), []
    save = Comment.save
    monkeypatch.setattr(Comment, "save", lambda *given, **more: (time.sleep(0.5), save(*given, **more)))

    def press() -> None:
        try:
            other = Client()
            other.cookies = client.cookies
            answers.append(other.post(f"{place}comments/", form))
        finally:
            connection.close()

    presses = [threading.Thread(target=press) for _ in range(2)]
    for each in presses:
        each.start()
    for each in presses:
        each.join(60)
    assert {answer.headers["Location"] for answer in answers} == {
        f"{place}#comment-{Comment.objects.get().pk}"
    }

    monkeypatch.setattr(twice, "PATIENCE", 0.2)
    Idempotency.objects.update(status=twice.UNDER_WAY)
    waited = client.post(f"{place}comments/", form)
    assert (waited.status_code, Comment.objects.count()) == (409, 1)
    said = waited.content.decode()
    assert "still being worked on, unless the server was restarted" in said
    assert f'href="{place}">Back</a>' in said
    assert re.search("If nothing has changed there, send it again in (60|[45][0-9]) seconds", said), said
    monkeypatch.setattr(twice, "REMEMBERED", twice.REMEMBERED * 0)
    assert client.post(f"{place}comments/", form).status_code == 302
    assert Comment.objects.count() == 2

"""The audit of the installation, and where a person is signed in."""

import re
import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import DatabaseError, transaction
from django.test import Client

from agents.models import Token
from steroidsweb.accounts import invitations
from steroidsweb.accounts.invitations import JoinForm
from steroidsweb.models import AuditEntry, SignedIn
from tests.agents.world import at_once
from tests.factories import create_token, create_user

pytestmark = pytest.mark.django_db


def sign_in(name: str, password: str = "secret-password", browser: str = "Firefox") -> Client:
    client = Client(headers={"user-agent": browser})
    client.post("/admin/login/", {"username": name, "password": password})
    return client


def entries() -> list[tuple[str, str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("kind", "who", "about"))


def test_who_signed_in_and_who_could_not_is_written_down_without_what_they_typed(tom: User) -> None:
    client = sign_in("tom")
    sign_in("tom", "wrong")
    sign_in("hunter2-in-the-wrong-field", "x")
    client.post("/admin/logout/")
    assert [entry[:2] for entry in entries()] == [
        ("signed_in", "tom"), ("refused", "tom"), ("refused", ""), ("signed_out", "tom"),
    ]  # fmt: skip
    assert {entry.address for entry in AuditEntry.objects.all()} == {"127.0.0.1"}
    assert "hunter2" not in str(list(AuditEntry.objects.values()))


def test_every_change_in_the_admin_is_written_down_also_of_many_at_once(tom: User) -> None:
    root = create_user("root", is_superuser=True)
    for name in ("one", "two", "three"):
        create_token(root, name)
    client = Client()
    client.force_login(root)
    keys = [str(pk) for pk in Token.objects.values_list("pk", flat=True)]
    client.post(
        "/admin/agents/token/",
        {"action": "delete_selected", "_selected_action": keys, "post": "yes"},
    )
    assert Token.objects.count() == 0
    assert [kind for kind, *_ in entries()] == ["signed_in", "deleted", "deleted", "deleted"]
    assert {about for kind, _, about in entries() if kind == "deleted"} == {
        f"token {name} of root" for name in ("one", "two", "three")
    }
    page = client.get("/admin/steroidsweb/auditentry/")
    assert page.status_code == 200
    assert "token two of root" in page.content.decode()


def test_the_database_refuses_to_touch_the_audit(tom: User) -> None:
    sign_in("tom")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEntry.objects.update(who="nobody")


def test_people_see_their_own_sessions_and_end_them(tom: User, vera: User) -> None:
    here, there, hers = sign_in("tom"), sign_in("tom", browser="Old <b>phone"), sign_in("vera")
    page = here.get("/sessions/").content.decode()
    assert page.count("this one") == 1
    assert "Old &lt;b&gt;phone" in page
    names = re.findall(r'aria-label="(End session [^"]+)"', page)
    assert len(names) == len(set(names)) == SignedIn.objects.filter(user=tom).count() == 2
    other = SignedIn.objects.get(browser="Old <b>phone")
    assert hers.post(f"/sessions/{other.pk}/end/").status_code == 404
    assert here.post(f"/sessions/{other.pk}/end/").status_code == 302
    assert there.get("/sessions/").status_code == 302
    assert here.get("/sessions/").status_code == 200
    assert AuditEntry.objects.filter(kind="ended", who="tom", about__contains="phone").count() == 1
    mine = SignedIn.objects.get(user=tom)
    assert here.post(f"/sessions/{mine.pk}/end/")["Location"] == "/admin/login/"
    assert here.get("/sessions/").status_code == 302
    assert Session.objects.count() == SignedIn.objects.count() == 1


def test_a_new_password_ends_the_other_sessions_and_leaves_this_one_in_the_list(tom: User) -> None:
    here, there = sign_in("tom"), sign_in("tom", browser="Lost phone")
    new = "another-password-7"
    answer = here.post(
        "/admin/password_change/",
        {"old_password": "secret-password", "new_password1": new, "new_password2": new},
    )
    assert answer.status_code == 302
    page = here.get("/sessions/").content.decode()
    assert page.count("this one") == 1
    assert "Lost phone" not in page
    assert there.get("/sessions/").status_code == 302
    assert Session.objects.count() == SignedIn.objects.count() == 1
    assert ("changed", "tom", "user tom") in entries()

    root = Client()
    root.force_login(create_user("root", is_superuser=True))
    for path in (f"/admin/auth/user/{tom.pk}/password/",):
        root.post(path, {"password1": "a-third-password-7", "password2": "a-third-password-7"})
    assert not SignedIn.objects.filter(user=tom).exists()
    assert here.get("/sessions/").status_code == 302


def test_who_may_not_sign_in_any_more_is_nobody_by_session_and_by_token(tom: User) -> None:
    browser, (_, secret) = sign_in("tom"), create_token(tom, "laptop")
    machine = Client(headers={"authorization": f"Bearer {secret}"})
    for taken in ("is_staff", "is_active"):
        for value, page, answer in ((True, 200, 200), (False, 302, 401), (True, 200, 200)):
            User.objects.filter(pk=tom.pk).update(**{taken: value})
            assert browser.get("/queue/").status_code == page, (taken, value)
            for client in (browser, machine):
                assert client.get("/api/v1/projects/").status_code == answer, (taken, value)
            assert (sign_in("tom").get("/queue/").status_code == 200) == value


def test_people_end_all_other_sessions_at_once(tom: User, vera: User) -> None:
    here, there, hers = sign_in("tom"), sign_in("tom", browser="Lost phone"), sign_in("vera")
    other = SignedIn.objects.get(browser="Lost phone")
    assert "End all others" in here.get("/sessions/").content.decode()
    answer = here.post("/sessions/end-others/", follow=True).content.decode()
    assert "1 other session has ended." in answer
    assert "End all others" not in answer
    assert there.get("/sessions/").status_code == 302
    assert here.get("/sessions/").status_code == hers.get("/sessions/").status_code == 200
    assert AuditEntry.objects.filter(kind="ended", who="tom", about__contains="phone").count() == 1

    late = here.post(f"/sessions/{other.pk}/end/")
    assert late.status_code == 404
    assert "That session is not open any more." in late.content.decode()


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/17.5 Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/126.0.0.0 Safari/537.36",
            "Chrome on Android",
        ),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "an unknown browser"),
    ],
)
def test_a_browser_is_named_as_people_know_it(tom: User, sent: str, shown: str) -> None:
    assert f"{shown}</p>" in sign_in("tom", browser=sent).get("/sessions/").content.decode()


def test_whoever_is_signed_in_is_told_what_an_invitation_would_do(tom: User) -> None:
    root = create_user("root", is_superuser=True)
    link = invitations.link(invitations.invite(root, {}), "")
    words = "You are signed in as tom."
    assert words in sign_in("tom").get(link).content.decode()
    assert words not in Client().get(link).content.decode()
    for right in (
        "is_active",
        "is_staff",
        "is_superuser",
    ):  # an invitation is worth what whoever made it may do
        type(root).objects.filter(pk=root.pk).update(**{right: False})
        assert Client().get(link).status_code == 404
        type(root).objects.filter(pk=root.pk).update(**{right: True})
    assert Client().get(link).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_two_guests_at_once_each_gets_an_account_of_its_own_or_is_told_why_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One link for two names, and one name for two links."""
    root, valid, together = create_user("root", is_superuser=True), JoinForm.is_valid, threading.Barrier(2)
    monkeypatch.setattr(JoinForm, "is_valid", lambda form: (valid(form), together.wait(60))[0])
    link, other = (invitations.link(invitations.invite(root, {}), "") for _ in range(2))
    for links, names, answers in (
        ((link, link), ("ann", "bob"), {302: "", 404: "This invitation was used"}),
        ((other, invitations.link(invitations.invite(root, {}), "")), ("cy", "cy"),
         {302: "", 200: "Somebody took this name a moment ago"}),
    ):  # fmt: skip
        said: dict[int, str] = {}

        def join(at: str, name: str, said: dict[int, str] = said) -> None:
            typed: dict[str, Any] = {
                "username": name,
                "password1": "pw-of-a-guest",
                "password2": "pw-of-a-guest",
            }
            answer = Client().post(at, typed)
            said[answer.status_code] = answer.content.decode()

        before = User.objects.count()
        at_once(*(lambda pair=pair: join(*pair) for pair in zip(links, names, strict=True)))
        assert said.keys() == answers.keys()
        assert all(words in said[status] for status, words in answers.items())
        assert User.objects.count() == before + 1

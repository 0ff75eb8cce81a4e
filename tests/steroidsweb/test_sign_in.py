"""Signing in, and how often a wrong password may be tried: per name and address, per address, at once."""

import contextlib
import re
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client, RequestFactory
from django.utils import timezone

from agents.api.throttling import UnknownTokenThrottle
from agents.setup.first_hour import keep_password
from steroidsweb.accounts import brake
from steroidsweb.env import env_networks
from steroidsweb.models import SignInTries
from tasks.addresses import address_of
from tests.factories import create_token, create_user

LOGIN = "/admin/login/?next=/queue/"
HERE, ELSEWHERE = "203.0.113.7", "198.51.100.9"
pytestmark = pytest.mark.django_db


def try_in(name: str, password: str = "wrong", address: str = HERE) -> Any:
    return Client(REMOTE_ADDR=address).post(LOGIN, {"username": name, "password": password})


def statuses(name: str, tries: int, **kwargs: Any) -> list[int]:
    return [try_in(name, **kwargs).status_code for _ in range(tries)]


def later(**time: float) -> None:
    """As if so much time had passed."""
    ago = timedelta(**time)
    for row in SignInTries.objects.all():
        SignInTries.objects.filter(pk=row.pk).update(free_at=row.free_at - ago, forget_at=row.forget_at - ago)


def test_five_wrong_passwords_and_then_a_wait_even_for_the_right_one(lea: User) -> None:
    assert statuses("lea", 5) == [200] * 5

    response = try_in("lea", "secret-password")
    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 60
    assert "Too many tries. Wait " in response.content.decode()
    assert "lea" in response.content.decode()  # what was typed is still there


def test_the_old_password_is_guessed_no_faster_by_whoever_has_a_session(lea: User) -> None:
    client, new = Client(REMOTE_ADDR=HERE), "another-password-7"
    client.post(LOGIN, {"username": "lea", "password": "secret-password"})
    sent = {"new_password1": new, "new_password2": new}
    for number in range(6):
        old = "secret-password" if number == 5 else f"guess-{number}"
        answer = client.post("/admin/password_change/", sent | {"old_password": old})
        assert ("Too many tries. Wait 1 minute" in answer.content.decode()) == (number == 5)
    assert brake.begin_try(brake.for_person(lea.pk, "code")) == timedelta()  # whose code is not shut with it
    later(minutes=1)
    answer = client.post("/admin/password_change/", sent | {"old_password": "secret-password"})
    assert (answer.status_code, try_in("lea", new).status_code) == (302, 302)


def test_whoever_waits_so_long_gets_in_and_begins_anew(lea: User) -> None:
    statuses("lea", 5)
    wait = int(try_in("lea", "secret-password")["Retry-After"])
    later(seconds=wait)

    assert try_in("lea", "secret-password").status_code == 302
    assert statuses("lea", 5) == [200] * 5


def test_each_further_wrong_password_doubles_the_wait_up_to_an_hour(lea: User) -> None:
    statuses("lea", 5)
    waits = []
    for _ in range(8):
        waits.append(round(int(try_in("lea")["Retry-After"]) / 60))
        later(minutes=waits[-1])
        assert try_in("lea").status_code == 200

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_wait_grows_no_longer_by_knocking_during_it(lea: User) -> None:
    statuses("lea", 5)

    assert statuses("lea", 20) == [429] * 20
    assert int(try_in("lea")["Retry-After"]) <= 60


def test_tries_are_forgotten_after_a_quarter_of_an_hour(lea: User) -> None:
    statuses("lea", 4)
    later(minutes=15)

    assert statuses("lea", 5) == [200] * 5


def test_other_people_and_other_addresses_are_not_held_up(lea: User, tom: User) -> None:
    statuses("lea", 6)

    assert try_in("tom", "secret-password").status_code == 302
    assert try_in("lea", "secret-password", ELSEWHERE).status_code == 302


def test_an_address_that_tries_many_names_is_held_up_under_every_name(tom: User) -> None:
    for number in range(brake.FOR_ADDRESS // 5):
        assert statuses(f"name{number}", 5) == [200] * 5

    assert try_in("tom", "secret-password").status_code == 429
    assert try_in("tom", "secret-password", ELSEWHERE).status_code == 302


def test_a_success_takes_back_its_own_try_of_the_address_and_no_other(lea: User) -> None:
    statuses("somebody", 3)
    assert try_in("lea", "secret-password").status_code == 302

    key = brake.counters("lea", HERE)
    assert sorted(SignInTries.objects.filter(key__in=[each.key for each in key]).values_list("count")) == [
        (3,)
    ]


def test_a_name_that_nobody_has_is_treated_like_one_that_somebody_has(
    lea: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_user("gone", is_active=False)
    User.objects.create_user("guest", password="secret-password")  # no staff
    hashed: list[str] = []
    encode = MD5PasswordHasher.encode
    monkeypatch.setattr(
        MD5PasswordHasher, "encode",
        lambda self, password, salt: (hashed.append(password), encode(self, password, salt))[1],
    )  # fmt: skip
    seen = []
    for name, password in (
        ("lea", "wrong"),
        ("nobody", "wrong"),
        ("gone", "secret-password"),
        ("guest", "secret-password"),
    ):
        hashed.clear()
        pages = [try_in(name, password) for _ in range(6)]
        texts = [page.content.decode().count("errornote") for page in pages]
        seen.append(([page.status_code for page in pages], texts, len(hashed)))

    assert seen[0][0] == [200] * 5 + [429]
    assert all(each == seen[0] for each in seen)


def test_a_name_is_the_same_in_capitals_and_is_not_stored(lea: User) -> None:
    statuses("lea", 3)
    assert [try_in("LEA").status_code for _ in range(3)] == [200, 200, 429]

    assert all("lea" not in row.key for row in SignInTries.objects.all())


def test_an_empty_form_is_no_try(lea: User) -> None:
    assert [try_in("lea", "").status_code for _ in range(8)] == [200] * 8
    assert not SignInTries.objects.exists()


def test_rows_of_long_ago_are_cleared_away(lea: User) -> None:
    statuses("somebody", 2, address=ELSEWHERE)
    later(hours=2)
    try_in("lea")

    assert not SignInTries.objects.filter(forget_at__lt=timezone.now()).exists()


# --- At once ------------------------------------------------------------------------------------------------


@pytest.fixture
def at_once() -> Any:
    """Runs a function in so many threads, each with a connection of its own, and gives what they answered."""

    def run(number: int, work: Any) -> list[Any]:
        start, found = threading.Barrier(number), []

        def go() -> None:
            try:
                start.wait(60)
                found.append(work())
            finally:
                connection.close()

        threads = [threading.Thread(target=go) for _ in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        return found

    return run


@pytest.mark.django_db(transaction=True)
def test_of_many_tries_at_once_no_more_than_five_get_through(at_once: Any) -> None:
    create_user("lea")
    answers = Counter(at_once(20, lambda: try_in("lea").status_code))

    assert answers == {200: 5, 429: 15}


@pytest.mark.django_db(transaction=True)
def test_two_who_come_back_at_the_same_moment_both_sign_in(
    at_once: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each deletes what is known of the other one, which is too old, and then needs its own.

    So does a third, whose row another try deletes just before it is locked.
    """
    counted = [brake.counters(name, f"10.0.0.{number}") for number, name in enumerate(("lea", "tom"))]
    long_ago = timezone.now() - timedelta(days=1)
    for counter in (*counted[0], *counted[1]):
        SignInTries.objects.create(key=counter.key, free_at=long_ago, forget_at=long_ago)
    both, create = threading.Barrier(2, timeout=2), SignInTries.objects.bulk_create

    def once_both_have_deleted(*given: Any, **more: Any) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait()
        return create(*given, **more)

    monkeypatch.setattr(SignInTries.objects, "bulk_create", once_both_have_deleted)
    mine = iter(counted)
    assert at_once(2, lambda: brake.begin_try(next(mine))) == [timedelta(), timedelta()]

    gone: list[Any] = []

    def before_all_is_deleted(*given: Any, **more: Any) -> None:
        create(*given, **more)
        if not gone:
            gone.append(SignInTries.objects.all().delete())

    monkeypatch.setattr(SignInTries.objects, "bulk_create", before_all_is_deleted)
    assert brake.begin_try(counted[0]) == timedelta()
    assert list(SignInTries.objects.values_list("count", flat=True)) == [1, 1]


# --- The address --------------------------------------------------------------------------------------------


def asked(remote: str, forwarded: str = "") -> str:
    extra = {"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {}
    return address_of(RequestFactory().get("/", REMOTE_ADDR=remote, **extra))


def test_what_a_stranger_says_about_its_address_is_not_believed() -> None:
    assert asked(HERE, "192.0.2.1") == HERE


def test_a_trusted_proxy_names_the_caller_and_no_further_back(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEROIDS_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")
    settings.TRUSTED_PROXIES = env_networks("STEROIDS_TRUSTED_PROXIES")

    assert asked("127.0.0.1", HERE) == HERE
    assert asked("10.1.2.3", f"192.0.2.1, {HERE}, 10.9.9.9") == HERE
    assert asked("10.1.2.3", "nonsense") == "10.1.2.3"
    assert asked("10.1.2.3") == "10.1.2.3"


def test_a_proxy_that_cannot_be_read_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEROIDS_TRUSTED_PROXIES", "10.0.0.300")
    with pytest.raises(ImproperlyConfigured, match="STEROIDS_TRUSTED_PROXIES"):
        env_networks("STEROIDS_TRUSTED_PROXIES")


def test_the_addresses_of_one_household_count_as_one() -> None:
    assert asked("2001:db8:1:2::1") == asked("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert asked("::ffff:203.0.113.7") == HERE
    assert asked("") == "unknown"


# --- Tokens -------------------------------------------------------------------------------------------------


def test_an_address_with_many_unknown_tokens_is_told_to_wait_and_a_good_one_goes_on(
    lea: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UnknownTokenThrottle, "rate", "5/min", raising=False)
    _, secret = create_token(lea, "laptop")

    def ask(token: str, address: str = HERE) -> Any:
        return Client(REMOTE_ADDR=address).get("/api/v1/me/", headers={"Authorization": f"Bearer {token}"})

    assert [ask(f"stx_{number}").status_code for number in range(6)] == [401] * 5 + [429]
    assert int(ask("stx_x")["Retry-After"]) > 0
    assert ask(secret).status_code == 200
    assert ask("stx_x", ELSEWHERE).status_code == 401


def test_the_password_that_was_written_down_is_removed_once_it_was_used(
    tmp_path: Path, settings: Any, tom: User
) -> None:
    settings.HOME = tmp_path
    for password, stays in (("another-one", True), ("secret-password", False)):
        file = keep_password(password)
        assert try_in("tom", "wrong").status_code == 200
        assert file.exists()
        assert try_in("tom", "secret-password").status_code == 302
        assert file.exists() is stays
        assert ("the file that holds it" in Client().get("/admin/login/").content.decode()) is stays
    assert try_in("tom", "secret-password").status_code == 302


def test_people_sign_in_and_out_in_the_same_words_everywhere(client: Client, lea: User) -> None:
    shown = [client.get("/admin/login/").content.decode()]
    client.force_login(lea)
    shown += [client.get("/admin/").content.decode(), client.post("/admin/logout/").content.decode()]
    for html, said in zip(shown, ("Sign in", "Sign out", "Sign in again"), strict=True):
        assert said in html
        assert re.findall(r"(?i)\blog(?:ged)? (?:in|out)\b", html) == []

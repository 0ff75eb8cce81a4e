"""Sign-in for teams, on an installation that asks for it: second factors, OpenID Connect, invitations."""

import hmac
import json
import re
import shutil
import subprocess
import sys
import time
from base64 import b32decode
from collections.abc import Iterator
from hashlib import sha1
from html import unescape
from http.cookiejar import CookieJar
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from tests.conftest import EMPTY
from tests.end_to_end import openid_provider
from tests.end_to_end.installation import ROOT, Installation
from tests.end_to_end.openid_provider import Provider

pytest.importorskip("allauth", reason="django-allauth is not installed.")
pytestmark = [pytest.mark.slow, pytest.mark.django_db]  # which leaves the empty database there

PASSWORD = "correct-horse-7"
WITH_PROVIDER = {
    "STEROIDS_OIDC_ISSUER": "https://id.example", "STEROIDS_OIDC_CLIENT_ID": "a",
    "STEROIDS_OIDC_CLIENT_SECRET": "b",
}  # fmt: skip
WAY_BACK = 'href="/admin/login/?next=%2Fqueue%2F"'
PEOPLE = f"""
from django.contrib.auth.models import User
from tests.factories import create_project, create_token
root = User.objects.create_superuser("root", password="{PASSWORD}")
User.objects.create_user("lea", email="Lea@team.example", password="{PASSWORD}", is_staff=True)
User.objects.create_user("kai", email="kai@team.example", is_staff=True)
create_project("ledger"); create_project("other")
print(create_token(root, "laptop")[1])
"""


class Browser:
    """Cookies, redirects, and the hidden fields of the form on the page that is open."""

    def __init__(self, base: str) -> None:
        self.base, self.url, self.text, self.status = base, base, "", 0
        self.opener = build_opener(HTTPCookieProcessor(CookieJar()))

    def get(self, address: str, **headers: str) -> str:
        return self._open(Request(urljoin(self.base, address), headers=headers))

    def post(self, address: str = "", **fields: str) -> str:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.text)
        assert token, self.text
        sent = urlencode({"csrfmiddlewaretoken": token[1], **fields}).encode()
        return self._open(Request(urljoin(self.url, address), sent, {"Referer": self.url}))

    def _open(self, request: Request) -> str:
        try:
            response = self.opener.open(request, timeout=60)
        except HTTPError as error:
            response = error
        self.status, self.url = response.status, response.url
        self.text = unescape(response.read().decode())
        return self.text

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    def sign_in(self, name: str) -> None:
        self.get("/admin/login/?next=/queue/")
        self.post(username=name, password=PASSWORD)

    def set_up_second_factor(self) -> str:
        """On the page that asks for it; the secret."""
        secret = re.search(r'value="([A-Z2-7]{32})"', self.text)
        assert secret, self.text
        self.post(code=code_of(secret[1]))
        return secret[1]


def code_of(secret: str, steps: int = 0) -> str:
    """The code that an app shows for the secret (RFC 6238), so many steps of 30 seconds from now."""
    counter = int(time.time()) // 30 + steps
    digest = hmac.digest(b32decode(secret), counter.to_bytes(8, "big"), sha1)
    at = digest[-1] & 15
    return f"{(int.from_bytes(digest[at : at + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06}"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with openid_provider.running() as made:
        yield made


@pytest.fixture(scope="module")
def peopled(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """The token of root, and a database with people and projects: without tables of sign-in, and with."""
    made = Installation(tmp_path_factory.mktemp("peopled") / "home")
    made.begin_with(EMPTY)
    told = made.manage("shell", "--no-imports", "-c", PEOPLE)
    assert told.returncode == 0, told.stderr
    full = made.home / "steroids.sqlite3"
    plain = Path(shutil.copyfile(full, made.home / "plain.sqlite3"))
    made.environment |= WITH_PROVIDER | {"STEROIDS_MFA": "allowed"}
    migrated = made.manage("migrate", "--verbosity", "0")
    assert migrated.returncode == 0, migrated.stderr
    return told.stdout.strip(), plain, full


@pytest.fixture
def begin(folder: Installation, peopled: tuple[str, Path, Path]) -> Any:
    """An installation with these variables, two people and two projects; the token of root."""

    def make(**variables: str) -> str:
        token, plain, full = peopled
        folder.begin_with(full if "STEROIDS_MFA" in variables else plain)
        folder.environment |= variables
        return token

    return make


def audit(folder: Installation) -> list[tuple[str, str, str]]:
    return folder.rows("SELECT kind, who, note FROM steroidsweb_auditentry ORDER BY id")


def roles(folder: Installation, name: str) -> dict[str, str]:
    return dict(
        folder.rows(
            "SELECT p.slug, m.role FROM tasks_membership m JOIN tasks_project p ON p.id = m.project_id "
            "JOIN auth_user u ON u.id = m.user_id WHERE u.username = ?",
            name,
        )
    )


def test_while_both_are_off_nothing_of_it_is_imported() -> None:
    ask = (
        "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'; django.setup(); "
        "import steroidsweb.urls, django.urls; "
        "print([name for name in sys.modules if name.partition('.')[0] in ('allauth', 'qrcode')], "
        "[each for each in map(str, django.urls.get_resolver().url_patterns) if 'account/' in each])"
    )
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[] []", done.stderr


def test_where_it_is_required_nobody_passes_without_a_second_factor(begin: Any, folder: Installation) -> None:
    token = begin(STEROIDS_MFA="required")
    with folder.web() as url:
        first = Browser(url)
        first.sign_in("root")
        assert first.path == "/account/second-factor/totp/activate/"
        for path in ("/queue/", "/admin/", "/sessions/"):
            first.get(path)
            assert first.path == "/account/second-factor/totp/activate/", path
        first.get("/api/v1/projects/")
        assert (first.status, json.loads(first.text)["code"]) == (403, "second_factor_missing")
        machine = Browser(url)
        machine.get("/api/v1/projects/", Authorization=f"Bearer {token}")
        assert machine.status == 200

        first.get("/queue/")
        first.post(code="000000")
        assert "That is not the code" in first.text
        secret = first.set_up_second_factor()
        codes = re.findall(r"\b\d{8}\b", first.text)
        assert (first.path, len(codes)) == ("/account/second-factor/recovery-codes/", 10)
        first.get("/queue/")
        assert (first.status, first.path) == (200, "/queue/")
        first.get("/sessions/")
        assert "recovery codes" in first.text
        kept = folder.value("SELECT data FROM mfa_authenticator WHERE type = 'totp'")
        assert secret not in kept

        second = Browser(url)
        second.sign_in("root")
        assert second.path == "/account/second-factor/authenticate/"
        page = second.text
        second.get("/queue/")
        assert second.path == "/admin/login/"
        second.get("/account/second-factor/authenticate/")
        assert page.count("csrfmiddlewaretoken")
        second.post(code=code_of(secret, 1))
        assert (second.status, second.path) == (200, "/queue/")

        third = Browser(url)
        third.sign_in("root")
        third.post(code=codes[0])
        assert third.path == "/queue/"
        fourth = Browser(url)
        fourth.sign_in("root")
        fourth.post(code=codes[0])
        assert "That code is wrong" in fourth.text
        for _ in range(4):
            fourth.post(code="123456")
        assert "That code is wrong" in fourth.text
        fourth.post(code=codes[1])
        assert "Too many tries. Wait" in fourth.text

    told = audit(folder)
    assert ("factor_on", "root", "") in told
    assert ("signed_in", "root", "password, code") in told
    assert told.count(("refused", "root", "A wrong code.")) == 5
    done = folder.manage("check")
    assert done.returncode == 0, done.stderr


def test_an_invitation_makes_one_account_with_its_roles(begin: Any, folder: Installation) -> None:
    begin()
    with folder.web() as url:
        root = Browser(url)
        root.sign_in("root")
        root.get("/admin/steroidsweb/invitation/add/")
        root.post(
            whom="Nora", expires_at_0="2099-01-01", expires_at_1="00:00:00", **{
                "roles-TOTAL_FORMS": "1", "roles-INITIAL_FORMS": "0", "roles-MIN_NUM_FORMS": "0",
                "roles-MAX_NUM_FORMS": "9", "roles-0-project": "1", "roles-0-role": "maintainer",
            },
        )  # fmt: skip
        link = re.search(r"http://\S+/invited/[^\s<\"]+", root.text)
        assert link, root.text
        guest = Browser(url)
        guest.get(link[0])
        assert "maintainer in" in guest.text
        assert "Sign in with" not in guest.text
        guest.post(username="LEA", password1=PASSWORD, password2=PASSWORD)
        assert "Somebody has that name" in guest.text
        guest.post(username="nora", first_name="Nora", password1=PASSWORD, password2=PASSWORD)
        assert (guest.status, guest.path) == (200, "/admin/")
        late = Browser(url)
        late.get(link[0])
        assert late.status == 404
        assert "This invitation was used" in late.text
        late.get(link[0][:-2])
        assert late.status == 404

        printed = folder.manage("invite", "--role", "other:viewer", "--days", "3").stdout.strip()
        folder.rows("UPDATE steroidsweb_invitation SET expires_at = '2020-01-01' WHERE used_at IS NULL")
        late.get(urlsplit(printed).path)
        assert late.status == 404
    assert len(roles(folder, "nora")) == 1
    assert list(roles(folder, "nora").values()) == ["maintainer"]
    told = [each[:2] for each in audit(folder)]
    assert [each for each in told if each[0] in {"invited", "joined"}] == [
        ("invited", "root"), ("joined", "nora"), ("invited", "root"),
    ]  # fmt: skip
    for words, why in (
        (["--role", "nowhere:viewer"], "There is no project nowhere."),
        (["--role", "ledger:king"], "king is no role"),
        (["--days", "900"], "between 1 and 90"),
        (["--by", "lea"], "no superuser named lea"),
    ):
        refused = folder.manage("invite", *words)
        assert refused.returncode != 0
        assert why in refused.stderr


def drops(seconds: int) -> Iterator[bytes]:
    """Yield a byte each second."""
    for _ in range(seconds):
        yield b" "
        time.sleep(1)


def test_people_sign_in_with_the_teams_own_provider(
    begin: Any, folder: Installation, provider: Provider
) -> None:
    secret = folder.home.parent / "client-secret"
    secret.write_text(provider.client_secret + "\n")
    begin(
        STEROIDS_MFA="allowed", STEROIDS_OIDC_ISSUER=provider.issuer,
        STEROIDS_OIDC_CLIENT_ID=provider.client_id,
        STEROIDS_OIDC_CLIENT_SECRET_FILE=str(secret), STEROIDS_OIDC_NAME="Team ID",
        STEROIDS_OIDC_DOMAINS="team.example",
        STEROIDS_OIDC_GROUPS="platform=ledger:maintainer,all=*:viewer",
    )  # fmt: skip

    def comes(
        sub: Any, email: Any, groups: tuple[str, ...] = (), verified: bool = True, link: str = "", **more: Any
    ) -> Browser:
        provider.person = {
            "sub": sub, "email": email, "email_verified": verified, "groups": list(groups),
            "preferred_username": str(email).partition("@")[0], "name": f"Dr. {sub} of Team", **more,
        }  # fmt: skip
        browser = Browser(url)
        browser.get(link or "/admin/login/?next=/queue/")
        way = re.search(r'href="(/account/sign-in/team/login/[^"]*)"', browser.text)
        assert way, browser.text
        browser.get(way[1])
        return browser

    with folder.web() as url:
        lea = comes("1", "lea@team.example", ("platform",))
        assert (lea.status, lea.path) == (200, "/queue/")
        assert roles(folder, "lea") == {"ledger": "maintainer"}
        lea.get("/account/second-factor/")
        assert lea.status == 200
        lea.get("/admin/login/?next=/queue/team/")
        assert lea.path == "/queue/team/"  # signed in meanwhile, as in another tab
        by_password = Browser(url)
        by_password.sign_in("lea")
        assert by_password.path == "/queue/"  # her password is as it was
        assert (
            comes("1", "lea.new@team.example", ("all",)).path == "/queue/"
        )  # known by the provider's number
        assert roles(folder, "lea") == {"ledger": "viewer", "other": "viewer"}

        for sub, email, verified, why in (
            ("2", "eve@elsewhere.example", True, "Only verified addresses of team.example"),
            ("3", "lea@team.example", False, "Only verified addresses of team.example"),
            ("4", "stranger@team.example", True, "nobody invited you"),
        ):
            refused = comes(sub, email, verified=verified)
            assert (refused.status, why in refused.text) == (403, True), refused.text
            assert WAY_BACK in refused.text
            refused.get("/queue/")
            assert refused.path == "/admin/login/"

        grouped = comes("5", "gil@team.example", ("all",))
        assert grouped.path == "/queue/"
        named = "SELECT first_name, last_name FROM auth_user WHERE username = ?"
        assert folder.rows(named, "gil") == [("Dr. 5 of", "Team")], "only a whole name was sent"
        assert roles(folder, "gil") == {"ledger": "viewer", "other": "viewer"}
        assert comes("5", "gil@team.example").path == "/queue/"
        assert roles(folder, "gil") == {}

        link = folder.manage("invite", "--role", "other:triager").stdout.strip()
        invited = comes("4", "stranger@team.example", ("all",), link=urlsplit(link).path)
        assert (invited.status, invited.path) == (200, "/admin/")
        assert set(roles(folder, "stranger")) == {"ledger", "other"}
        invited.get(urlsplit(link).path)
        assert invited.status == 404

        failed = "Signing in with Team ID failed"
        for sub, email, more, why in (  # who is taken for somebody else, or is nobody
            ("6", "\u212aai@team.example", {}, "nobody invited you"),
            ("6", "kai\u200b@team.example", {}, "Only verified addresses"),
            ("6", ["kai@team.example"], {}, "Only verified addresses"),
            ("6", "x@team.example", {"email_verified": "true"}, "Only verified addresses"),
            ("6", "kai@team.example", {"in_token": {"sub": "7"}}, "spoke of two people"),
            (
                "6",
                None,
                {"in_token": {"email": "kai@team.example", "email_verified": False}},
                "Only verified",
            ),
            *((sub, "kai@team.example", {}, failed) for sub in (None, "", "x\0", "s" * 192, {"a": 1}, True)),
        ):
            refused = comes(sub, email, **more)
            assert (refused.status, why in refused.text) == (403, True), (sub, email, refused.text)
        count = "SELECT count(*) FROM auth_user"
        before = folder.value(count)
        strange = {"preferred_username": 7, "given_name": ["x"], "family_name": "Ro\u202ete\0", "name": {}}
        assert comes(8, "kai@team.example", **strange).path == "/queue/", "known by the address"
        new = comes("9", "new@team.example", ("all",), **strange)
        assert (new.path, folder.rows(named, "new")) == ("/queue/", [("", "Rote")])
        provider.person |= {"sub": "10", "email": "newer@team.example"}
        new.get("/account/sign-in/team/login/?process=connect&next=/queue/")
        assert (new.path, folder.value(count)) == ("/queue/", before + 2), "signed in as another one"

        now, us = int(time.time()), provider.client_id
        for in_token, in_answer in (  # OpenID Connect Core 1.0, 3.1.3.7, and RFC 7519
            *((token, {}) for token in (
                {"exp": None}, {"exp": now - 3600}, {"exp": "soon"}, {"exp": str(now + 300), "jti": "a"},
                {"iat": None}, {"iat": now + 86400}, {"nbf": now + 86400}, {"nbf": "x"}, {"azp": "another"},
                {"azp": [us]}, {"aud": "another"}, {"aud": None}, {"aud": [us, "another"]},
                {"aud": [us, "another"], "azp": "another"}, {"iss": "https://id.example"}, {"iss": None},
                {"nonce": None}, {"nonce": "another"}, {"nonce": 7},
            )),
            *(({}, answer) for answer in (
                {"id_token": None}, {"id_token": ["x"]}, {"access_token": {"a": 1}}, {"expires_in": "soon"},
                {"expires_in": 10**30},
            )),
        ):  # fmt: skip
            refused = comes("1", "lea@team.example", in_token=in_token, in_answer=in_answer)
            assert (refused.status, failed in refused.text) == (403, True), (in_token, in_answer)
        for in_token in ({"iat": now + 30}, {"aud": [us]}, {"aud": [us, "another"], "azp": us}, {"azp": us}):
            assert comes("1", "lea@team.example", in_token=in_token).path == "/queue/", in_token
        for name in ("token_endpoint", "userinfo_endpoint"):  # a secret goes nowhere unencrypted
            provider.elsewhere = {name: "http://id.example/x"}
            refused = comes("1", "lea@team.example")
            assert (refused.status, failed in refused.text) == (403, True), name
            assert "It names an address that does not begin with https://" in audit(folder)[-1][2]
        provider.elsewhere = {"issuer": "https://id.example"}  # as its tokens say, too
        refused = comes("1", "lea@team.example", in_token={"iss": "https://id.example"})
        assert (refused.status, failed in refused.text) == (403, True)
        assert "It calls itself https://id.example" in audit(folder)[-1][2]
        provider.elsewhere = {}

        provider.is_cancelled = True
        cancelled = comes("1", "lea@team.example")
        assert (cancelled.status, "Team ID was cancelled" in cancelled.text) == (403, True), cancelled.text
        assert WAY_BACK in cancelled.text
        for page in ("cancelled", "error"):  # django-allauth has its own, in other words
            cancelled.get(f"/account/sign-in/{page}/")
            assert cancelled.status == 404
        provider.is_cancelled = False

        provider.client_secret = "another"
        failed = comes("1", "lea@team.example")
        assert (failed.status, "Signing in with Team ID failed" in failed.text) == (403, True)
        assert WAY_BACK in failed.text
        provider.is_away = True
        away = comes("1", "lea@team.example")
        assert (away.status, "Signing in with Team ID failed" in away.text) == (403, True)
        assert WAY_BACK in away.text
        provider.is_away = False
        for spoiled in ([b"[]"], [b"{}"], [b"null"], [b"{"], [b"\xff"], repeat(b" " * 65536), drops(60)):
            provider.spoiled = spoiled
            begun = time.monotonic()
            answer = comes("1", "lea@team.example")
            assert (answer.status, "Signing in with Team ID failed" in answer.text) == (403, True), spoiled
            assert time.monotonic() - begun < 40
    told = audit(folder)
    assert ("signed_in", "lea", "Team ID") in told
    assert [note for kind, _, note in told if kind == "refused"][:3] == [
        *["Team ID: Only verified addresses of team.example may sign in here."] * 2,
        "Team ID: Nobody here has this address, and nobody invited you.",
    ]
    assert ("joined", "stranger", "Invited by root.") in told


def test_settings_that_cannot_work_stop_the_start(folder: Installation) -> None:
    folder.home.mkdir(mode=0o700, parents=True)
    for variables, why in (
        ({"STEROIDS_MFA": "maybe"}, "none of off, allowed, required"),
        (WITH_PROVIDER | {"STEROIDS_OIDC_ISSUER": "http://id.example"}, "does not begin with https://"),
        (WITH_PROVIDER | {"STEROIDS_OIDC_ISSUER": ""}, "CLIENT_ID does nothing without STEROIDS_OIDC_ISSUER"),
        (WITH_PROVIDER | {"STEROIDS_OIDC_CLIENT_ID": ""}, "needs STEROIDS_OIDC_CLIENT_ID"),
        (WITH_PROVIDER | {"STEROIDS_OIDC_GROUPS": "platform=ledger"}, "is not GROUP=PROJECT:ROLE"),
    ):
        kept = dict(folder.environment)
        folder.environment |= variables
        done = folder.manage("check")
        folder.environment = kept
        assert (done.returncode != 0, why in done.stderr) == (True, True), done.stderr


def test_setting_up_a_second_factor_outlives_other_tabs_and_a_double_click(
    begin: Any, folder: Installation
) -> None:
    begin(STEROIDS_MFA="required")
    with folder.web() as url:
        first = Browser(url)
        first.sign_in("root")
        assert "Set up a second factor" in first.text
        assert "This installation requires one" in first.text
        assert "Back to your sessions" not in first.text  # that page would only lead back here
        assert "Sign out" in first.text
        page, here = first.text, first.url
        first.get("/insights/")  # another tab
        first.get("/queue/", Accept="application/json")  # a page that renews itself
        assert (first.status, json.loads(first.text)["code"]) == (403, "second_factor_missing")
        first.text, first.url = page, here
        secret = first.set_up_second_factor()
        assert (first.path, first.status) == ("/account/second-factor/recovery-codes/", 200)
        assert 'href="/queue/"' in first.text  # where the person wanted to go

        first.text, first.url = page, here
        first.post(code=code_of(secret, 1))  # another code: the same form is known for one that came twice
        assert (first.path, first.status) == ("/account/second-factor/", 200)
        assert "An app is set up" in first.text


def test_who_signs_in_with_a_code_is_told_what_happened_and_what_to_do(
    begin: Any, folder: Installation
) -> None:
    begin(STEROIDS_MFA="allowed")
    with folder.web() as url:
        lea = Browser(url)
        lea.sign_in("lea")
        lea.get("/account/second-factor/totp/activate/")
        secret = lea.set_up_second_factor()
        codes = re.findall(r"\b\d{8}\b", lea.text)

        second = Browser(url)
        second.sign_in("lea")
        assert "or one of your recovery codes" in second.text
        assert "ask a superuser to remove your second factor" in second.text
        second.post(code=codes[0])
        assert "You signed in with a recovery code. 9 of 10 are unused." in second.text

        second.get("/account/again/?next=/sessions/")
        second.post(password="wrong")
        assert "That is not your password. Capitals count in it." in second.text
        second.post(password=PASSWORD)
        assert second.path == "/sessions/"

        third = Browser(url)
        third.sign_in("lea")
        for _ in range(5):
            third.post(code=codes[0])
        assert "That code is wrong, no longer valid, or used already." in third.text
        third.post(code=codes[1])
        assert "Too many tries. Wait 1 minute, then try again." in third.text
        second.get("/account/again/?next=/sessions/")
        second.post(password=PASSWORD)
        assert second.path == "/sessions/"  # whoever guesses codes does not lock the password
        folder.rows("UPDATE steroidsweb_signintries SET free_at = '2020-01-01'")
        third.post(code=codes[1])
        assert third.path == "/queue/"
        once = code_of(secret, 1)  # good for a minute at least
        for code, path in ((once, "/queue/"), (once, "/account/second-factor/authenticate/")):
            again = Browser(url)
            again.sign_in("lea")
            again.post(code=code)
            assert again.path == path

    with folder.web() as url:  # the code is used, whatever this server remembers
        fourth = Browser(url)
        fourth.sign_in("lea")
        fourth.post(code=f"{once[:3]} {once[3:]}")
        assert "That code is wrong, no longer valid, or used already." in fourth.text

        late = Browser(url)
        late.sign_in("lea")
        folder.rows("DELETE FROM django_session")
        late.post(code=code_of(secret, 1))
        assert late.path == "/admin/login/"
        assert "Your sign-in no longer waits for a code. Sign in again." in late.text
        assert late.url.endswith("?next=/queue/")


def test_recovery_codes_alone_are_no_second_factor(begin: Any, folder: Installation) -> None:
    begin(STEROIDS_MFA="required")
    with folder.web() as url:
        lea, root = Browser(url), Browser(url)
        for each in (lea, root):
            each.sign_in("lea" if each is lea else "root")
            each.set_up_second_factor()
        old = re.findall(r"\b\d{8}\b", lea.text)
        pk = folder.value(
            "SELECT a.id FROM mfa_authenticator a JOIN auth_user u ON u.id = a.user_id "
            "WHERE u.username = 'lea' AND a.type = 'totp'"
        )
        root.get("/admin/")
        assert "/admin/mfa/authenticator/" in root.text
        root.get(f"/admin/mfa/authenticator/{pk}/delete/")
        root.post(post="yes")
        assert ("factor_off", "root", "") in audit(folder)
        assert (
            folder.value("SELECT about FROM steroidsweb_auditentry WHERE kind = 'factor_off'") == "app of lea"
        )
        again = Browser(url)
        again.sign_in("lea")
        assert again.path == "/account/second-factor/totp/activate/"
        again.set_up_second_factor()
        new = re.findall(r"\b\d{8}\b", again.text)
        assert len(new) == 10
        assert not set(old) & set(new)


def test_second_factors_outlive_a_change_of_the_secret_key(begin: Any, folder: Installation) -> None:
    begin(STEROIDS_MFA="allowed")
    with folder.web() as url:
        lea = Browser(url)
        lea.sign_in("lea")
        lea.get("/account/second-factor/totp/activate/")
        secret = lea.set_up_second_factor()
        codes = re.findall(r"\b\d{8}\b", lea.text)
    old = folder.environment.get("SECRET_KEY") or (folder.home / "secret-key").read_text().strip()
    folder.environment |= {
        "SECRET_KEY": "another-key-of-forty-letters-or-so-01234567",
        "SECRET_KEY_FALLBACKS": old,
        "STEROIDS_MFA": "off",  # for a while
    }
    tidied = folder.manage(
        "shell", "--no-imports", "-c", "from disputes.notifications.jobs import tidy; print(tidy())"
    )
    assert "sealed again 2" in tidied.stdout, tidied.stderr
    folder.environment |= {"SECRET_KEY_FALLBACKS": "", "STEROIDS_MFA": "allowed"}
    with folder.web() as url:
        for code in (code_of(secret), codes[3]):
            lea = Browser(url)
            lea.sign_in("lea")
            lea.post(code=code)
            assert lea.path == "/queue/"
    folder.environment |= {"SECRET_KEY": "a-third-key-that-nobody-has-announced-0123456"}
    with folder.web() as url:
        lea = Browser(url)
        lea.sign_in("lea")
        lea.post(code=codes[4])
        assert (lea.status, "can no longer be read" in lea.text) == (200, True)
        assert "ask a superuser to remove your second factor" in lea.text

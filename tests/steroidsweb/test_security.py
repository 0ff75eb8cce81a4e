"""The headers of every answer, and the methods that pages take."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.test import Client

from agents.hosts import sandbox
from steroidsweb import checks
from steroidsweb.checks import check_home
from steroidsweb.security import DATA, PAGE
from tasks.models import Project
from tests.cases import for_each

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]


def policy(response: Any) -> dict[str, str]:
    """The directives of an answer, each with its sources."""
    lines = response["Content-Security-Policy"].split("; ")
    return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}


@for_each("path", ["/", "/admin/login/", "/admin/", "/queue/", "/admin/nothing/", "/api/docs/"])
def test_a_page_takes_scripts_from_files_of_this_host_only(client: Client, lea: User, path: str) -> None:
    client.force_login(lea)
    found = policy(client.get(path))

    assert found == PAGE
    assert "'unsafe-inline'" not in found["script-src"] + found["style-src"] + found["default-src"]


def test_what_is_no_page_may_load_nothing_at_all(client: Client, ledger: Project, lea: User) -> None:
    client.force_login(lea)
    for path in ("/api/v1/tasks/", "/api/v1/nothing/", "/queue/records/ledger/decisions.md", "/healthz"):
        assert policy(client.get(path)) == DATA, path


def test_every_answer_carries_the_other_headers(client: Client, lea: User) -> None:
    client.force_login(lea)
    for path in ("/admin/", "/admin/login/", "/api/v1/tasks/", "/healthz", "/static/steroids/keys.js"):
        response = client.get(path)
        assert response["X-Content-Type-Options"] == "nosniff", path
        assert response["Referrer-Policy"] == "same-origin", path
        assert response["Cross-Origin-Opener-Policy"] == "same-origin", path
        assert "camera=()" in response["Permissions-Policy"], path
        assert ("no-store" in response["Cache-Control"]) == (not path.startswith("/static/")), path


def test_behind_a_proxy_with_tls_browsers_are_told_to_stay_with_https(settings: Any, lea: User) -> None:
    settings.ALLOWED_HOSTS, settings.SECURE_HSTS_SECONDS = ["*"], 60
    for url, host, wanted in (
        ("https://team.example:8443", "Team.Example:8443", "max-age=60"),
        ("https://team.example:8443", "team.example", "max-age=60"),
        ("https://team.example:8443", "127.0.0.1", ""), ("https://[::1]", "[::1]", "max-age=60"),
    ):  # fmt: skip
        settings.URL = url
        for path in ("/admin/login/", "/static/steroids/keys.js", "/api/v1/me/"):
            answer = Client(headers={"host": host}).get(path)
            assert answer.headers.get("Strict-Transport-Security", "") == wanted, (host, path)
    settings.URL = ""
    assert "Strict-Transport-Security" not in Client(headers={"host": "team.example"}).get("/healthz")


def test_no_page_is_shown_in_a_frame(client: Client) -> None:
    response = client.get("/admin/login/")

    assert response["X-Frame-Options"] == "DENY"
    assert policy(response)["frame-ancestors"] == "'none'"


@for_each("method", ["put", "patch", "delete", "options", "trace"])
def test_a_page_takes_no_method_that_no_form_sends(client: Client, lea: User, method: str) -> None:
    client.force_login(lea)
    response = getattr(client, method)("/admin/tasks/task/")

    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD, POST"


# --- What a request may bring -------------------------------------------------------------------------------


class Unread(io.BytesIO):
    """A body that nobody may read."""

    def read(self, size: int | None = -1) -> bytes:
        raise AssertionError("it was read")


def test_a_large_body_is_refused_before_it_is_read(tom: User) -> None:
    """Anybody could fill the disk through the sign-in page: files are no part of Django's own limit."""
    two_hundred = 200 * 1024 * 1024
    for path, kind in (
        ("/admin/login/", "multipart/form-data; boundary=x"), ("/queue/", "multipart/form-data; boundary=x"),
        ("/admin/login/", "application/x-www-form-urlencoded"), ("/api/v1/tasks/", "application/json"),
        ("/api/v1/pull/claim/", "application/json"), ("/nothing/", "text/plain"),
    ):  # fmt: skip
        for length in (str(1024 * 1024 + 1), str(two_hundred), "9" * 30, "-5", "many"):
            reply = Client().generic(
                "POST", path, b"", kind, CONTENT_LENGTH=length, **{"wsgi.input": Unread()}
            )
            assert reply.status_code == 413, (path, length)
            assert b"larger than 1 MiB" in reply.content
    assert Client().post("/admin/login/", {"username": "tom", "password": "x" * 500_000}).status_code == 200


def test_a_file_is_kept_nowhere(tom: User, tmp_path: Path, settings: Any) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    sent = {"username": "tom", "password": "wrong", "file": io.BytesIO(b"x" * 900_000)}
    reply = Client().post("/admin/login/", sent)
    assert reply.status_code == 200
    assert reply.wsgi_request.POST["username"] == "tom"
    assert not reply.wsgi_request.FILES
    assert list(tmp_path.iterdir()) == []


# --- Whose files they are -----------------------------------------------------------------------------------


def test_what_the_program_writes_is_for_its_own_user(settings: Any, tmp_path: Path) -> None:
    """Whoever reads the database reads everything, and whoever reads the secret key may sign anything."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    settings.HOME = home
    assert [found.id for found in check_home(None)] == []
    for mode in (0o755, 0o710, 0o702):
        home.chmod(mode)
        assert [(found.id, found.is_serious()) for found in check_home(None)] == [("steroids.E002", True)]
    home.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "STEROIDS_HOME": str(home), "SECRET_KEY": "x" * 40}
    write = "from django.db import connection\nconnection.cursor().execute('PRAGMA user_version = 1')"
    subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "--command", write],
        cwd=ROOT, env=environment, check=True, timeout=300, umask=0o022,
    )  # fmt: skip
    assert (home / "steroids.sqlite3").exists()
    for path in home.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    refused = subprocess.run(migrate, cwd=ROOT, env=environment, capture_output=True)
    assert refused.returncode == 1
    assert b"Other users of this machine can look into" in refused.stderr


def test_a_git_that_is_missing_or_too_old_is_told_at_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    git = tmp_path / "git"
    cases = (
        ("", "E005"), ("exit 1", "E005"), ("echo git version unknown", "E005"),
        ("echo git version 2.37.9", "E006"), ("echo git version 1.99.0", "E006"),
        ("echo git version 2.38.0", ""), ("echo 'git version 2.50.1 (of a vendor)'", ""),
        ("echo git version 3.0.rc1", ""),
    )  # fmt: skip
    for script, found in cases:
        if script:
            git.write_text(f"#!/bin/sh\n{script}\n")
            git.chmod(0o755)
        told = [(each.id, each.is_serious()) for each in checks.check_git(None)]
        assert told == ([(f"steroids.{found}", True)] if found else []), script


def test_a_git_that_may_run_what_a_clone_names_is_told_of_where_runs_are_open(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    git = tmp_path / "git"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    cases = {
        "2.38.5": True, "2.39.3 (of a vendor)": True, "2.39.4": False, "2.43.0": True, "2.43.4": False,
        "2.45.0": True, "2.45.1": False, "2.45.1.windows.1": False, "2.46.0": False, "3.0.rc1": False,
        "unknown": False,
    }  # fmt: skip
    for setting in ("off", "wanted"):
        settings.SANDBOX = setting
        is_open = bool(sandbox.standing()["why_open"])
        for version, is_told in cases.items():
            git.write_text(f"#!/bin/sh\necho 'git version {version}'\n")
            git.chmod(0o755)
            told = [each.id for each in checks.check_git_is_mended(None)]
            assert told == (["steroids.W012"] if is_told and is_open else []), (setting, version)


def test_before_it_is_deployed_it_is_said_that_runs_are_open_where_they_are(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With `required` a host that cannot enclose its runs has none."""
    sandbox.why_not.cache_clear()
    here, lacking = sandbox.why_not()[:300], "bubblewrap is not installed"
    for path, setting, why in (
        (os.environ["PATH"], "wanted", here), (os.environ["PATH"], "required", ""),
        (os.environ["PATH"], "off", "STEROIDS_SANDBOX=off"),
        (str(tmp_path), "wanted", lacking), (str(tmp_path), "required", ""),
    ):  # fmt: skip
        monkeypatch.setenv("PATH", path)
        sandbox.why_not.cache_clear()
        settings.SANDBOX = setting
        told = [
            each for each in run_checks(include_deployment_checks=True, tags=["steroids"])
            if each.id == "steroids.W009"
        ]  # fmt: skip
        assert len(told) == bool(why), (path, setting)
        assert all(f"without a sandbox: {why}" in each.msg for each in told), told
        assert "steroids.W009" not in [each.id for each in run_checks(tags=["steroids"])]
    monkeypatch.undo()
    sandbox.why_not.cache_clear()


def test_no_template_of_ours_holds_a_script_or_a_handler() -> None:
    root = ROOT / "templates"
    inline = [
        f"{path.relative_to(root)}: {word}"
        for path in sorted(root.rglob("*.html"))
        for word in (
            "<script>",
            "<style",
            "javascript:",
            " onclick",
            " onchange",
            " onload",
            " onsubmit",
            "hx-on",
        )
        if word in path.read_text(encoding="utf-8").lower()
    ]

    assert inline == []

"""The headers of every answer, and the methods that pages take."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from steroidsweb.security import DATA, PAGE
from tasks.models import Project
from tests.cases import for_each

pytestmark = pytest.mark.django_db


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


def test_no_template_of_ours_holds_a_script_or_a_handler() -> None:
    from pathlib import Path

    root = Path(__file__).resolve().parents[2] / "templates"
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

"""The pages that say no: what is there, which right is missing, who can give it, and the way back."""

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from agents.setup import removing
from disputes import opening
from disputes.models import Conflict
from tasks.events import SYSTEM
from tasks.models import Project
from tests.cases import rows_put_back
from tests.factories import create_task, create_token, create_user

pytestmark = pytest.mark.django_db
SCRIPT = {"headers": {"Accept": "application/json"}}


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_a_form_sent_after_the_session_ended_leads_back_to_its_page(client: Client) -> None:
    def sent(path: str, data: dict[str, str], **kwargs: Any) -> str:
        return str(client.post(path, data, **kwargs)["Location"])

    here = "/queue/D-1/?conflict=C-1"
    assert sent("/queue/D-1/decide/", {"next": here}).endswith("?next=/queue/D-1/%3Fconflict%3DC-1")
    referer = {"headers": {"Referer": "http://testserver/tasks/ledger-1/"}}
    assert sent("/tasks/ledger-1/defer/", {}, **referer).endswith("?next=/tasks/ledger-1/")
    elsewhere = {"headers": {"Referer": "http://evil.example/queue/"}}
    assert sent("/tasks/ledger-1/defer/", {"next": "//evil.example"}, **elsewhere).endswith("?next=/admin/")
    assert client.get("/runs/?role=coder")["Location"].endswith("?next=/runs/%3Frole%3Dcoder")
    for path in ("/tasks/ledger-1/defer/", "/admin/tasks/task/add/"):
        client.get("/admin/login/")  # shows what was said before
        client.post(path)
        told = words(client.get("/admin/login/"))
        assert "<span data-kept hidden> What you typed is kept.</span>" in told, (
            "only a script keeps it, and says so"
        )
        assert "<noscript> Scripts are off, so what you typed is not kept" in told


def test_pages_say_what_does_not_work_without_scripts(client: Client, ledger: Project, lea: User) -> None:
    client.force_login(lea)
    for path in ("/admin/", "/queue/", "/projects/ledger/board/", "/admin/tasks/task/"):
        assert words(client.get(path)).count('<p class="no-scripts">Scripts are off.') == 1, path


def test_a_form_with_what_no_database_takes_is_refused_and_its_text_kept(
    client: Client, ledger: Project, lea: User
) -> None:
    task = create_task(ledger)
    client.force_login(lea)
    for path, name in ((f"/tasks/{task.ref}/defer/", "note"), (f"/tasks/{task.ref}/comments/", "body")):
        told = client.post(path, {name: "We wait\0 for it.", "version": str(task.version)})
        assert told.status_code == 422, path
        assert "The form holds a character that is no text." in words(told)
        assert "We wait for it." in words(told)


def test_a_script_is_told_that_nobody_is_signed_in(client: Client) -> None:
    for response in (client.post("/queue/D-1/preview/", **SCRIPT), client.get("/runs/1/log/", **SCRIPT)):
        assert response.status_code == 401
        assert response.json()["code"] == "signed_out"
        assert "no-store" in response["Cache-Control"]


def test_what_is_not_there_is_said_in_our_look(client: Client, ledger: Project, tom: User) -> None:
    signed_out = client.get("/queue/D-99/nothing/")
    client.force_login(tom)
    for path in ("/queue/D-99/", "/nothing/", "/admin/nothing/"):
        response = client.get(path)
        assert response.status_code == 404
        assert f"There is nothing at {path} that you may see." in words(response)
        assert "make you a member of its project" in words(response)
        assert "steroids.css" in words(response)
    assert "Nothing was done: what this form is about is gone" in words(client.post("/queue/D-99/decide/"))
    assert signed_out.status_code == 404
    assert "There may be for whoever is signed in." in words(signed_out)
    assert client.get("/nothing/", **SCRIPT).json()["code"] == "not_found"


def test_a_refusal_names_the_right_and_who_can_give_it(client: Client, ledger: Project, vera: User) -> None:
    create_user("root", is_superuser=True)
    client.force_login(vera)
    response = client.post("/projects/ledger/comments/", {"body": "Hello."})
    assert response.status_code == 403
    assert "Ledger</strong>: you are a viewer. Lea Lindt maintains it and can give you" in words(response)
    response = client.get("/admin/auth/user/")
    assert response.status_code == 403
    assert "You may not open /admin/auth/user/.</strong> Only superusers may." in words(response)
    assert "root, as a superuser, can make you a member of a project" in words(response)


def test_the_rounds_of_a_project_of_code_lead_to_its_page(client: Client, ledger: Project, lea: User) -> None:
    client.force_login(lea)
    response = client.get("/projects/ledger/rounds/", follow=True)
    assert response.redirect_chain == [("/projects/ledger/", 302)]
    assert "Ledger is a project of code, which has no rounds." in words(response)


def test_an_address_for_forms_only_leads_to_their_page(client: Client, lea: User) -> None:
    client.force_login(lea)
    for path, back in (("/queue/D-1/decide/", "/queue/D-1/"), ("/queue/decisions/7/undo/", "/queue/")):
        response = client.get(path)
        assert (response.status_code, response["Allow"]) == (405, "POST")
        assert f'href="{back}"' in words(response)
    assert client.get("/api/v1/runs/heartbeat/").status_code != 200


def test_a_form_without_its_cookie_is_refused_in_our_look(lea: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(lea)
    referer = "http://testserver/queue/D-1/"
    response = client.post("/queue/D-1/decide/", {"text": "Own words."}, headers={"Referer": referer})
    assert response.status_code == 403
    assert "Nothing was done: this form is no longer valid" in words(response)
    assert 'href="/queue/D-1/"' in words(response)
    assert client.post("/queue/D-1/preview/", **SCRIPT).json()["code"] == "form_expired"


def test_what_no_view_answers_is_said_in_words(
    client: Client, ledger: Project, lea: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(lea)
    client.raise_request_exception = False
    monkeypatch.setattr("disputes.web.queue.views._slice_of", None)
    for path, host, status, said in (
        ("/queue/", "testserver", 500, "The program made a mistake; it is in its log."),
        ("/queue/", "elsewhere.example", 400, "adds the name to ALLOWED_HOSTS"),
        ("/admin/tasks/task/?nothing=1", "testserver", 400, "Leave out what follows its question mark."),
        ("/queue/D-9/?conflict=C-7", "testserver", 404, "There is nothing at /queue/D-9/?conflict=C-7 that"),
    ):
        response = client.get(path, headers={"Host": host})
        assert (response.status_code, said in words(response)) == (status, True), path
    large = client.post("/queue/", {"text": "x" * 1_100_000})
    assert (large.status_code, "<h1>Nothing was done</h1>" in words(large)) == (413, True)


LOCKED_AT = 12  # from this query on, a move by hand holds its task, and a removal waits


class RemovedAt:
    """Lets a colleague remove the project right before the request's query with this number."""

    def __init__(self, project: Project, number: int) -> None:
        self.project, self.left = project, number

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")):
            self.left -= 1
            if self.left == 0:
                removing.remove(self.project, actor=SYSTEM)
        return execute(sql, params, many, context)


def test_a_project_that_is_removed_while_a_request_reads_it_is_not_found(ledger: Project, lea: User) -> None:
    """Before each of a request's queries in turn."""
    task = create_task(ledger, status="in_progress")
    opening.stop_for_help(task, Conflict.Origin.BLOCKED, "The coder is blocked: no access")
    lea.is_superuser = True
    lea.save()
    browser = Client(raise_request_exception=False)
    browser.force_login(lea)
    script = APIClient(raise_request_exception=False)
    script.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(lea, 'script')[1]}")
    ask = {"page": browser.get, "get": script.get, "post": partial(script.post, format="json")}
    asked = 0
    for method, path, form in (
        ("page", "/projects/ledger/board/", {}),
        ("page", f"/admin/tasks/project/{ledger.pk}/change/", {}),
        ("get", f"/api/v1/tasks/{task.ref}/", {}),
        ("post", f"/api/v1/tasks/{task.ref}/status/", {"status": "deferred"}),
    ):
        for number in range(1, LOCKED_AT if method == "post" else 100):
            with rows_put_back(), connection.execute_wrapper(at := RemovedAt(ledger, number)):
                answer = ask[method](path, form)
                assert answer.status_code != 500, (path, number)
            if at.left > 0:
                break
            asked += 1
    assert asked > 20

"""Whatever goes wrong, the API answers in JSON: a code, a sentence, what to do next. Its schema is sound."""

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import StringIO
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.response import Response
from rest_framework.test import APIClient

from agents.api.throttling import RunThrottle
from agents.models import Host, Run, Token, new_token, token_hash
from disputes.models import Conflict, Decision
from tasks.models import Comment, Event, Project, Task
from tests.cases import for_each
from tests.factories import create_agent, create_project, create_run, create_task, create_token, create_user
from tests.filling import fill

pytestmark = pytest.mark.django_db

MEBIBYTE = 1024 * 1024
COMMENT = "/api/v1/tasks/ledger-1/comment/"


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_task(ledger, number=1, status="in_progress", round=1)


@pytest.fixture
def client(tom: User) -> APIClient:
    """A triager's script; a fault of the server is a reply, as on the wire."""
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(tom, 'script')[1]}")
    return client


def create_live_run(task: Task) -> tuple[Run, APIClient]:
    secret = new_token()
    run = create_run(task, token_hash=token_hash(secret), spent_hash=token_hash(secret))
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return run, client


def error_of(reply: Response) -> dict[str, Any]:
    """The body of an error in our shape."""
    assert reply.headers["Content-Type"] == "application/json"
    body: dict[str, Any] = reply.json()
    assert {name: type(body.get(name)) for name in ("code", "message", "hint")} == {
        "code": str,
        "message": str,
        "hint": str,
    }
    assert body["code"]
    assert body["message"]
    return body


Call = Callable[[APIClient], Response]


def raw(client: APIClient, text: str, kind: str = "application/json") -> Response:
    return client.post(COMMENT, text, content_type=kind)


def get(path: str, **headers: str) -> Call:
    return lambda client: client.get(f"/api/v1/{path}", headers=headers)


def post(path: str, **body: Any) -> Call:
    return lambda client: client.post(f"/api/v1/{path}", body, format="json")


def send(text: str, kind: str = "application/json") -> Call:
    return lambda client: raw(client, text, kind)


def without_a_token(**headers: str) -> Call:
    return lambda _: APIClient().get("/api/v1/me/", headers=headers)


ERRORS: dict[str, tuple[Call, int, str]] = {
    "no such task": (get("tasks/ledger-9/"), 404, "not_found"),
    "no such task to hand in": (post("tasks/x/log/", notes="a", minor=True), 404, "not_found"),
    "no such dispute": (get("disputes/D-9/"), 404, "not_found"),
    "no dispute on the task": (get("disputes/ledger-1/"), 404, "not_found"),
    "a field missing": (send("{}"), 422, "invalid"),
    "a list": (send("[]"), 422, "invalid"),
    "a NUL": (send('{"body": "a\\u0000b"}'), 422, "invalid"),
    "a lone surrogate": (send('{"body": "\\ud800"}'), 422, "invalid"),
    "a lone surrogate for a choice": (
        lambda client: client.generic(
            "POST", COMMENT.replace("comment", "escalate"), '{"reason": "\\ud800"}', "application/json"
        ),
        422,
        "invalid",
    ),
    "a text too long": (post("tasks/ledger-1/comment/", body="x" * 20_001), 422, "invalid"),
    "an unknown filter value": (get("tasks/?status=done"), 422, "invalid"),
    "a forbidden verb": (post("tasks/ledger-1/submit/", sha="a" * 40), 403, "no_right"),
    "a wrong status": (post("tasks/ledger-1/status/", status="pending"), 409, "wrong_status"),
    "no token": (without_a_token(), 401, "not_signed_in"),
    "a token of another kind": (without_a_token(Authorization="Basic bGVh"), 401, "not_signed_in"),
    "an unknown token": (without_a_token(Authorization="Bearer stx_a"), 401, "bad_token"),
    "no token of ours": (without_a_token(Authorization="Bearer a"), 401, "bad_token"),
    # What the framework would say in words of its own.
    "no such page": (get("tasks/?page=9"), 404, "not_found"),
    "reading what is only done": (get("tasks/ledger-1/comment/"), 405, "method_not_allowed"),
    "deleting a task": (lambda client: client.delete("/api/v1/tasks/ledger-1/"), 405, "method_not_allowed"),
    "writing the list": (post("disputes/"), 405, "method_not_allowed"),
    "another format wanted": (get("me/", Accept="text/html"), 406, "not_acceptable"),
    "a form": (send("body=x", "application/x-www-form-urlencoded"), 415, "unsupported_media_type"),
    "plain text": (send("x", "text/plain"), 415, "unsupported_media_type"),
    "half a JSON": (send('{"body": '), 400, "parse_error"),
    "no JSON": (send("body"), 400, "parse_error"),
    "not UTF-8": (
        lambda client: client.generic("POST", COMMENT, b'{"body": "\xff"}', "application/json"),
        400,
        "parse_error",
    ),
    "not a number": (send('{"body": NaN}'), 400, "parse_error"),
}


@for_each("name", ERRORS)
def test_every_error_is_json_in_our_shape_and_says_what_to_do_next(
    task: Task, client: APIClient, name: str
) -> None:
    call, status, code = ERRORS[name]
    reply = call(client)
    error = error_of(reply)
    assert not Comment.objects.exists()
    assert not Event.objects.exists()
    assert (reply.status_code, error["code"]) == (status, code)
    assert error["message"].endswith("."), error["message"]
    assert error["hint"]


def test_a_field_that_cannot_be_taken_is_named(task: Task, client: APIClient, lea: User) -> None:
    body = error_of(raw(client, '{"target": ["a"], "parent": "x"}'))
    assert [problem["field"] for problem in body["details"]] == ["body", "target", "parent"]
    assert all(problem["reason"] for problem in body["details"])
    long = {"project": "ledger", "title": "Do it", "tags": ["fine", "t" * 61]}
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(lea, 'script')[1]}")
    (problem,) = error_of(client.post("/api/v1/tasks/", long, format="json"))["details"]
    assert problem["field"] == "tags.1"
    assert problem["reason"] == "Ensure this field has no more than 60 characters."


def test_a_filter_that_refuses_a_value_names_its_choices(task: Task, client: APIClient) -> None:
    for query, choice in (("status=done", "completed"), ("severity=huge", "critical, high, medium and low")):
        details = get(f"tasks/?{query}")(client).json()["details"]
        assert [each["field"] for each in details] == [query.partition("=")[0]]
        assert choice in details[0]["reason"]


def test_a_method_that_is_not_allowed_names_those_that_are(task: Task, client: APIClient) -> None:
    assert client.get(COMMENT).headers["Allow"] == "POST, OPTIONS"


def test_without_a_token_the_reply_says_which_kind_is_wanted(task: Task) -> None:
    assert APIClient().get("/api/v1/me/").headers["WWW-Authenticate"] == "Bearer"


def test_nor_is_the_challenge_missing_for_a_dead_token(task: Task) -> None:
    reply = APIClient().get("/api/v1/me/", headers={"Authorization": "Bearer stx_a"})
    assert reply.headers.get("WWW-Authenticate") == "Bearer"
    assert APIClient().get("/api/docs/", headers={"Authorization": "Bearer stx_a"}).status_code == 200


@for_each("path", ["/api/v1/", "/api/v1/nothing/", "/api/v1/tasks/ledger-1/rebase/", "/api/v1/tasks/-/"])
def test_an_unknown_address_is_json_too(task: Task, client: APIClient, path: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    for reply in (client.get(path), *(browser.generic(method, path) for method in ("POST", "PUT", "DELETE"))):
        assert (reply.status_code, error_of(reply)["code"]) == (404, "not_found")


def test_a_body_above_a_mebibyte_is_refused_in_json(task: Task, client: APIClient) -> None:
    reply = raw(client, '{"body": "%s"}' % ("x" * MEBIBYTE))
    assert not Comment.objects.exists()
    assert reply.status_code in {400, 413}
    error_of(reply)


def test_a_body_above_a_mebibyte_is_refused(task: Task, client: APIClient) -> None:
    reply = raw(client, '{"body": "a", "other": "%s"}' % ("x" * MEBIBYTE))
    assert not Comment.objects.exists()
    assert reply.status_code in {400, 413}


@for_each("opening", ["[", '{"body":'])
def test_json_nested_too_deep_is_a_fault_of_the_caller(task: Task, client: APIClient, opening: str) -> None:
    reply = raw(client, opening * 50_000)
    assert (reply.status_code, error_of(reply)["code"]) == (400, "parse_error")


def test_a_fault_of_ours_is_json_too(task: Task, client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the command says that this is not our server."""

    def broken(task: Task) -> str:
        raise RuntimeError("secret-detail")

    monkeypatch.setattr("tasks.api.waiting_line", broken)
    reply = client.get("/api/v1/tasks/ledger-1/")
    assert reply.status_code == 500
    error_of(reply)
    assert b"secret-detail" not in reply.content


# --- Throttling -------------------------------------------------------------------------------------------


@pytest.fixture
def two_a_minute(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cache.clear()
    monkeypatch.setattr(RunThrottle, "THROTTLE_RATES", {"run": "2/min"})
    yield
    cache.clear()


def test_a_run_that_floods_is_told_to_wait(task: Task, two_a_minute: None) -> None:
    run, client = create_live_run(task)
    for number in range(2):
        assert client.post(COMMENT, {"body": f"Remark {number}"}, format="json").status_code == 201
    reply = client.post(COMMENT, {"body": "One more"}, format="json")
    assert Comment.objects.count() == 2
    run.refresh_from_db()
    assert run.status == "running"
    assert (reply.status_code, error_of(reply)["code"]) == (429, "too_many")
    assert int(reply.headers["Retry-After"]) in range(1, 62)  # the rest of a minute, rounded up


def test_reading_counts_as_well(task: Task, two_a_minute: None) -> None:
    _, client = create_live_run(task)
    codes = [client.get(path).status_code for path in ("/api/v1/me/", "/api/v1/tasks/", "/api/v1/disputes/")]
    assert codes == [200, 200, 429]


def test_one_run_does_not_use_up_anothers_rate(task: Task, ledger: Project, two_a_minute: None) -> None:
    _, first = create_live_run(task)
    _, second = create_live_run(create_task(ledger, status="in_progress"))
    for _ in range(3):
        first.get("/api/v1/me/")
    assert second.get("/api/v1/me/").status_code == 200


def test_a_stored_reply_is_given_in_any_case(task: Task, two_a_minute: None) -> None:
    """The run has handed in and only asks whether it arrived."""
    _, client = create_live_run(task)
    sent: dict[str, Any] = {"format": "json", "headers": {"Idempotency-Key": "a"}}
    replies = [client.post(COMMENT, {"body": "Once"}, **sent) for _ in range(4)]
    assert Comment.objects.count() == 1
    assert {reply.status_code for reply in replies} == {201}


def test_people_are_not_limited(task: Task, client: APIClient, two_a_minute: None) -> None:
    assert {client.get("/api/v1/me/").status_code for _ in range(5)} == {200}


# --- Schema and health ------------------------------------------------------------------------------------


def test_the_schema_has_no_warning() -> None:
    out = StringIO()
    call_command("spectacular", fail_on_warn=True, validate=True, stdout=out)
    schema = yaml.safe_load(out.getvalue())
    assert schema["info"]["title"] == "Steroids Web"


@functools.cache
def schema_of_the_api() -> dict[str, Any]:
    """What the server hands out, asked for once: no row changes it."""
    schema: dict[str, Any] = Client().get("/api/schema/?format=json").json()
    return schema


def undocumented(schema: dict[str, Any], shape: dict[str, Any], value: Any, at: str = "") -> Iterator[str]:
    """Where a reply has a field that its schema does not know."""
    while "$ref" in shape or "allOf" in shape:
        shape = shape["allOf"][0] if "allOf" in shape else schema["components"]["schemas"][
            shape["$ref"].rpartition("/")[2]
        ]  # fmt: skip
    if isinstance(value, list):
        for item in value:
            yield from undocumented(schema, shape.get("items", {}), item, at)
    elif isinstance(value, dict) and (known := shape.get("properties")):
        yield from (f"{at}.{name}" for name in value if name not in known)
        for name, held in value.items():
            yield from undocumented(schema, known.get(name, {}), held, f"{at}.{name}")


def test_a_reply_has_no_field_that_the_schema_does_not_know(ledger: Project, tom: User) -> None:
    fill(ledger, 1, tom)
    create_agent("judge")
    Decision.objects.update(revoked_at=timezone.now())
    Conflict.objects.update(status="open")
    ref, host = Conflict.objects.get().ref, Host.objects.first()
    assert host is not None
    root = create_user("root", is_superuser=True)
    schema, script = schema_of_the_api(), APIClient()
    script.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(root, 'script')[1]}")
    calls: list[tuple[str, dict[str, str], dict[str, Any] | None]] = [
        ("disputes/", {}, None),
        ("disputes/{ref}/", {"ref": ref}, None),
        ("tasks/", {"project": "ledger"}, {"project": "ledger", "title": "Round up"}),
        ("tasks/{ref}/status/", {"ref": create_task(ledger).ref}, {"status": "deferred"}),
        ("disputes/{ref}/synthesis/", {"ref": ref}, {"text": "Half of it."}),
        ("disputes/{ref}/ask-judge/", {"ref": ref}, {}),
        ("disputes/{ref}/resolve/", {"ref": ref}, {"decision": "A", "notes": "Yes."}),
        ("hosts/{name}/drain/", {"name": host.name}, {}),
        *((path, {}, None) for path in ("runs/", "agents/", "hosts/", "amendments/", "me/", "projects/")),
    ]
    for path, names, body in calls:
        address = f"/api/v1/{path.format(**names)}"
        reply = script.get(address) if body is None else script.post(address, body, format="json")
        assert reply.status_code in {200, 201}, (path, reply.json())
        operation = schema["paths"][f"/api/v1/{path}"]["get" if body is None else "post"]
        shape = operation["responses"][str(reply.status_code)]["content"]["application/json"]["schema"]
        assert list(undocumented(schema, shape, reply.json())) == [], path


def test_every_answer_may_be_that_the_run_has_handed_in() -> None:
    """Its token is known, and refused, wherever it is sent."""
    for path, operations in schema_of_the_api()["paths"].items():
        for method, operation in operations.items():
            assert "409" in operation["responses"], (method, path)


def test_the_schema_tells_of_the_key_of_whatever_may_be_sent_twice() -> None:
    for path, operations in schema_of_the_api()["paths"].items():
        if "post" in operations:
            told = [parameter["name"] for parameter in operations["post"]["parameters"]]
            assert told.count("Idempotency-Key") == 1, path


def test_a_project_that_is_not_there_is_an_answer_that_the_schema_knows() -> None:
    told = schema_of_the_api()["paths"]["/api/v1/tasks/"]["post"]["responses"]["404"]
    assert told["content"]["application/json"]["schema"]["$ref"].endswith("/Refusal")


def test_every_list_says_that_the_project_or_task_in_its_filter_is_not_there(
    task: Task, client: APIClient
) -> None:
    foreign = create_task(create_project("foreign"))
    asked = {
        (path, parameter["name"])
        for path, operations in schema_of_the_api()["paths"].items()
        for parameter in operations.get("get", {}).get("parameters", ())
        if parameter["in"] == "query" and parameter["name"] in {"project", "task"}
    }
    assert {name for _, name in asked} == {"project", "task"}
    assert len(asked) == 6
    known = {"project": task.project.slug, "task": task.ref}
    for path, name in asked:
        assert client.get(f"{path}?{name}={known[name]}").status_code == 200
        assert client.get(f"{path}?{name}=").status_code == 200
        for unknown in ("no-such-9", foreign.project.slug if name == "project" else foreign.ref):
            reply = client.get(f"{path}?{name}={unknown}")
            assert reply.status_code == 404, (path, name, unknown)
            assert error_of(reply)["message"] == f"There is no {name} {unknown} that you may see."
        assert "404" in schema_of_the_api()["paths"][path]["get"]["responses"]


def test_the_schema_names_every_address() -> None:
    schema = schema_of_the_api()
    verbs = ["submit", "approve", "reject", "dispute", "log", "blocked", "comment", "status"]
    verbs += ["rollback", "reapply", "revert", "escalate", "opinion"]
    assert set(schema["paths"]) == {
        "/api/v1/me/",
        "/api/v1/runs/",
        "/api/v1/runs/{id}/",
        "/api/v1/agents/",
        "/api/v1/hosts/",
        "/api/v1/hosts/{name}/drain/",
        "/api/v1/hosts/{name}/resume/",
        "/api/v1/projects/",
        "/api/v1/tasks/",
        "/api/v1/tasks/{ref}/",
        *(f"/api/v1/tasks/{{ref}}/{verb}/" for verb in verbs),
        "/api/v1/disputes/",
        "/api/v1/disputes/{ref}/",
        "/api/v1/disputes/{ref}/resolve/",
        "/api/v1/disputes/{ref}/synthesis/",
        "/api/v1/disputes/{ref}/ask-judge/",
        "/api/v1/disputes/{ref}/ask-mediator/",
        "/api/v1/disputes/{ref}/amend/",
        "/api/v1/disputed-work/",
        "/api/v1/disputed-work/{id}/",
        "/api/v1/amendments/",
        "/api/v1/amendments/{id}/",
        *(f"/api/v1/amendments/{{id}}/{verb}/" for verb in ("approve", "drop", "reword")),
        "/api/v1/pull/claim/",
        "/api/v1/pull/runs/{id}/",
        *(f"/api/v1/pull/runs/{{id}}/{verb}/" for verb in ("beat", "base", "bundle", "release")),
    }


def test_the_documentation_loads_nothing_from_outside_and_refuses_in_words(client: APIClient) -> None:
    page = Client().get("/api/docs/").content.decode()
    assert "https://" not in page.replace("http://testserver", "")
    for method, query, status, said in (
        (
            "get",
            "?format=<b>",
            404,
            "This is not there as &lt;b&gt;. Leave out `format`, or take one of: html.",
        ),
        ("post", "", 405, "Check the method;"),
    ):
        reply = getattr(Client(), method)(f"/api/docs/{query}")
        words = reply.content.decode()
        assert (reply.status_code, "<h1>This cannot be answered</h1>" in words, said in words) == (
            status,
            True,
            True,
        )
    unknown = client.get("/api/v1/tasks/", {"format": "xml"})
    assert (unknown.status_code, error_of(unknown)["hint"]) == (
        404,
        "Leave out `format`, or take one of: json.",
    )


def test_the_server_says_that_it_is_well() -> None:
    with CaptureQueriesContext(connection) as queries:
        reply = Client().get("/healthz")
    assert len(queries) == 1
    assert (reply.status_code, reply.json()) == (200, {"status": "ok"})


@pytest.mark.django_db(transaction=True)
def test_a_server_that_cannot_ask_its_database_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    with monkeypatch.context() as away:
        for name in ("NAME", "HOST"):  # of the file, of the folder with the server's socket
            away.setitem(connection.settings_dict, name, "/nonexistent/database")
        reply = Client(raise_request_exception=False).get("/healthz")
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")
        connection.close()
    assert Client().get("/healthz").status_code == 200


# --- While nothing can be written -------------------------------------------------------------------------


@contextmanager
def writing_elsewhere() -> Iterator[None]:
    """Another connection writes, and does not come to an end."""
    with closing(connection.copy("elsewhere")) as other, other.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE" if other.vendor == "sqlite" else "BEGIN")
        cursor.execute("UPDATE agents_token SET name = name")
        yield
        cursor.execute("ROLLBACK")


@pytest.mark.django_db(transaction=True)
def test_reading_goes_on_while_others_write_for_long(task: Task, client: APIClient) -> None:
    """When a token was used last is no reason to let its person wait."""
    with writing_elsewhere():
        began = time.monotonic()
        for _ in range(5):
            assert client.get("/api/v1/tasks/ledger-1/").status_code == 200
        assert time.monotonic() - began < 10  # seconds, half of what a write waits
    assert not Token.objects.exclude(used_at=None).exists()
    cache.clear()
    assert client.get("/api/v1/me/").status_code == 200
    assert Token.objects.exclude(used_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_written_is_answered_with_the_reason(task: Task, client: APIClient) -> None:
    assert client.get("/api/v1/me/").status_code == 200
    is_sqlite = connection.vendor == "sqlite"
    off, on = ("PRAGMA query_only=1", "PRAGMA query_only=0") if is_sqlite else (
        "SET default_transaction_read_only = on", "SET default_transaction_read_only = off"
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(off)
        try:
            reply = client.post(COMMENT, {"body": "Look."}, format="json")
        finally:
            cursor.execute(on)
    assert (reply.status_code, error_of(reply)["code"], reply.headers["Retry-After"]) == (503, "busy", "1")
    assert "it takes no writes" in reply.json()["message"]
    assert client.post(COMMENT, {"body": "Look."}, format="json").status_code == 201

"""Tasks over REST: reading them, and the moves that people make by hand."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.response import Response
from rest_framework.test import APIClient

from agents.models import new_token, token_hash
from disputes import opening
from disputes.models import Conflict
from tasks import api, idempotency
from tasks.access import tasks_for
from tasks.models import Dependency, Event, Landing, Project, Section, Task
from tests.asking import by_index, client_of, client_with, queries
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_project,
    create_review,
    create_run,
    create_section,
    create_submission,
    create_task,
    sha,
)

pytestmark = pytest.mark.django_db


def client_of_run(task: Task, role: str = "coder") -> APIClient:
    secret = new_token()
    create_run(task, role, token_hash=token_hash(secret))
    return client_with(secret)


def set_status(user: User, task: Task, status: str, key: str = "", **body: Any) -> Response:
    headers = {"Idempotency-Key": key} if key else {}
    path = f"/api/v1/tasks/{task.ref}/status/"
    return client_of(user).post(path, {"status": status, **body}, format="json", headers=headers)


def refs(client: APIClient, query: str = "") -> list[str]:
    reply = client.get(f"/api/v1/tasks/{query}")
    assert reply.status_code == 200, reply.json()
    return [row["ref"] for row in reply.json()["results"]]


def fill(project: Project, number: int) -> None:
    """Tasks in all statuses, each in a section of its own."""
    statuses = ["pending", "in_progress", "review", "disputed"]
    for index in range(number):
        section = create_section(project)
        create_task(project, section=section, status=statuses[index % 4], tags=["api"])


# --- Reading ----------------------------------------------------------------------------------------------


def test_a_task_in_the_list(ledger: Project, vera: User) -> None:
    section = create_section(ledger, "Calls")
    create_task(
        ledger,
        section=section,
        number=7,
        title="Retry failed calls",
        status="review",
        round=2,
        severity="high",
        tags=["api"],
        source="docs/SPEC.md#calls",
        rejections=1,
    )
    reply = client_of(vera).get("/api/v1/tasks/").json()
    assert (reply["count"], reply["next"], reply["previous"]) == (1, None, None)
    row = reply["results"][0]
    assert row.pop("status_at")
    assert row == {
        "ref": "ledger-7",
        "title": "Retry failed calls",
        "status": "review",
        "marker": "[o]",
        "round": 2,
        "stage": "dev",
        "where": "",
        "severity": "high",
        "project": "ledger",
        "section": "Calls",
        "tags": ["api"],
        "source": "docs/SPEC.md#calls",
        "rejections": 1,
        "landed_sha": "",
        "landed_at": None,
    }


def test_a_task_alone_says_what_it_waits_for(ledger: Project, vera: User) -> None:
    task = create_task(ledger, number=7, title="Retry", status="in_progress", round=2, body="At most thrice.")
    first = create_review(create_submission(task, round=1))
    create_finding(first, title="An older point")
    last = create_review(create_submission(task, round=2))
    finding = create_finding(last, title="Failed calls are retried at once")
    Dependency.objects.create(task=task, on=create_task(ledger, number=3))
    reply = client_of(vera).get("/api/v1/tasks/ledger-7/")
    assert reply.status_code == 200
    body = reply.json()
    assert (body["ref"], body["body"], body["waiting"]) == (
        "ledger-7",
        "At most thrice.",
        "The coder's turn, but no coder agent works in Ledger.",
    )
    assert body["depends_on"] == ["ledger-3"]
    assert body["findings"] == [
        {
            "code": finding.code,
            "severity": "high",
            "mandatory": True,
            "title": "Failed calls are retried at once",
            "location": "src/calls.py:12",
            "impact": "A dead server is hammered.",
            "suggestion": "Wait between tries, twice as long each time.",
        }
    ]


def test_tasks_stand_as_in_their_project(ledger: Project, vera: User) -> None:
    for number, rank in ((1, 30), (2, 10), (3, 20)):
        create_task(ledger, number=number, rank=rank)
    assert refs(client_of(vera)) == ["ledger-2", "ledger-3", "ledger-1"]


@for_each(
    ("query", "found"),
    [
        ("?status=review", ["ledger-2"]),
        ("?severity=critical", ["ledger-3"]),
        ("?severity=CRITICAL", ["ledger-3"]),
        ("?project=ledger", ["ledger-1", "ledger-2", "ledger-3"]),
        ("?project=atlas", ["atlas-4"]),
        ("?search=RETRY", ["ledger-1"]),
        ("?search=backoff", ["ledger-2"]),
        ("?search=100%25", []),
        ("?status=pending&project=ledger&severity=critical", ["ledger-3"]),
    ],
)
def test_the_list_is_narrowed_down(ledger: Project, vera: User, query: str, found: list[str]) -> None:
    create_task(ledger, number=1, title="Retry failed calls")
    create_task(ledger, number=2, body="With a backoff, please", status="review")
    create_task(ledger, number=3, severity="critical")
    create_task(create_project("atlas", members={vera: "viewer"}), number=4)
    assert refs(client_of(vera), query) == found


def test_a_search_that_finds_many_tasks_lists_and_counts_as_one_that_finds_few(
    ledger: Project, vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (3, 1, 2):
        create_task(ledger, number=number, rank=number, title="Retry")
    create_task(ledger, number=4, title="Another")
    client = client_of(vera)
    few = client.get("/api/v1/tasks/?search=retry").json()
    monkeypatch.setattr("tasks.models.task.FEW", 2)

    assert client.get("/api/v1/tasks/?search=retry").json() == few
    assert (few["count"], [row["ref"] for row in few["results"]]) == (3, ["ledger-1", "ledger-2", "ledger-3"])


def test_a_search_that_finds_nothing_reads_the_tasks_once(ledger: Project, vera: User) -> None:
    create_task(ledger)
    client = client_of(vera)
    with CaptureQueriesContext(connection) as captured:
        assert client.get("/api/v1/tasks/?search=turtle").json()["count"] == 0
    assert [query["sql"] for query in captured if "turtle" in query["sql"].lower()][1:] == []


def test_the_list_of_tasks_is_read_on_in_its_order(ledger: Project, lea: User) -> None:
    """Sorted, a hundred thousand of them took 0.4 seconds."""
    every = tasks_for(lea).select_related("project", "section").order_by("project__slug", "rank", "number")
    by_index(lambda: list(every.filter(project__slug="ledger")[:50]), {"task_in_order"})


@pytest.mark.parametrize("query", ["?status=open", "?severity=major"])
def test_a_word_that_no_filter_knows_is_refused(ledger: Project, vera: User, query: str) -> None:
    reply = client_of(vera).get(f"/api/v1/tasks/{query}")
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid")
    assert reply.json()["details"][0]["field"] in query


def test_the_list_comes_in_pages_of_fifty(ledger: Project, vera: User) -> None:
    section = create_section(ledger)
    for number in range(1, 54):
        create_task(ledger, section=section, number=number, rank=number)
    client = client_of(vera)
    first = client.get("/api/v1/tasks/").json()
    assert (first["count"], len(first["results"]), first["previous"]) == (53, 50, None)
    second = client.get(first["next"]).json()
    assert [row["ref"] for row in second["results"]] == ["ledger-51", "ledger-52", "ledger-53"]
    assert second["next"] is None
    reply = client.get("/api/v1/tasks/?page=3")
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_the_list_costs_the_same_for_3_and_12_tasks(ledger: Project, vera: User) -> None:
    client = client_of(vera)
    fill(ledger, 3)
    client.get("/api/v1/tasks/")
    few = queries(lambda: client.get("/api/v1/tasks/"))
    fill(ledger, 9)
    many = queries(lambda: client.get("/api/v1/tasks/"))
    assert len(refs(client)) == 12
    assert many == few <= 4


def test_one_task_costs_the_same_with_3_and_12_findings(ledger: Project, vera: User) -> None:
    task = create_task(ledger, number=7, status="pending", waits_for=1)
    review = create_review(create_submission(task))

    def add(number: int) -> None:
        for _ in range(number):
            create_finding(review)
            Dependency.objects.create(task=task, on=create_task(ledger))

    client = client_of(vera)
    add(3)
    client.get("/api/v1/tasks/ledger-7/")
    few = queries(lambda: client.get("/api/v1/tasks/ledger-7/"))
    add(9)
    many = queries(lambda: client.get("/api/v1/tasks/ledger-7/"))
    assert len(client.get("/api/v1/tasks/ledger-7/").json()["findings"]) == 12
    assert many == few <= 12


# --- Access -----------------------------------------------------------------------------------------------


def test_an_outsider_sees_nothing(ledger: Project, otto: User) -> None:
    task = create_task(ledger, number=7, status="deferred")
    client = client_of(otto)
    assert refs(client) == []
    assert client.get("/api/v1/tasks/ledger-7/").status_code == 404
    reply = set_status(otto, task, "pending")
    task.refresh_from_db()
    assert (task.status, task.version) == ("deferred", 0)
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_nobody_is_asked_for_a_token(ledger: Project) -> None:
    create_task(ledger, number=7)
    for path in ("/api/v1/tasks/", "/api/v1/tasks/ledger-7/"):
        reply = APIClient().get(path)
        assert (reply.status_code, reply.json()["code"]) == (401, "not_signed_in")


def test_a_member_sees_the_own_projects_only(ledger: Project, vera: User) -> None:
    create_task(ledger, number=1)
    create_task(create_project("atlas"), number=2)
    client = client_of(vera)
    assert refs(client) == ["ledger-1"]
    assert client.get("/api/v1/tasks/atlas-2/").status_code == 404


def test_a_superuser_sees_all(ledger: Project, otto: User) -> None:
    User.objects.filter(pk=otto.pk).update(is_superuser=True)
    otto.refresh_from_db()
    create_task(ledger, number=1)
    assert refs(client_of(otto)) == ["ledger-1"]


@pytest.mark.parametrize("role", ["coder", "reviewer", "verifier"])
def test_a_run_sees_its_own_task_only(ledger: Project, role: str) -> None:
    own, other = create_task(ledger, number=1, status="in_progress"), create_task(ledger, number=2)
    client = client_of_run(own, role)
    assert refs(client) == ["ledger-1"]
    assert client.get("/api/v1/tasks/ledger-1/").status_code == 200
    assert client.get(f"/api/v1/tasks/{other.ref}/").status_code == 404


@for_each("ref", ["ledger-9", "ledger-99999999999999999999", "ledger", "-1", "atlas-1"])
def test_a_name_that_is_none_is_not_found(ledger: Project, vera: User, ref: str) -> None:
    create_task(ledger, number=1)
    assert client_of(vera).get(f"/api/v1/tasks/{ref}/").status_code == 404


# --- Moves by hand ----------------------------------------------------------------------------------------

BY_HAND = [
    # from, wanted, by, becomes, event
    ("pending", "deferred", "tom", "deferred", "defer"),
    ("in_progress", "deferred", "tom", "deferred", "defer"),
    ("disputed", "deferred", "tom", "deferred", "defer"),
    ("deferred", "pending", "tom", "pending", "resume"),
    ("deferred", "in_progress", "tom", "pending", "resume"),
    ("pending", "cancelled", "lea", "cancelled", "cancel"),
    ("review", "cancelled", "lea", "cancelled", "cancel"),
    ("failed", "cancelled", "lea", "cancelled", "cancel"),
    ("pending", "completed", "lea", "completed", "finish"),
    ("in_progress", "completed", "lea", "completed", "finish"),
    ("cancelled", "pending", "lea", "pending", "reopen"),
    ("cancelled", "in_progress", "lea", "pending", "reopen"),
]


@for_each(("old", "wanted", "by", "new", "kind"), BY_HAND)
def test_a_person_moves_a_task(
    ledger: Project, lea: User, tom: User, old: str, wanted: str, by: str, new: str, kind: str
) -> None:
    user = {"lea": lea, "tom": tom}[by]
    task = create_task(ledger, status=old)
    reply = set_status(user, task, wanted, notes="Talked about it.")
    task.refresh_from_db()
    assert (task.status, task.version) == (new, 1)
    event = Event.objects.get(task=task)
    assert (event.kind, event.from_status, event.to_status) == (kind, old, new)
    assert (event.actor_kind, event.user, event.label) == ("person", user, user.get_full_name())
    assert event.note == "Talked about it."
    assert (reply.status_code, reply.json()["status"]) == (200, new)
    assert reply.json()["message"] == f"{task.ref} is {new} now."


def test_a_task_that_was_worked_on_goes_on_where_it_was(ledger: Project, tom: User) -> None:
    task = create_task(ledger, status="deferred", round=2)
    create_submission(task)
    assert set_status(tom, task, "pending").json()["status"] == "in_progress"


def test_a_finished_task_is_finished_by_hand(ledger: Project, lea: User) -> None:
    waiting = create_task(ledger, waits_for=1)
    task = create_task(ledger)
    Dependency.objects.create(task=waiting, on=task)
    set_status(lea, task, "completed")
    task.refresh_from_db()
    waiting.refresh_from_db()
    assert (task.finished_by, task.accepted, waiting.waits_for) == ("hand", None, 0)


def test_cancelling_the_failed_task_starts_its_section_again(ledger: Project, lea: User) -> None:
    section = create_section(ledger, is_stopped=True)
    task = create_task(ledger, section=section, status="failed")
    set_status(lea, task, "cancelled")
    assert not Section.objects.get(pk=section.pk).is_stopped


@for_each(
    ("by", "wanted", "allowed"),
    [
        ("tom", "deferred", True),
        ("tom", "cancelled", False),
        ("tom", "completed", False),
        ("vera", "deferred", False),
        ("vera", "cancelled", False),
        ("vera", "completed", False),
        ("vera", "pending", False),
    ],
)
def test_each_role_has_its_moves(
    ledger: Project, tom: User, vera: User, by: str, wanted: str, allowed: bool
) -> None:
    task = create_task(ledger, status="in_progress")
    reply = set_status({"tom": tom, "vera": vera}[by], task, wanted)
    task.refresh_from_db()
    assert (task.status == wanted) == allowed
    assert Event.objects.exists() == allowed
    assert reply.status_code == (200 if allowed else 403)
    assert reply.json().get("code", "") == ("" if allowed else "no_right")


@pytest.mark.parametrize("old", ["completed", "cancelled"])
def test_a_triager_does_not_reopen(ledger: Project, tom: User, old: str) -> None:
    """Only a maintainer may."""
    task = create_task(ledger, status=old, finished_by="hand")
    reply = set_status(tom, task, "pending")
    task.refresh_from_db()
    assert task.status == old
    assert (reply.status_code, reply.json()["code"]) == (403, "no_right")


def test_reopening_needs_a_reason(ledger: Project, lea: User) -> None:
    task = create_task(ledger, status="cancelled")
    reply = set_status(lea, task, "pending")
    task.refresh_from_db()
    assert task.status == "cancelled"
    assert reply.status_code == 422


def disputed_task(project: Project, status: str = "disputed") -> Task:
    """A task whose HIGH conflict waits for a human."""
    task = create_task(project, status=status, round=1)
    create_submission(task)
    opening.open_conflict(
        task,
        kind=Conflict.Kind.DISAGREEMENT,
        origin=Conflict.Origin.CLI,
        opened_as="reviewer",
        question="Who waits?",
        severity="high",
        reviewer_position="The caller.",
    )
    return task


def test_a_task_with_an_undecided_high_conflict_is_not_finished_by_hand(ledger: Project, lea: User) -> None:
    task = disputed_task(ledger)
    reply = set_status(lea, task, "completed")
    task.refresh_from_db()
    assert task.status == "disputed"
    assert reply.status_code == 409


def test_a_deferred_dispute_resumes_as_one(ledger: Project, tom: User) -> None:
    task = disputed_task(ledger, "deferred")
    set_status(tom, task, "in_progress")
    task.refresh_from_db()
    assert task.status == "disputed"


@for_each("role", ["coder", "reviewer", "verifier"])
@for_each("status", ["deferred", "cancelled", "completed", "pending"])
def test_a_run_moves_nothing(ledger: Project, role: str, status: str) -> None:
    task = create_task(ledger, number=1, status="in_progress")
    reply = client_of_run(task, role).post(
        "/api/v1/tasks/ledger-1/status/", {"status": status}, format="json"
    )
    task.refresh_from_db()
    assert (task.status, task.version) == ("in_progress", 0)
    assert not Event.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (403, "no_right")


# --- 409 --------------------------------------------------------------------------------------------------


def assert_untouched(task: Task, status: str, reply: Response, code: str) -> dict[str, Any]:
    task.refresh_from_db()
    assert task.status == status
    assert not Event.objects.filter(task=task).exists()
    assert (reply.status_code, reply.json()["code"]) == (409, code), reply.json()
    assert reply.json()["hint"]
    return reply.json()


@pytest.mark.parametrize("wanted", ["review", "disputed", "failed"])
def test_some_statuses_are_reached_by_hand_ins_and_rulings_only(
    ledger: Project, lea: User, wanted: str
) -> None:
    task = create_task(ledger, status="in_progress")
    body = assert_untouched(task, "in_progress", set_status(lea, task, wanted), "wrong_status")
    assert "cancelled, completed, deferred" in body["hint"]


@for_each(
    ("old", "wanted"),
    [
        ("completed", "deferred"),
        ("cancelled", "deferred"),
        ("cancelled", "completed"),
        ("completed", "completed"),
        ("cancelled", "cancelled"),
        ("pending", "in_progress"),
        ("disputed", "pending"),
        ("failed", "in_progress"),
        ("review", "pending"),
    ],
)
def test_a_move_that_the_table_does_not_know_is_refused(
    ledger: Project, lea: User, old: str, wanted: str
) -> None:
    task = create_task(ledger, status=old, finished_by="hand" if old == "completed" else "")
    body = assert_untouched(task, old, set_status(lea, task, wanted), "wrong_status")
    assert old in body["message"]


def test_what_has_landed_is_not_cancelled(ledger: Project, lea: User) -> None:
    landed = {"landed_sha": sha("a"), "landed_at": timezone.now(), "finished_by": "hand"}
    task = create_task(ledger, status="completed", **landed)
    assert (
        "landed"
        in assert_untouched(task, "completed", set_status(lea, task, "cancelled"), "wrong_status")["message"]
    )


def test_what_is_being_pushed_is_not_cancelled(ledger: Project, lea: User) -> None:
    task = create_task(ledger, status="completed", finished_by="hand")
    submission = create_submission(task)
    Landing.objects.create(
        project=ledger, task=task, submission=submission, sha=submission.sha, target="main", status="pushing"
    )
    assert_untouched(task, "completed", set_status(lea, task, "cancelled"), "wrong_status")


def test_the_slower_of_two_learns_what_the_task_is_now(
    ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read as in_progress, and somebody moved it before the write."""
    task = create_task(ledger, status="review", version=1)
    move_to = api.move_to

    def late(found: Task, status: str) -> str:
        found.status, found.version = "in_progress", 0
        return move_to(found, status)

    monkeypatch.setattr(api, "move_to", late)
    body = assert_untouched(task, "review", set_status(tom, task, "deferred"), "stale_turn")
    assert body["status_now"] == "review"


@pytest.mark.parametrize("body", [{}, {"status": "done"}, {"status": "deferred", "notes": ["a"]}, []])
def test_a_malformed_move_is_refused(ledger: Project, tom: User, body: Any) -> None:
    task = create_task(ledger, status="in_progress")
    reply = client_of(tom).post(f"/api/v1/tasks/{task.ref}/status/", body, format="json")
    task.refresh_from_db()
    assert task.status == "in_progress"
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid")


def test_a_move_that_is_sent_twice_has_one_reply(ledger: Project, tom: User) -> None:
    """The command sends a call again when its connection was cut."""
    task = create_task(ledger, status="in_progress")
    client = client_of(tom)
    sent: dict[str, Any] = {
        "data": {"status": "deferred"},
        "format": "json",
        "headers": {"Idempotency-Key": "a"},
    }
    first = client.post(f"/api/v1/tasks/{task.ref}/status/", **sent)
    second = client.post(f"/api/v1/tasks/{task.ref}/status/", **sent)
    assert Event.objects.filter(task=task).count() == 1
    assert (second.status_code, second.json()) == (200, first.json())


@pytest.mark.parametrize("wanted", ["deferred", "cancelled"])
def test_two_tries_at_once_of_a_move_have_one_reply(
    ledger: Project, lea: User, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    """The first try commits right after the second has looked for its reply."""
    task = create_task(ledger, status="in_progress")
    client = client_of(lea)
    look, replies = idempotency.earlier_reply, []

    def send() -> Response:
        headers = {"Idempotency-Key": "a"}
        path = f"/api/v1/tasks/{task.ref}/status/"
        return client.post(path, {"status": wanted}, format="json", headers=headers)

    def late(request: Any) -> Any:
        monkeypatch.setattr(idempotency, "earlier_reply", look)
        replies.append(send())

    monkeypatch.setattr(idempotency, "earlier_reply", late)
    second = send()
    assert Event.objects.filter(task=task).count() == 1
    assert (second.status_code, second.json()) == (200, replies[0].json())


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_tasks_are_not_written_over_rest(ledger: Project, lea: User, method: str) -> None:
    task = create_task(ledger, number=1, title="Retry")
    reply = getattr(client_of(lea), method)("/api/v1/tasks/ledger-1/", {"title": "Other"}, format="json")
    task.refresh_from_db()
    assert task.title == "Retry"
    assert reply.status_code == 405


def test_a_task_says_where_among_the_stages_it_stands() -> None:
    project = create_project("atlas", settings={"stages": "full"})
    task = create_task(project)
    Task.objects.filter(pk=task.pk).update(stage="tests", home_stage="dev")
    sent_back = api.TaskSerializer(Task.objects.get(pk=task.pk)).data
    column = {"stage": "needs-security-review", "home_stage": "dev", "escalation": "security"}
    Task.objects.filter(pk=task.pk).update(**column)

    assert (sent_back["stage"], sent_back["where"]) == ("tests", "Tests (3 of 6), sent back by dev")
    assert (
        api.TaskSerializer(Task.objects.get(pk=task.pk)).data["where"] == "Needs a security review, from dev"
    )


# --- Projects ---------------------------------------------------------------------------------------------


def test_projects_are_listed_to_their_members_with_their_tasks(ledger: Project, vera: User) -> None:
    create_project("secret")
    for number, status in enumerate(("pending", "pending", "in_progress"), start=1):
        create_task(ledger, number=number, status=status)
    client = client_of(vera)
    for address in ("ssh://bob:hunter2@git.example/x.git", "https://bob:hunt/er2@git.example/x.git"):
        Project.objects.filter(pk=ledger.pk).update(repo_url=address)  # as old rows may have it
        told = str(client.get("/api/v1/projects/").json())
        assert "er2" not in told
        assert "git.example/x.git" in told
    client.get("/api/v1/projects/")
    with CaptureQueriesContext(connection) as few:
        reply = client.get("/api/v1/projects/").json()
    assert [row["slug"] for row in reply["results"]] == ["ledger"]
    assert reply["results"][0]["tasks"] == {"pending": 2, "in_progress": 1}
    for number in range(3):
        create_task(create_project(f"more-{number}", members={vera: "viewer"}))
    with CaptureQueriesContext(connection) as many:
        assert client.get("/api/v1/projects/").json()["count"] == 4
    assert len(many) == len(few)
    assert [row["slug"] for row in client.get("/api/v1/projects/?search=MORE-1").json()["results"]] == [
        "more-1"
    ]
    assert client.get("/api/v1/projects/?status=finished").json()["count"] == 0
    assert client.get("/api/v1/projects/?status=open").status_code == 422
    assert client.delete("/api/v1/projects/").status_code == 405

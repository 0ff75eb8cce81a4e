"""REST: tasks, projects and agents are added once per Idempotency-Key, and runs are read."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Agent
from tasks.models import Dependency, Event, Idempotency, Membership, Project, Section, Task
from tests.factories import create_project, create_run, create_section, create_task, create_token, create_user

pytestmark = pytest.mark.django_db


def post(user: User, path: str, body: dict[str, Any], key: str = "") -> Any:
    _, secret = create_token(user, f"t{Idempotency.objects.count()}{len(str(body))}")
    headers = {"Authorization": f"Bearer {secret}"} | ({"Idempotency-Key": key} if key else {})
    return Client(headers=headers).post(path, body, content_type="application/json")


def get(user: User, path: str) -> Any:
    client = Client()
    client.force_login(user)
    return client.get(path)


def test_a_maintainer_adds_a_task_with_all_that_it_has(
    ledger: Project, lea: User, tom: User, otto: User
) -> None:
    create_project("others", members={otto: "maintainer"})
    server, client = create_section(ledger, "Server"), create_section(ledger, "Client")
    client.depends_on.add(server)
    first = create_task(ledger, section=server)
    body = {
        "project": "ledger", "title": "Ask for\nthe password", "body": "Twice.", "section": "Client",
        "severity": "HIGH", "tags": ["login"], "source": "docs/SPEC.md#login", "depends_on": [first.ref],
    }  # fmt: skip
    reply = post(lea, "/api/v1/tasks/", body)
    assert reply.status_code == 201, reply.json()
    task = Task.objects.get(title="Ask for the password")
    assert reply.json()["ref"] == task.ref == f"ledger-{first.number + 1}"
    assert (task.body, task.severity, task.tags, task.section.title) == (
        "Twice.",
        "high",
        ["login"],
        "Client",
    )
    assert task.rank > first.rank
    assert task.waits_for
    assert list(Dependency.objects.values_list("on", flat=True)) == [first.pk]
    assert Event.objects.get(task=task, kind="created").label == "Lea Lindt"

    # What cannot be: others' projects, roles, names, circles. Nothing of it is left.
    for who, changed, status, code in (
        (lea, {"project": "nowhere"}, 404, "no_project"),
        (otto, {}, 404, "no_project"),
        (tom, {}, 403, "no_right"),
        (lea, {"depends_on": ["ledger-999"]}, 422, "no_task"),
        (lea, {"title": ""}, 422, "invalid"),
        (lea, {"severity": "urgent"}, 422, "invalid"),
        (lea, {"section": "Server", "depends_on": [task.ref]}, 422, "circle"),
    ):
        refused = post(who, "/api/v1/tasks/", body | changed)
        assert (refused.status_code, refused.json()["code"]) == (status, code), (changed, refused.json())
    assert Task.objects.filter(project=ledger).count() == 2

    assert (
        post(lea, "/api/v1/tasks/", {"project": "ledger", "title": "Short", "section": "New"}).status_code
        == 201
    )
    assert Section.objects.filter(project=ledger, title="New").count() == 1


def test_the_same_key_adds_one_task_and_another_request_under_it_is_refused(
    ledger: Project, lea: User
) -> None:
    _, secret = create_token(lea, "script")
    client = Client(headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": "one"})
    send = [
        client.post("/api/v1/tasks/", {"project": "ledger", "title": title}, content_type="application/json")
        for title in ("Do it", "Do it", "Something else")
    ]
    assert [reply.status_code for reply in send] == [201, 201, 422]
    assert send[0].json() == send[1].json()
    assert send[2].json()["code"] == "key_reused"
    assert Task.objects.count() == 1

    # A key may be long, and it counts as a whole.
    for end in ("a", "b", "b"):
        client.post(
            "/api/v1/tasks/", {"project": "ledger", "title": "Again"}, content_type="application/json",
            headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": "k" * 200 + end},
        )  # fmt: skip
    assert Task.objects.count() == 3


def test_a_key_is_its_persons_own_behind_a_proxy_that_signs_in_for_all(ledger: Project, lea: User) -> None:
    root = create_user("root", is_superuser=True)
    for number, who in enumerate((lea, root), start=1):
        client = Client(headers={"Authorization": "Basic cHJveHk6eA==", "Idempotency-Key": "one"})
        client.force_login(who)
        sent = {"project": "ledger", "title": "Do it"}
        assert client.post("/api/v1/tasks/", sent, content_type="application/json").status_code == 201
        assert Task.objects.count() == number


def test_a_superuser_adds_projects_and_agents_and_nobody_else_does(ledger: Project, lea: User) -> None:
    root = create_user("root", is_superuser=True)
    project = {"slug": "shop", "repository": "https://git.example.org/shop.git", "branch": "main"}
    agent = {
        "name": "shop-coder", "role": "coder", "command": ["true", "{prompt}"], "projects": ["shop"],
        "hosts": ["api.example.org"],
    }  # fmt: skip
    assert post(lea, "/api/v1/projects/", project).status_code == 403
    assert post(lea, "/api/v1/agents/", agent).status_code == 403
    assert post(root, "/api/v1/agents/", agent).json()["code"] == "no_project"

    made = post(root, "/api/v1/projects/", project)
    assert (made.status_code, made.json()["slug"], made.json()["tasks"]) == (201, "shop", {})
    assert Membership.objects.get(project__slug="shop").user == root
    handbook = project | {"slug": "handbook", "kind": "documents", "brief": "For new people."}
    assert post(root, "/api/v1/projects/", handbook).json()["kind"] == "documents"
    assert Project.objects.get(slug="handbook").brief == "For new people."
    assert post(root, "/api/v1/projects/", handbook | {"slug": "x", "kind": "pictures"}).status_code == 422
    for changed in (
        {},
        {"slug": "d"},
        {"slug": "new", "repository": "https://me:secret@git.example.org/x.git"},
        *({"slug": "new", "repository": path} for path in ("shop", "../shop.git", "1e+308", "~/shop.git")),
    ):
        refused = post(root, "/api/v1/projects/", project | changed)
        assert refused.status_code == 422, refused.json()
        assert "secret" not in refused.content.decode()
    assert Project.objects.count() == 3

    added = post(root, "/api/v1/agents/", agent)
    assert (added.status_code, added.json()["projects"], added.json()["missing"]) == (201, ["shop"], "")
    assert Agent.objects.get(name="shop-coder").settings == {
        "argv": ["true", "{prompt}"], "hosts": ["api.example.org"],
    }  # fmt: skip
    lacking = post(
        root, "/api/v1/agents/", agent | {"name": "far", "command": ["no-such-program", "{prompt}"]}
    )
    assert "no-such-program" in lacking.json()["missing"]
    assert post(root, "/api/v1/agents/", agent).status_code == 422
    assert [row["name"] for row in get(root, "/api/v1/agents/").json()["results"]] == ["far", "shop-coder"]
    assert get(lea, "/api/v1/agents/").status_code == 403


def test_members_read_runs_and_find_them_by_task(ledger: Project, vera: User, otto: User) -> None:
    task = create_task(ledger)
    run = create_run(task, "coder", model="sonnet")
    other = create_run(create_task(create_project("other")), "reviewer")
    listed = get(vera, f"/api/v1/runs/?task={task.ref}&role=coder").json()["results"]
    assert [(row["id"], row["task"], row["model"], row["status"]) for row in listed] == [
        (run.pk, task.ref, "sonnet", "running")
    ]
    assert get(vera, "/api/v1/runs/").json()["count"] == 1
    assert get(vera, f"/api/v1/runs/{run.pk}/").json()["project"] == "ledger"
    assert get(vera, f"/api/v1/runs/{other.pk}/").status_code == 404
    assert get(vera, "/api/v1/runs/?role=king").status_code == 422

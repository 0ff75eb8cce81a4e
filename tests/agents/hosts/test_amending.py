"""A ruling on its way into the specification: drafted in real git, looked at, approved, landed as a task."""

from datetime import timedelta
from secrets import token_hex
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from agents import retention
from agents.hosts import landing as landings
from agents.hosts import submissions
from agents.hosts.branches import amending
from agents.loop import orchestrator
from agents.models import Run, new_token, token_hash
from disputes import amendments, opening, rulings
from disputes.models import Amendment, Conflict, Decision
from disputes.notifications.messages import message_of as compose
from disputes.notifications.subjects import subject_of
from tasks.errors import Refused
from tasks.models import Event, Landing, Notice, Project, Submission, Task
from tests.agents.world import World, git, make_world  # noqa: F401
from tests.factories import (
    create_finding,
    create_review,
    create_run,
    create_submission,
    create_task,
    create_token,
    create_user,
)

pytestmark = pytest.mark.django_db

SPEC = "docs/SPEC.md"
TEXT = """\
# Webhooks

## 4 Delivery

### 4.3 Retries

A failed delivery is retried after a fixed delay.

### 4.4 Order

Deliveries keep their order.
"""
WORDS = "Wait between calls, doubling up to an hour."


@pytest.fixture
def lea(world: World) -> User:
    user = create_user("lea", first_name="Lea", last_name="Lindt")
    world.project.memberships.create(user=user, role="triager")
    Project.objects.filter(pk=world.project.pk).update(
        settings=world.project.settings | {"specification": SPEC}
    )
    world.project.refresh_from_db()
    world.remote.push({SPEC: TEXT})
    return user


def disputed(project: Project, **kwargs: Any) -> Conflict:
    task = create_task(project, status="disputed", round=1)
    submission = create_submission(task)
    finding = create_finding(
        create_review(submission), title='"retried after a fixed\ndelay" hammers merchants.'
    )
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "severity": "high",
        "finding": finding, "submission": submission, "question": "Back off, or retry at once?",
        "reviewer_position": "Back off.", "coder_position": "The limiter bounds it.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, **given)


def asked(conflict: Conflict, user: User, text: str = WORDS) -> Amendment:
    decision = rulings.decide(conflict, "other", user=user, text=text, rationale="Their limits.")
    return amendments.ask(decision, user=user)


def drafted(amendment: Amendment) -> Amendment:
    """As it is after the host's next turn."""
    for one in amending.due():
        amending.advance(one)
    return Amendment.objects.select_related("task", *amending.WITH).get(pk=amendment.pk)


def landed(amendment: Amendment) -> Task:
    """Carry the approved commit to the remote, as the loop and its host do."""
    submission = Submission.objects.select_related("task__project").get(task=amendment.task)
    submissions.keep(submission, None)
    for _ in range(3):
        orchestrator.tick()
    rows = Landing.objects.select_related("project", "task__project", "task__section", "submission")
    for _ in range(3):
        for landing in rows.filter(task=amendment.task, status__in=Landing.LIVE):
            landings.advance(landing, "test-host")
    return Task.objects.get(pk=amendment.task_id)


def test_a_ruling_amends_the_specification_once_a_person_approved_it(
    client: Client, world: World, lea: User
) -> None:
    conflict = disputed(world.project)
    client.force_login(lea)
    typed = {
        "conflict": conflict.ref,
        "option": "other",
        "text": WORDS,
        "rationale": "Their limits.",
        "amend": "1",
    }
    assert f"Draft the amendment of {SPEC}" in client.get(f"/queue/{conflict.dispute.ref}/").content.decode()
    client.post(f"/queue/{conflict.dispute.ref}/decide/", typed)
    amendment = Amendment.objects.get()
    address = f"/queue/amendments/{amendment.pk}/"
    assert "A host is drafting it." in client.get(address).content.decode()

    head = world.remote.head()
    amendment = drafted(amendment)
    assert (amendment.state, amendment.section) == ("drafted", "4.3 Retries")
    assert world.remote.head() == head
    page = client.get(address).content.decode()
    assert WORDS in page
    assert "Approve and land" in page
    assert f'href="{address}"' in client.get(f"/queue/{conflict.dispute.ref}/").content.decode()

    client.post(f"{address}approve/", {"version": amendment.version})
    amendment.refresh_from_db()
    assert amendment.task is not None
    assert amendment.task.origin == Task.Origin.AMENDMENT
    task = landed(amendment)
    assert (task.status, task.landed_sha, world.remote.head()) == ("completed", amendment.sha, amendment.sha)
    assert not Run.objects.exclude(role=Run.Role.VERIFIER).exists()
    said = git(world.remote.path, "show", f"main:{SPEC}")
    own = said.partition("### 4.3 Retries")[2].partition("### 4.4 Order")[0]
    head = f"**Ruling {conflict.dispute.ref}, {conflict.ref}** ({timezone.now():%Y-%m-%d}, Lea Lindt)"
    assert own.strip().splitlines() == [
        "A failed delivery is retried after a fixed delay.", "",
        f"> {head}: Back off, or retry at once?", ">", f"> {WORDS}", ">", "> Why: Their limits.",
    ]  # fmt: skip
    assert said.endswith("### 4.4 Order\n\nDeliveries keep their order.")
    message = git(world.remote.path, "log", "-1", "--format=%B", "main")
    assert f"Ruling: {conflict.dispute.ref} ({conflict.ref})" in message
    assert "landed it as" in client.get(address).content.decode()
    assert ": landed." in client.get(f"/queue/{conflict.dispute.ref}/").content.decode()
    kinds = Event.objects.filter(kind__startswith="amendment_").order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["amendment_asked", "amendment_drafted", "amendment_approved"]


def test_another_host_lands_exactly_the_commit_that_was_approved(world: World, lea: User) -> None:
    amendment = drafted(asked(disputed(world.project), lea))
    amendments.approve(amendment, seen=amendment.version, user=lea)
    world.lose_mirror()
    assert landed(drafted(amendment)).landed_sha == amendment.sha


def test_a_specification_that_moved_on_is_amended_anew(world: World, lea: User) -> None:
    amendment = drafted(asked(disputed(world.project), lea))
    amendments.approve(amendment, seen=amendment.version, user=lea)
    world.remote.push({SPEC: TEXT.replace("after a fixed delay.", "after a fixed\ndelay of a minute.")})
    task = landed(amendment)
    assert (task.status, task.landed_at) == ("in_progress", None)
    orchestrator.tick()
    assert not Run.objects.filter(role=Run.Role.CODER).exists()
    drafted(amendment)
    amendment = drafted(amendment)
    assert (amendment.state, amendment.task, amendment.section) == ("drafted", None, "4.3 Retries")
    assert amendment.problem
    assert Task.objects.get(pk=task.pk).status == "cancelled"
    amendments.approve(amendment, seen=amendment.version, user=lea)
    assert landed(drafted(amendment)).landed_at
    assert "of a minute." in git(world.remote.path, "show", f"main:{SPEC}")


def test_words_are_edited_dropped_and_approved_as_they_were_seen(
    client: Client, world: World, lea: User
) -> None:
    conflict = disputed(world.project)
    amendment = drafted(asked(conflict, lea))
    address, seen = f"/queue/amendments/{amendment.pk}/", amendment.version
    client.force_login(lea)
    client.post(f"{address}reword/", {"version": seen, "words": "Retry *slowly*."})
    for verb in ("approve", "drop", "reword"):
        late = client.post(f"{address}{verb}/", {"version": seen, "words": "Late."})
        assert late.status_code == 409, verb
        assert "has changed since you looked at it" in late.content.decode()
    amendment = drafted(amendment)
    assert "+Retry *slowly*." in amendment.diff
    assert "Ruling:" in git(world.mirror.path, "log", "-1", "--format=%B", amendment.sha)

    # Once the ruling is taken back nothing of it is approved; dropped, it may be asked for again.
    with pytest.raises(Refused, match="already"):
        amendments.ask(amendment.decision, user=lea)
    rulings.undo(Decision.objects.get(), user=lea)
    with pytest.raises(Refused, match="taken back"):
        amendments.approve(amendment, seen=amendment.version, user=lea)
    client.post(f"{address}drop/", {"version": amendment.version})
    assert Amendment.objects.get().state == "dropped"
    assert not Task.objects.filter(origin=Task.Origin.AMENDMENT).exists()
    again = asked(Conflict.objects.get(pk=conflict.pk), lea)
    assert again.state == "asked"


def test_what_cannot_be_amended_says_why(world: World, lea: User) -> None:
    def problem(files: dict[str, str | None], *, link: bool = False) -> str:
        world.remote.push(files)
        amendment = drafted(asked(disputed(world.project), lea))
        assert amendment.state == "failed"
        return amendment.problem

    assert problem({SPEC: None}) == f"There is no file {SPEC} on main."
    assert "a fence that line 3 opens" in problem({SPEC: "# A\n\n```\nopen\n"})
    assert "cannot be read" in problem({SPEC: "x" * 300_000})
    Project.objects.filter(pk=world.project.pk).update(settings={})
    with pytest.raises(Refused, match="names no specification"):
        asked(disputed(Project.objects.get(pk=world.project.pk)), lea)


# --- Over REST --------------------------------------------------------------------------------------------


def test_an_amendment_is_asked_for_looked_at_and_settled_over_rest(
    world: World, lea: User, vera: User, otto: User
) -> None:
    world.settings.URL = "https://steroids.example.org"
    world.project.memberships.create(user=vera, role="viewer")
    conflict = disputed(world.project)
    dispute = conflict.dispute.ref
    rest, viewer, outsider = (RestClient(user) for user in (lea, vera, otto))
    assert rest.post(f"disputes/{dispute}/amend/", code=422)["code"] == "not_a_ruling"
    rulings.decide(conflict, "other", user=lea, text=WORDS, rationale="Their limits.")
    assert viewer.post(f"disputes/{dispute}/amend/", code=403)["code"] == "no_right"
    outsider.post(f"disputes/{dispute}/amend/", code=404)
    asked_for = rest.post(f"disputes/{dispute}/amend/", key="one")
    assert rest.post(f"disputes/{dispute}/amend/", key="one") == asked_for
    assert rest.post(f"disputes/{dispute}/amend/", key="two", code=409)["code"] == "already_asked"
    [row] = rest.get("amendments/?state=asked")["results"]
    assert (row["id"], row["conflict"], row["path"]) == (asked_for["amendment"], conflict.ref, SPEC)
    address = f"amendments/{row['id']}/"

    amendment = drafted(Amendment.objects.get())
    told = Event.objects.get(kind="amendment_drafted")
    assert Notice.objects.filter(event=told).exists()
    message = compose(subject_of(told))
    assert "waits for approval" in message.lines[0]
    assert message.url.endswith(f"/queue/amendments/{amendment.pk}/")
    shown = viewer.get(address)
    assert (shown["sha"], shown["section"], shown["stands"]) == (
        amendment.sha, "4.3 Retries", "Waits for approval"
    )  # fmt: skip
    assert WORDS in shown["diff"]
    outsider.get(address, code=404)
    assert outsider.get("amendments/")["results"] == []
    for verb in ("approve", "drop", "reword"):
        body = {"version": shown["version"], "words": "Other words."}
        assert viewer.post(f"{address}{verb}/", body, code=403)["code"] == "no_right"
        outsider.post(f"{address}{verb}/", body, code=404)
        run = RestClient(lea, secret=secret_of_run(world))
        assert run.post(f"{address}{verb}/", body, code=403)["code"] == "wrong_role"
    assert rest.post(f"{address}approve/", {"version": 0}, code=409)["code"] == "moved_on"
    assert "version" in str(rest.post(f"{address}approve/", code=422))

    rest.post(f"{address}reword/", {"version": shown["version"], "words": "Wait an hour."}, key="three")
    amendment = drafted(amendment)
    assert "Wait an hour." in amendment.diff
    stale = {"version": shown["version"]}
    assert rest.post(f"{address}approve/", stale, code=409)["code"] == "moved_on"
    now = {"version": rest.get(address)["version"]}
    approved = rest.post(f"{address}approve/", now, key="four")
    assert rest.post(f"{address}approve/", now, key="four") == approved
    assert Task.objects.filter(origin=Task.Origin.AMENDMENT).count() == 1
    amendment.refresh_from_db()
    assert landed(amendment).landed_sha == amendment.sha
    assert rest.get(address)["stands"] == "Landed"


class RestClient:
    """A script with a token; each call says which status it expects."""

    def __init__(self, user: User, secret: str = "") -> None:
        self.client = APIClient()
        self.client.credentials(
            HTTP_AUTHORIZATION=f"Bearer {secret or create_token(user, f'script-{user.pk}-{token_hex(4)}')[1]}"
        )

    def get(self, path: str, code: int = 200) -> Any:
        reply = self.client.get(f"/api/v1/{path}")
        assert reply.status_code == code, reply.content
        return reply.json()

    def post(self, path: str, body: Any = None, *, key: str = "", code: int = 200) -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        reply = self.client.post(f"/api/v1/{path}", body or {}, format="json", headers=headers)
        assert reply.status_code == code, reply.content
        return reply.json()


def secret_of_run(world: World) -> str:
    secret = new_token()
    create_run(world.task(status="in_progress", round=1), "coder", token_hash=token_hash(secret))
    return str(secret)


def test_the_commit_of_a_draft_that_was_dropped_goes_after_a_while(world: World, lea: User) -> None:
    amendment = drafted(asked(disputed(world.project), lea))
    refs = [f"refs/steroids/amendments/{amendment.pk}"]
    Amendment.objects.update(asked_at=timezone.now() - timedelta(days=60))
    retention.prune_host()
    assert world.mirror.refs("refs/steroids/amendments/") == refs  # it waits for a person
    amendments.drop(amendment, seen=amendment.version, user=lea)
    retention.prune_host()
    assert world.mirror.refs("refs/steroids/amendments/") == []

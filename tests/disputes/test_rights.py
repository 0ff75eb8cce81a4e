"""Each address of the disputes, by each kind of caller: who reads, who rules, who learns nothing (C2)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from agents.models import new_token, token_hash
from disputes import opening, rulings
from disputes.models import Conflict, Dispute
from tasks.models import Finding, Project
from tests.asking import every_row
from tests.cases import for_each
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


class Scene:
    """A dispute with a ruled and an open conflict, and what its forms name."""

    def __init__(self, project: Project, ruler: User) -> None:
        task = create_task(project, number=7, status="disputed", round=2)
        review = create_review(create_submission(task, round=1))
        self.task, self.submission = task, create_submission(task, round=2)
        self.ruled = self.open(create_finding(review))
        earlier = create_finding(review)
        self.conflict = self.open(create_finding(review, possibly=earlier))
        self.decision = rulings.decide(self.ruled, "uphold_reviewer", user=ruler)
        self.ref = self.conflict.dispute.ref

    def open(self, finding: Finding) -> Conflict:
        return opening.open_conflict(
            self.task, kind="disagreement", origin="disagree", opened_as="coder", question=finding.title,
            finding=finding, submission=self.submission, reviewer_position="Wait.", coder_position="No.",
        )  # fmt: skip

    @property
    def named(self) -> dict[str, str]:
        finding = self.conflict.finding
        return {"conflict": self.conflict.ref, "finding": finding.code if finding else ""}


@pytest.fixture
def scene(ledger: Project, lea: User) -> Scene:
    return Scene(ledger, lea)


@pytest.fixture
def before(scene: Scene) -> dict[str, list[Any]]:
    """The rows that every case of a table begins with."""
    return rows()


def rows() -> dict[str, list[Any]]:
    """Every row of ours but the tokens, which remember when they were used, and who holds a claim."""
    Dispute.objects.update(claimed_by=None, claimed_until=None)
    return every_row("tasks", "disputes")


CAST = "maintainer triager viewer outsider guest nobody"
# 302: to where it goes on, or (for guest and nobody) to the login of the admin.
PAGES = """
queue                  200 200 200 200 302 302
queue-team             200 200 200 200 302 302
queue-waiting          200 200 200 200 302 302
queue-settled          200 200 200 200 302 302
dispute                200 200 200 404 302 302
dispute-diff           200 200 200 404 302 302
dispute-dispute.md     200 200 200 404 302 302
dispute-decisions.md   200 200 200 404 302 302
project-dispute.md     200 200 200 404 302 302
project-decisions.md   200 200 200 404 302 302
dispute-preview        200 200 403 404 302 302
dispute-decide         302 302 403 404 302 302
dispute-severity       302 302 403 404 302 302
dispute-same           302 302 403 404 302 302
dispute-synthesis      302 302 403 404 302 302
decision-undo          302 403 403 404 302 302
decision-reopen        302 302 403 404 302 302
"""
FORMS: dict[str, Callable[[Scene], dict[str, str]]] = {
    "dispute-preview": lambda scene: {**scene.named, "option": "uphold_coder"},
    "dispute-decide": lambda scene: {**scene.named, "option": "uphold_coder"},
    "dispute-severity": lambda scene: {**scene.named, "severity": "low", "reason": "It is taste."},
    "dispute-same": lambda scene: {**scene.named, "same": "no"},
    "dispute-synthesis": lambda scene: {**scene.named, "synthesis": "Half of it."},
    "decision-undo": lambda scene: {},
    "decision-reopen": lambda scene: {"reason": "It was wrong."},
}
LINES = [line.split() for line in PAGES.strip().splitlines()]
CELLS = [
    (name, who, int(status))
    for name, *statuses in LINES
    for who, status in zip(CAST.split(), statuses, strict=True)
]


def address(name: str, scene: Scene) -> str:
    what = name.partition("-")[2]
    if name.startswith("queue"):
        return f"/queue/{what}/" if what else "/queue/"
    if name.startswith("decision-"):
        return f"/queue/decisions/{scene.decision.pk}/{what}/"
    if name.startswith("project-"):
        return f"/queue/records/ledger/{what}"
    slash = "" if not what or what.endswith(".md") else "/"
    return f"/queue/{scene.ref}/{what}{slash}"


@pytest.fixture
def cast(lea: User, tom: User, vera: User, otto: User) -> dict[str, User | None]:
    guest = create_user("guest", is_superuser=True)
    User.objects.filter(pk=guest.pk).update(is_staff=False)
    return {
        "maintainer": lea, "triager": tom, "viewer": vera, "outsider": otto, "guest": guest, "nobody": None,
    }  # fmt: skip


@for_each(("name", "who", "status"), CELLS)
def test_each_page_opens_to_its_people_only(
    scene: Scene, before: Any, cast: dict[str, User | None], name: str, who: str, status: int
) -> None:
    client = Client()
    if user := cast[who]:
        client.force_login(user)
    if form := FORMS.get(name):
        reply = client.post(address(name, scene), form(scene))
    else:
        reply = client.get(address(name, scene))
    assert reply.status_code == status
    to_login = status == 302 and reply["Location"].startswith("/admin/login/")
    assert to_login == (who in {"guest", "nobody"})
    changed = status == 302 and not to_login
    assert (rows() != before) == changed
    if status == 404:
        assert "Wait." not in reply.content.decode()


@for_each("name", FORMS)
def test_what_changes_something_is_never_a_get(client: Client, scene: Scene, lea: User, name: str) -> None:
    client.force_login(lea)
    assert client.get(address(name, scene)).status_code == 405


@for_each("name", FORMS)
def test_another_site_cannot_send_the_form(scene: Scene, before: Any, lea: User, name: str) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(lea)
    assert strict.post(address(name, scene), FORMS[name](scene)).status_code == 403
    assert rows() == before


# --- REST -------------------------------------------------------------------------------------------------

REST_CAST = "maintainer triager viewer outsider coder reviewer nobody"
REST = """
list       200 200 200 200 200 200 401
show       200 200 200 404 200 200 401
resolve    200 200 403 404 403 403 401
synthesis  200 200 403 404 403 403 401
"""
BODIES: dict[str, dict[str, Any]] = {
    "resolve": {"decision": "coder"},
    "synthesis": {"text": "Half of it."},
}
REST_CELLS = [
    (verb, who, int(status))
    for verb, *statuses in [line.split() for line in REST.strip().splitlines()]
    for who, status in zip(REST_CAST.split(), statuses, strict=True)
]


def token_of(who: str, scene: Scene, cast: dict[str, User | None]) -> str:
    if who in {"coder", "reviewer"}:
        secret = new_token()
        create_run(scene.task, who, token_hash=token_hash(secret))
        return secret
    user = cast[who]
    return create_token(user, "laptop")[1] if user else ""


@for_each(("verb", "who", "status"), REST_CELLS)
def test_each_verb_takes_its_callers_only(
    scene: Scene, cast: dict[str, User | None], verb: str, who: str, status: int
) -> None:
    client = APIClient()
    if secret := token_of(who, scene, cast):
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    before = rows()
    if verb == "list":
        reply = client.get("/api/v1/disputes/")
    elif verb == "show":
        reply = client.get(f"/api/v1/disputes/{scene.ref}/")
    else:
        reply = client.post(f"/api/v1/disputes/{scene.conflict.ref}/{verb}/", BODIES[verb], format="json")
    assert reply.status_code == status
    assert (rows() != before) == (verb in BODIES and status == 200)
    if verb == "list" and who == "outsider":
        assert reply.json()["results"] == []

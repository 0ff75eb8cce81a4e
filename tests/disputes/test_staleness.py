"""One rule for what is stale, the project's: over REST, in the queue, on its rows and in the figures."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from disputes import opening, staleness
from disputes.models import Dispute
from disputes.web.insights.summary import open_now
from tasks.models import Project
from tests.factories import create_project, create_task, create_token

pytestmark = pytest.mark.django_db

LIMITS: dict[str, Any] = {"usual": {}, "hasty": {"timeout_days": 2}, "patient": {"timeout_days": 30}}


def waiting(project: Project, days: float) -> Dispute:
    task = create_task(project, status="disputed")
    conflict = opening.open_conflict(
        task, kind="disagreement", origin="cli", opened_as="human", question=f"{project.slug} {days}",
        reviewer_position="This.", coder_position="That.",
    )  # fmt: skip
    Dispute.objects.filter(pk=conflict.dispute_id).update(opened_at=timezone.now() - timedelta(days=days))
    return Dispute.objects.get(pk=conflict.dispute_id)


@pytest.fixture
def projects(tom: User) -> list[Project]:
    return [
        create_project(slug, members={tom: "triager"}, settings=settings) for slug, settings in LIMITS.items()
    ]


@pytest.fixture
def stale(projects: list[Project]) -> set[str]:
    """The refs of those that are stale, among others that are not yet."""
    found = set()
    for project, limit in zip(projects, (7, 2, 30), strict=True):
        waiting(project, limit - 0.1)
        found.add(waiting(project, limit + 0.1).ref)
    return found


def test_each_project_says_when_a_dispute_is_stale_everywhere(
    client: Client, tom: User, projects: list[Project], stale: set[str]
) -> None:
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(tom, 'script')[1]}")
    reply = api.get("/api/v1/disputes/?stale=1").json()
    assert {row["ref"] for row in reply["results"]} == stale
    assert reply["stale_after_days"] is None
    of_one = api.get("/api/v1/disputes/?stale=1&project=hasty").json()
    assert (of_one["count"], of_one["stale_after_days"]) == (1, 2)
    client.force_login(tom)
    rows = client.get("/queue/", {"age": "stale"}).context["rows"]
    assert {row.dispute.ref for row in rows} == stale
    marked = [row for row in client.get("/queue/").context["rows"] if row.is_stale]
    assert {row.dispute.ref for row in marked} == stale
    assert open_now(projects).stale == len(stale)


def test_a_limit_that_was_edited_past_every_check_is_the_usual_one(projects: list[Project]) -> None:
    late, early = waiting(projects[1], 8), waiting(projects[1], 6)
    for broken in ("soon", True, 0, None, [2]):
        Project.objects.filter(slug="hasty").update(settings={"timeout_days": broken})
        assert set(Dispute.objects.filter(staleness.stale())) == {late}, broken
        early.project.refresh_from_db()
        assert not staleness.is_stale(early)


def test_what_is_ruled_is_not_stale(projects: list[Project], stale: set[str]) -> None:
    Dispute.objects.update(status="ruled")
    assert not Dispute.objects.filter(staleness.stale()).exists()
    assert not any(staleness.is_stale(dispute) for dispute in Dispute.objects.all())


def test_only_projects_with_a_limit_of_their_own_are_read(projects: list[Project], stale: set[str]) -> None:
    for number in range(5):
        create_project(f"more-{number}")
    with CaptureQueriesContext(connection) as queries:
        found = Dispute.objects.filter(staleness.stale())
        assert len(found) == 3
    assert len(queries) == 2

"""What there is of projects, for lists: where each lies, and how its tasks stand."""

import re
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Count

from tasks.models import Membership, Project, Task
from tasks.text.regex import regex

_SECRET = regex(r"^([a-z][a-z0-9+.-]*://)[^/@]*@", re.IGNORECASE)


def address_of(project: Project) -> str:
    """Where its repository lies, without the name and key that an http address may hold."""
    if not project.repo_url.lower().startswith("http"):
        return project.repo_url
    return _SECRET.sub(r"\1", project.repo_url)


def counts_of(projects: Iterable[Project]) -> dict[int, dict[str, int]]:
    """How many tasks of each status a project has, by the project's key. One query."""
    keys = [project.pk for project in projects]
    rows = Task.objects.filter(project__in=keys).order_by().values_list("project", "status")
    found: dict[int, dict[str, int]] = {key: {} for key in keys}
    for project, status, count in rows.annotate(count=Count("pk")):
        found[project][status] = count
    return found


def counts_line(counts: dict[str, int]) -> str:
    """3 in progress, 12 pending; or no tasks."""
    told = [f"{count} {status.replace('_', ' ')}" for status, count in sorted(counts.items())]
    return ", ".join(told) or "no tasks"


def adopt(users: Iterable[Any]) -> list[Project]:
    """Make these people maintainers and leads of every project without members; the projects.

    A project may be added before there is any account. Then nobody would be told of its cards.
    """
    people = list(users)
    with transaction.atomic():
        alone = list(Project.objects.filter(memberships__isnull=True).order_by("slug")) if people else []
        Membership.objects.bulk_create(
            (
                Membership(project=project, user=user, role=Membership.Role.MAINTAINER, is_lead=True)
                for project in alone
                for user in people
            ),
            ignore_conflicts=True,
        )
    return alone

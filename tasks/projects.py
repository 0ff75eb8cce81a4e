"""Facts about projects for lists of them: a project's URL and the counts of its tasks."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Count

from tasks.models import Membership, Project, Task


def counts_of(projects: Iterable[Project]) -> dict[int, dict[str, int]]:
    """Return how many tasks of each status each project has, by the project's key, with one query."""
    keys = [project.pk for project in projects]
    rows = Task.objects.filter(project__in=keys).order_by().values_list("project", "status")
    found: dict[int, dict[str, int]] = {key: {} for key in keys}
    for project, status, count in rows.annotate(count=Count("pk")):
        found[project][status] = count
    return found


def counts_line(counts: dict[str, int]) -> str:
    """Return the counts as a line such as "3 in progress, 12 pending", or "no tasks"."""
    told = [f"{count} {status.replace('_', ' ')}" for status, count in sorted(counts.items())]
    return ", ".join(told) or "no tasks"


def adopt(users: Iterable[Any]) -> list[Project]:
    """Make these users maintainers and leads of every project without members, and return those projects.

    A project may be added before there is any account; without this, nobody would be told of its cards.
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

"""Which rows are older than their project allows, by a setting in days, and which disputes are stale."""

from collections.abc import Callable, Iterable
from datetime import timedelta

from django.db.models import Q

from disputes.models import Dispute
from tasks.configuration.policy import ProjectSettings
from tasks.database.clock import estimated_time
from tasks.models import Project

Days = Callable[[ProjectSettings], int | None]  # None for never


def is_stale(dispute: Dispute) -> bool:
    """Whether the dispute has been open for more days than its project allows."""
    limit = estimated_time() - timedelta(days=dispute.project.config.timeout_days)
    return dispute.status == Dispute.Status.OPEN and dispute.opened_at < limit


def stale(projects: Iterable[Project] | None = None) -> Q:
    """Return a filter for stale disputes, in these projects or in all."""
    opened = Q(status=Dispute.Status.OPEN)
    return opened & too_old("timeout_days", lambda config: config.timeout_days, "opened_at", projects)


def too_old(
    key: str, days_of: Days, at: str, projects: Iterable[Project] | None = None, path: str = "project"
) -> Q:
    """Return a filter for rows whose time `at` is further back than the setting allows.

    `path` leads from the rows to their project. Without `projects`, one query reads the projects that have
    set `key`.
    """
    if projects is None:
        projects = Project.objects.filter(settings__has_key=key).only("settings")
    default = days_of(ProjectSettings())
    own: dict[int | None, list[int]] = {}
    for project in projects:
        days = days_of(project.config)
        if days != default:
            own.setdefault(days, []).append(project.pk)
    found = _before(at, default)
    if own:
        found &= ~Q(**{f"{path}__in": [pk for keys in own.values() for pk in keys]})
    for days, keys in own.items():
        found |= Q(**{f"{path}__in": keys}) & _before(at, days)
    return found


def _before(at: str, days: int | None) -> Q:
    if days is None:
        return Q(pk__in=[])
    return Q(**{f"{at}__lt": estimated_time() - timedelta(days=days)})

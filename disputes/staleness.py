"""Which disputes have been open for too long: each project says after how many days (`timeout_days`)."""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from disputes.models import Dispute
from tasks.configuration.policy import ProjectSettings
from tasks.models import Project

KEY = "timeout_days"


def days_of(project: Project) -> int:
    """The days that this project bears; of a broken row what can be used."""
    return ProjectSettings.salvaged(project.settings)[0].timeout_days


def is_stale(dispute: Dispute) -> bool:
    """Whether it is open for more days than its project bears."""
    limit = timezone.now() - timedelta(days=days_of(dispute.project))
    return dispute.status == Dispute.Status.OPEN and dispute.opened_at < limit


def stale(projects: Iterable[Project] | None = None) -> Q:
    """The same for a query on disputes, of these projects or of all: reads only those with an own limit."""
    if projects is None:
        projects = Project.objects.filter(settings__has_key=KEY).only("settings")
    default = ProjectSettings().timeout_days
    limits: dict[int, list[int]] = {}
    for project in projects:
        if (days := days_of(project)) != default:
            limits.setdefault(days, []).append(project.pk)
    now = timezone.now()
    others = ~Q(project__in=[key for keys in limits.values() for key in keys]) if limits else Q()
    too_old = others & Q(opened_at__lt=now - timedelta(days=default))
    for days, keys in limits.items():
        too_old |= Q(project__in=keys, opened_at__lt=now - timedelta(days=days))
    return Q(status=Dispute.Status.OPEN) & too_old

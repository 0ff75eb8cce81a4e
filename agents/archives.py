"""The commits of rounds that were taken back, and which of them a project keeps for good (RB-10)."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from tasks.configuration.policy import ProjectSettings
from tasks.models import Project, Rollback, Submission


def let_go_at_once() -> QuerySet[Submission]:
    """Those that go as soon as their project has ended, unless they are kept."""
    ended = Submission.objects.filter(rolled_back__isnull=False, task__project__exit_at__isnull=False)
    return ended.filter(task__project__in=_choosing("delete", "recent"))


def kept() -> QuerySet[Submission]:
    """Those whose commits the project keeps for good: all of them, or of each task's last rollback."""
    later = Rollback.objects.filter(task=OuterRef("task"), pk__gt=OuterRef("rolled_back"))
    recent = Q(task__project__in=_choosing("recent")) & ~Exists(later)
    taken_back = Submission.objects.filter(rolled_back__isnull=False)
    return taken_back.filter(Q(task__project__in=_choosing("keep")) | recent)


def _choosing(*choices: str) -> list[int]:
    """The projects that chose so; most leave it at the default."""
    rows = Project.objects.filter(settings__has_key="rollback_archives").values_list("pk", "settings")
    configs = ((pk, ProjectSettings.salvaged(settings)[0]) for pk, settings in rows)
    return [pk for pk, config in configs if config.rollback_archives in choices]

"""Which commits are no longer needed, and which of rolled-back rounds a project keeps for good (RB-10)."""

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Run
from disputes.models import Dispute
from tasks.models import Landing, Project, Rollback, Submission, Task
from tasks.states import Status

UNFINISHED = (Status.PENDING, Status.IN_PROGRESS, Status.DEFERRED)  # the coder can start over


def over(before: datetime) -> QuerySet[Task]:
    """Return the tasks that were over before the given time, so that nothing more is done with their commits.

    These have landed, were cancelled or were finished by hand, or are unfinished tasks of a project that
    ended. A task of the last two kinds is left out if something is under way on it, or if it is about
    documents, which grow from round to round.
    """
    gone = Q(landed_at__lt=before) | Q(status=Status.CANCELLED, status_at__lt=before)
    by_hand = Q(status=Status.COMPLETED, finished_by="hand", status_at__lt=before)
    left = Q(project__exit_at__lt=before, status__in=UNFINISHED)
    code = ~Q(project__kind=Project.Kind.DOCUMENTS)
    of_task = {"task": OuterRef("pk")}
    is_under_way = (
        Exists(Run.objects.live().filter(**of_task))
        | Exists(Landing.objects.filter(**of_task, status__in=Landing.LIVE))
        | Exists(Submission.objects.filter(**of_task, state=Submission.State.RECEIVED))
        | Exists(Dispute.objects.live().filter(**of_task))
    )
    return Task.objects.filter(gone | ((by_hand | left) & code & ~is_under_way))


def let_go(before: datetime) -> QuerySet[Submission]:
    """Return the submissions whose commits need not be kept.

    They belong to tasks that are over, or to rounds that were rolled back in projects that ended, unless
    the project keeps them.
    """
    of_ended = Q(task__project__exit_at__lt=before, rolled_back__isnull=False)
    found = Submission.objects.filter(
        Q(task__in=over(before)) | of_ended | Q(pk__in=let_go_at_once().values("pk"))
    )
    return found.exclude(pk__in=kept().values("pk"))


def let_go_at_once() -> QuerySet[Submission]:
    """Return the rolled-back submissions that go as soon as their project has ended, unless they are kept."""
    ended = Submission.objects.filter(rolled_back__isnull=False, task__project__exit_at__isnull=False)
    return ended.filter(task__project__in=_choosing("delete", "recent"))


def kept() -> QuerySet[Submission]:
    """Return the rolled-back submissions whose commits the project keeps for good.

    As the project chose, these are all of them or only those of each task's last rollback.
    """
    later = Rollback.objects.filter(task=OuterRef("task"), pk__gt=OuterRef("rolled_back"))
    recent = Q(task__project__in=_choosing("recent")) & ~Exists(later)
    taken_back = Submission.objects.filter(rolled_back__isnull=False)
    return taken_back.filter(Q(task__project__in=_choosing("keep")) | recent)


def _choosing(*choices: str) -> list[int]:
    """Return the keys of the projects that set `rollback_archives` to one of these; most keep the default."""
    rows = Project.objects.filter(settings__has_key="rollback_archives").only("settings")
    return [project.pk for project in rows if project.config.rollback_archives in choices]

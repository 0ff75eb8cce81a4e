"""Pushing the work of held tasks to branches of their own, if the project chose that (DIS-3).

The branch names the task and the commit, is never forced, and holds exactly the commit that is disputed. A
host has kept that commit, but it may be neither built nor reviewed.
"""

import logging
from collections import defaultdict
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, Q, Subquery

from agents.hosts import paths, submissions
from agents.hosts.git.commands import GitError
from agents.hosts.git.mirror import Mirror
from disputes.models import Conflict
from tasks.configuration.policy import KEEP
from tasks.database.clock import estimated_time
from tasks.models import Project, Submission
from tasks.models.event import record
from tasks.states import Status

log = logging.getLogger(__name__)


def branch_of(submission: Submission) -> str:
    """Return the branch of the remote for this commit, such as disputed/ledger-214-0c5ae1f2."""
    return f"disputed/{submission.task.ref}-{submission.sha[:8]}"


def due(by: datetime | None = None) -> list[Submission]:
    """Return the newest work of each task held by disagreements whose work the project wants pushed aside.

    This takes two queries. Work that was already pushed, or tried just now, is left out.
    """
    rested = (by or estimated_time()) - timedelta(seconds=settings.DURATIONS["backoff_max"])
    newest = Submission.objects.standing().filter(task=OuterRef("task")).newest_first().values("pk")[:1]
    rows = Submission.objects.filter(
        Q(aside_at__isnull=True) | Q(aside_at__lte=rested),
        task__status=Status.DISPUTED, task__accepted__isnull=True,
        task__project__status=Project.Status.ACTIVE, task__project__settings__has_key="disputed_work",
        state__in=[Submission.State.KEPT, Submission.State.VERIFIED], aside_branch="", pk=Subquery(newest),
    ).exclude(sha="")  # fmt: skip
    rows = rows.defer("diff", "specification", "response", "since_last_round")
    waiting = list(rows.select_related("task__project", "task__section").order_by("pk"))
    held: dict[int | None, list[Conflict]] = defaultdict(list)
    conflicts = Conflict.objects.open().holding().select_related("dispute")
    for conflict in conflicts.filter(dispute__task__in=[row.task_id for row in waiting]) if waiting else ():
        held[conflict.dispute.task_id].append(conflict)
    return [row for row in waiting if _is_wanted(row.task.project, held[row.task_id])]


def _is_wanted(project: Project, held: list[Conflict]) -> bool:
    """Whether nothing holds the task but disagreements of severities whose work is pushed."""
    goes = project.config.disputed_work
    return bool(held) and all(
        each.kind == Conflict.Kind.DISAGREEMENT and goes[each.severity] != KEEP for each in held
    )


def push(submission: Submission) -> str:
    """Push the work to its branch and record that; return the branch, or "" if it was not pushed."""
    now = estimated_time()
    mine = Submission.objects.filter(pk=submission.pk, aside_branch="").filter(
        Q(aside_at__isnull=True) | Q(aside_at=submission.aside_at)
    )
    if not mine.update(aside_at=now):
        return ""  # another host is doing it
    branch, project = branch_of(submission), submission.task.project
    main = paths.mirror(project)
    try:
        submissions.bring_here(submission, main)
        Mirror(main.path, main.url, branch, main.network).push(submission.sha)
    except GitError as error:
        log.warning("%s cannot be pushed to %s: %s", submission.task.ref, branch, error)
        Submission.objects.filter(pk=submission.pk).update(aside_problem=str(error)[:500])
        return ""
    with transaction.atomic():
        Submission.objects.filter(pk=submission.pk).update(aside_branch=branch, aside_problem="")
        record(
            project, "pushed_aside", task=submission.task, note=f"{submission.sha[:12]} to {branch}",
            data={"sha": submission.sha, "branch": branch},
        )  # fmt: skip
    return branch

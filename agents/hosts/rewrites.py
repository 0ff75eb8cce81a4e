"""A target branch that was rewritten: what had landed may be gone from it, and people are told.

Rows say what landed, and the last of it stands on all before. So only the newest ones are asked for as long
as they are there; a few, for one that was noticed late stands below others.
"""

from typing import Any

from django.db import transaction
from django.db.models import Expression, QuerySet
from django.utils import timezone

from agents.hosts.git.mirror import Mirror
from disputes import alerts
from tasks.locking import locked, repeated
from tasks.models import Landing, Project
from tasks.models.event import record
from tasks.models.prepared import Prepared

LOOKED_AT = 500  # landings of one branch
ENOUGH = 3  # of the newest ones on the branch, and all before are as well


def look(project: Project, mirror: Mirror, head: str) -> None:
    """Whether what landed is on the branch, whose head was just fetched. Raises GitError, Unreachable."""
    if not all(_holds(mirror, head, sha) for (sha,) in _newest.rows(project.pk, mirror.branch)):
        _find_gone(project, mirror)
    if any(_holds(mirror, head, sha) for (sha,) in _last_gone.rows(project.pk, mirror.branch)):
        _find_returned(project, mirror, head)


def _landed(project: Project, mirror: Mirror) -> QuerySet[Landing]:
    return _on(project.pk, mirror.branch).select_related("task__project")


def _on(project: Any, branch: Any) -> QuerySet[Landing]:
    """What landed on a project's branch, the newest first."""
    rows = Landing.objects.filter(project=project, target=branch, status=Landing.Status.LANDED)
    return rows.filter(landed_at__isnull=False).order_by("-landed_at", "-pk")


def _standing(project: Expression, branch: Expression) -> QuerySet[Landing]:
    return _on(project, branch).filter(gone_at__isnull=True).values_list("sha")[:ENOUGH]


def _gone(project: Expression, branch: Expression) -> QuerySet[Landing]:
    return _on(project, branch).filter(gone_at__isnull=False).values_list("sha")[:1]


_newest, _last_gone = Prepared(_standing), Prepared(_gone)


def _holds(mirror: Mirror, head: str, sha: str) -> bool:
    return sha == head or mirror.contains(head, sha)


def _find_gone(project: Project, mirror: Mirror) -> None:
    """Fetch once more, now that the rows are read: a head from before the last landing says nothing."""
    rows = list(_landed(project, mirror).filter(gone_at__isnull=True)[:LOOKED_AT])
    head = mirror.fetch_target()
    gone: list[Landing] = []
    held = 0
    for landing in rows:
        if _holds(mirror, head, landing.sha):
            held += 1
            if held == ENOUGH:
                break
            continue
        held = 0
        gone.append(landing)
        if mirror.has(landing.sha):
            mirror.keep(landing.sha, f"refs/steroids/dropped/{landing.sha}")
    _tell(project, mirror.branch, head, gone)


@repeated
def _tell(project: Project, branch: str, head: str, gone: list[Landing]) -> None:
    """Mark them, once whoever notices, with an event and a card."""
    with transaction.atomic():
        locked(Project.objects).get(pk=project.pk)
        new = [
            landing for landing in gone
            if Landing.objects.filter(pk=landing.pk, gone_at__isnull=True).update(gone_at=timezone.now())
        ]  # fmt: skip
        if not new:
            return
        count = "One landing is" if len(new) == 1 else f"{len(new)} landings are"
        said = f"{branch} of {project.name} was rewritten. {count} not on it any more."
        record(
            project, "landed_work_gone", note=said,
            data={"head": head, "landings": [landing.sha for landing in new]},
        )  # fmt: skip
        lines = [f"{each.task.ref} {each.task.title}: {each.sha[:12]}" for each in new]
        alerts.ask_about_rewritten(project, said, evidence=[f"{branch} is at {head[:12]} now.", *lines])


@repeated
def _find_returned(project: Project, mirror: Mirror, head: str) -> None:
    """Somebody pushed it once more."""
    rows = list(_landed(project, mirror).filter(gone_at__isnull=False)[:LOOKED_AT])
    back = [landing.pk for landing in rows if _holds(mirror, head, landing.sha)]
    with transaction.atomic():
        locked(Project.objects).get(pk=project.pk)
        gone = Landing.objects.filter(project=project, gone_at__isnull=False)
        if not gone.filter(pk__in=back).update(gone_at=None):
            return
        record(project, "landed_work_back", note=f"{mirror.branch} has it again.", data={"head": head})
        if not gone.exists():
            alerts.withdraw_rewritten_card(project)

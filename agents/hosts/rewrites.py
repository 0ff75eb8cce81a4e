"""Rewritten target branches: what had landed may be gone from one, and then people are told.

Rows say what landed, and each landing contains the ones before it. So it is enough to look for the newest of
them on the branch. Several are looked for, because one that was noticed late lies below others.
"""

from typing import Any

from django.db import transaction
from django.db.models import Expression, QuerySet

from agents.hosts.git.mirror import Mirror
from disputes import alerts
from tasks.database.clock import estimated_time
from tasks.database.locking import locked, repeated
from tasks.database.prepared import Prepared
from tasks.models import Landing, Project
from tasks.models.event import record

LOOKED_AT = 500  # landings of one branch
ENOUGH = 3  # if so many of the newest are on the branch, all earlier ones are


def look(project: Project, mirror: Mirror, head: str) -> None:
    """Check that what landed is still on the branch, whose head was just fetched, and tell people if not.

    Also notice if something that was gone is back. Raises GitError and Unreachable.
    """
    if not all(_holds(mirror, head, sha) for (sha,) in _newest.rows(project.pk, mirror.branch)):
        _find_gone(project, mirror)
    if any(_holds(mirror, head, sha) for (sha,) in _last_gone.rows(project.pk, mirror.branch)):
        _find_returned(project, mirror, head)


def _landed(project: Project, mirror: Mirror) -> QuerySet[Landing]:
    return _on(project.pk, mirror.branch).select_related("task__project")


def _on(project: Any, branch: Any) -> QuerySet[Landing]:
    """Return what landed on a project's branch, newest first."""
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
    """Find the landings that are gone from the branch, and tell people.

    The head is fetched once more after the rows are read: one from before the last landing would prove
    nothing.
    """
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
    """Mark the landings as gone, and write an event and a card; only the first host to notice does so."""
    with transaction.atomic():
        locked(Project.objects).get(pk=project.pk)
        new = [
            landing for landing in gone
            if Landing.objects.filter(pk=landing.pk, gone_at__isnull=True).update(gone_at=estimated_time())
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
    """Unmark the landings that somebody has pushed again, and withdraw the card once none is missing."""
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

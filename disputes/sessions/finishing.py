"""Ending a session of documents before all gaps are settled, so that what was accepted lands."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from disputes.sessions import gaps
from tasks.access import MAINTAIN, require
from tasks.database.locking import locked
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Project, Task
from tasks.states import Status

NOTE = "Put off, so that the session comes to its end."


@dataclass(frozen=True, slots=True)
class Unlanded:
    """What a session has accepted and not landed, and the gaps that keep it going."""

    session: Task
    accepted: list[Task]
    left: list[Task]


def unlanded(project: Project) -> Unlanded | None:
    """Return what would be lost if the project ended; None if there is no session or all of it has landed."""
    session = gaps.session_of(project) if project.kind == Project.Kind.DOCUMENTS else None
    if session is None or session.landed_at:
        return None
    accepted = project.tasks.gaps().filter(
        status=Status.COMPLETED, finished_by="review", landed_at__isnull=True
    )
    if not accepted.exists():
        return None
    return Unlanded(session, list(accepted.order_by("rank")), list(session.open_gaps().order_by("rank")))


@transaction.atomic
def finish(project: Project, *, user: Any) -> Unlanded:
    """Defer the remaining gaps, so that the final review is next and then the session lands.

    Raises Refused: "no_right", "already_ended", "nothing_accepted".
    """
    project = locked(Project.objects).get(pk=project.pk)
    require(user, project, MAINTAIN, "finish a session")
    if project.exit_type:
        raise Refused("already_ended", f"{project.name} has ended already.", "Take it up again first.")
    found = unlanded(project)
    if found is None:
        raise Refused("nothing_accepted", "Nothing was accepted that has not landed.", "End the project.")
    for gap in found.left:
        gap.project = project
        gap.defer(actor=Actor.person(user), note=NOTE)
    return found

"""Writing an event: the one act that also rings the loop, and leaves a notice where people are told."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from tasks.models import Event, Project, Task


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it, in words that outlive the row of whoever it was."""

    kind: str  # person, run, agent, system, policy
    label: str
    user_id: int | None = None
    run_number: int | None = None
    model: str = ""

    @classmethod
    def person(cls, user: Any) -> "Actor":
        """A named human."""
        return cls("person", user.get_full_name() or user.get_username(), user_id=user.pk)


SYSTEM = Actor("system", "Steroids")

# Of what anybody may be told: each such event leaves a notice, which the notifications take up.
TOLD = frozenset(
    {
        "conflict_opened", "alert_opened", "ruled", "ruling_undone", "dispute_closed",
        "assigned", "commented", "nudged", "unattended", "stale",
        "trouble", "round_limit", "project_ended", "landed",
    }
)  # fmt: skip


@lru_cache(maxsize=4)
def _doorbell(path: str) -> Callable[[int], None]:
    bell: Callable[[int], None] = import_string(path)
    return bell


def record(
    project: "Project",
    kind: str,
    *,
    actor: Actor = SYSTEM,
    task: "Task | None" = None,
    old: str = "",
    new: str = "",
    note: str = "",
    data: dict[str, Any] | None = None,
) -> "Event":
    """Insert the event and the notice of it in one transaction, the caller's where there is one.

    Rings once that has committed. The rows stand then: a bell that breaks is logged, and harms nobody.
    """
    from tasks.models import Event, Notice

    with transaction.atomic(savepoint=False):
        event = Event.objects.create(
            project=project,
            task=task,
            kind=kind,
            from_status=old,
            to_status=new,
            actor_kind=actor.kind,
            user_id=actor.user_id,
            run_number=actor.run_number,
            label=actor.label[:120],
            note=note[:2000],
            data=data or {},
        )
        if kind in TOLD:
            Notice.objects.create(event=event)
    transaction.on_commit(lambda: _doorbell(settings.DOORBELL)(project.pk), robust=True)
    if kind in TOLD:
        transaction.on_commit(lambda: _doorbell(settings.NOTICE_BELL)(project.pk), robust=True)
    return event

"""Writing an event: the one act that also rings the loop, and leaves a notice where people are told."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import transaction

from tasks import hooks

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
        hooks.wake_for(event)
    transaction.on_commit(partial(hooks.ring_loop, project.pk), robust=True)
    if kind in TOLD:
        transaction.on_commit(partial(hooks.ring_notices, project.pk), robust=True)
    return event

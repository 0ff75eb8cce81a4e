"""Events, and the one function that writes them, rings the loop and leaves a notice for people."""

from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import models, transaction

from tasks import hooks
from tasks.database.clock import estimated_time
from tasks.database.prepared import PreparedInsert
from tasks.database.triggers import no_change, no_deletion
from tasks.events import SYSTEM, Actor
from tasks.models.moments import MomentField
from tasks.models.person import person
from tasks.models.project import Project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasks.models.project import Project
    from tasks.models.task import Task


AT_ONCE = 500  # rows per INSERT


class Event(models.Model):
    """Something that changed: who changed what, from which status to which, and why.

    The table is append-only, which triggers of the database enforce.
    """

    class ActorKind(models.TextChoices):
        PERSON = "person"
        RUN = "run"
        AGENT = "agent"
        SYSTEM = "system"
        POLICY = "policy"

    project = models.ForeignKey(
        "tasks.Project", on_delete=models.PROTECT, related_name="events", db_index=False
    )
    task = models.ForeignKey(
        "tasks.Task", null=True, blank=True, on_delete=models.PROTECT, related_name="events", db_index=False
    )
    kind = models.CharField(max_length=40)
    from_status = models.CharField(max_length=20, blank=True)
    to_status = models.CharField(max_length=20, blank=True)
    actor_kind = models.CharField(max_length=8, choices=ActorKind)
    user = person(on_delete=models.PROTECT)
    run_number = models.PositiveBigIntegerField(null=True, blank=True)
    label = models.CharField(max_length=120)
    note = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    at = MomentField()

    triggers = (no_change("tasks_event"), no_deletion("tasks_event"))

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["task", "-id"], name="event_by_task"),
            models.Index(fields=["project", "-id"], name="event_by_project"),
        ]

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} by {self.label}"


class Notice(models.Model):
    """An event that people are still to be told of; deleted once the messages about it are due."""

    event = models.OneToOneField(Event, on_delete=models.CASCADE, primary_key=True, related_name="notice")
    due_at = MomentField()
    tries = models.PositiveSmallIntegerField(default=0, help_text="That failed; it is tried again, later.")
    error = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"notice of {self.event_id}"


_new_events = PreparedInsert(Event)


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
) -> Event:
    """Insert the event and its notice in one transaction, or in the caller's if there is one.

    The loop is rung once that has committed. By then the rows are safe, so a bell that fails is only logged.
    """
    told = {"from_status": old, "to_status": new, "note": note[:2000], "data": data or {}}
    event = Event(project=project, task=task, kind=kind, **told, **_by(actor))
    with transaction.atomic(savepoint=False):
        _new_events.insert(event)
        _tell_of(project, kind, [event])
        hooks.wake_for(event)
    return event


def record_created(project: "Project", tasks: "Sequence[Task]", *, actor: Actor) -> None:
    """Record the creation of many tasks at once, without waking what is snoozed until such an event."""
    with transaction.atomic(savepoint=False):
        events = Event.objects.bulk_create(
            [
                Event(project=project, task=task, kind="created", to_status=task.status, **_by(actor))
                for task in tasks
            ],
            batch_size=AT_ONCE,
        )
        if events:
            _tell_of(project, "created", events)


def _by(actor: Actor) -> dict[str, Any]:
    return {
        "actor_kind": actor.kind, "user_id": actor.user_id, "run_number": actor.run_number,
        "label": actor.label[:120], "at": estimated_time(),
    }  # fmt: skip


def _tell_of(project: "Project", kind: str, events: list[Event]) -> None:
    """Leave notices if people are told of this kind of event, and ring once the transaction has committed."""
    transaction.on_commit(partial(hooks.ring_loop, project.pk, kind), robust=True)
    if hooks.is_told(kind):
        Notice.objects.bulk_create(
            [Notice(event=event, due_at=event.at) for event in events], batch_size=AT_ONCE
        )
        transaction.on_commit(partial(hooks.ring_notices, project.pk), robust=True)


class Seal(models.Model):
    """The hash of a project's events up to one of them and of the seal before: changing the record breaks it.

    The table is append-only, which triggers of the database enforce.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="seals", db_index=False)
    number = models.PositiveIntegerField()
    upto = models.PositiveBigIntegerField(help_text="The last event that it covers.")
    count = models.PositiveIntegerField(help_text="Events since the seal before.")
    chain = models.CharField(max_length=64)
    at = MomentField()

    triggers = (no_change("tasks_seal"), no_deletion("tasks_seal"))

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="seal_number_once")]

    def __str__(self) -> str:
        return f"seal {self.number} of {self.project_id}"

"""What an event is about: its dispute and its conflict, where it has one."""

from dataclasses import dataclass

from disputes.models import Conflict, Dispute
from disputes.notifications.topics import Topic, topic_of
from tasks.models import Event
from tasks.states import Severity


@dataclass(frozen=True, slots=True)
class Subject:
    """An event with all that a message says of it, and that decides who is told."""

    event: Event
    topic: Topic | None
    dispute: Dispute | None
    conflict: Conflict | None

    @property
    def is_urgent(self) -> bool:
        """Something critical wants a person: it waits for no quiet hours."""
        told = None if self.topic in {Topic.RULED, Topic.COMMENTED} else self.conflict or self.dispute
        return told is not None and told.severity == Severity.CRITICAL


def subject_of(event: Event) -> Subject:
    """Looks the rows up by what the event's data names: C-9, D-7; else the task's dispute."""
    data = event.data if isinstance(event.data, dict) else {}
    name = event.note if event.kind == "ruling_undone" else data.get("conflict")
    conflict = _conflict(_number(name, "C-"))
    dispute = conflict.dispute if conflict else _dispute(_number(data.get("dispute"), "D-"), event)
    return Subject(event, topic_of(event, conflict), dispute, conflict)


def _number(name: object, head: str) -> int | None:
    if not isinstance(name, str) or not name.startswith(head):
        return None
    digits = name.removeprefix(head)
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


def _conflict(pk: int | None) -> Conflict | None:
    related = ("dispute__task__project", "dispute__project", "dispute__assignee", "previous")
    return Conflict.objects.filter(pk=pk).select_related(*related).first() if pk else None


def _dispute(pk: int | None, event: Event) -> Dispute | None:
    rows = Dispute.objects.select_related("task__project", "project", "assignee")
    if pk:
        return rows.filter(pk=pk).first()
    if event.task_id is None or event.kind == "landed":
        return None
    return rows.filter(task=event.task_id).order_by("-pk").first()

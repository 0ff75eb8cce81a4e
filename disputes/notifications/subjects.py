"""What an event is about: its dispute and its conflict, if it has them."""

from dataclasses import dataclass

from disputes.models import Conflict, Dispute
from disputes.notifications.notices import NoticeKind, Topic, notice_of
from tasks.models import Event
from tasks.states import Severity


@dataclass(frozen=True, slots=True)
class NoticeSubject:
    """An event with everything that a message says about it and that decides who is told."""

    event: Event
    notice: NoticeKind | None
    dispute: Dispute | None
    conflict: Conflict | None

    @property
    def topic(self) -> Topic | None:
        """The topic of the event, or None if nobody is told."""
        return self.notice.topic if self.notice else None

    @property
    def is_urgent(self) -> bool:
        """Whether something critical needs a person, so that it does not wait for the end of quiet hours."""
        told = self.conflict or self.dispute
        is_news = self.notice is not None and self.notice.is_news
        return told is not None and told.severity == Severity.CRITICAL and not is_news


def subject_of(event: Event) -> NoticeSubject:
    """Look up the rows that the event's data names, such as C-9 or D-7, or else the task's dispute."""
    data = event.data if isinstance(event.data, dict) else {}
    conflict = _conflict(_number(data.get("conflict"), "C-"))
    notice = notice_of(event, conflict)
    dispute = conflict.dispute if conflict else _dispute(_number(data.get("dispute"), "D-"), event, notice)
    return NoticeSubject(event, notice, dispute, conflict)


def _number(name: object, head: str) -> int | None:
    if not isinstance(name, str) or not name.startswith(head):
        return None
    digits = name.removeprefix(head)
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


def _conflict(pk: int | None) -> Conflict | None:
    related = ("dispute__task__project", "dispute__project", "dispute__assignee", "previous")
    return Conflict.objects.filter(pk=pk).select_related(*related).first() if pk else None


def _dispute(pk: int | None, event: Event, notice: NoticeKind | None) -> Dispute | None:
    rows = Dispute.objects.select_related("task__project", "project", "assignee")
    if pk:
        return rows.filter(pk=pk).first()
    if event.task_id is None or (notice is not None and not notice.has_dispute):
        return None
    return rows.filter(task=event.task_id).order_by("-pk").first()

"""The words of a message: a short subject, a few lines, and a link to the card.

Questions and comments come from agents and from people. In a chat they must neither notify everybody nor look
like a link or like the program's own words, so each becomes one line of limited length without characters
that a service acts on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import reverse

from disputes.notifications.notices import NoticeKind, Topic
from disputes.notifications.subjects import NoticeSubject
from tasks.text.counting import shortened
from tasks.text.unseen import plain

SUBJECT_MAX, LINE_MAX, DIGEST_MAX = 120, 300, 40
# @channel and <!here> notify everybody, [words](url) and <url|words> disguise a link, https:// makes one.
HARMLESS = str.maketrans({"@": "\uff20", "<": "\u2039", ">": "\u203a"})


@dataclass(frozen=True, slots=True)
class Message:
    """What people are told about one event."""

    subject: str
    lines: tuple[str, ...]
    url: str

    @property
    def body(self) -> str:
        return "\n".join([*self.lines, *([self.url] if self.url else [])])


def line(text: str, most: int = LINE_MAX) -> str:
    """Return text by anybody as one line that no service acts on."""
    words = " ".join(plain(text[: most * 4]).replace("\\", " ").split())
    words = words.replace("://", ": //").replace("](", "] (").replace("`", "'").translate(HARMLESS)
    return shortened(words, most)


def message_of(subject: NoticeSubject, topic: str = "") -> Message:
    """Return what is said about an event to those who are told of it as `topic`.

    Raises ValueError if nobody is told of the event.
    """
    event, notice = subject.event, subject.notice
    if notice is None:
        raise ValueError(f"Nobody is told of {event.kind}.")
    told = subject.conflict or subject.dispute
    sentence = _sentence(notice, subject, topic)
    where = event.project.slug
    if told is None:
        name = f"{event.task.ref} {event.task.title}" if event.task else event.project.name
        subject_line = f"[{where}] {sentence}: {line(name, 80)}"
        said = f"{sentence}: {line(name)}"
        lines = [said if said.endswith((".", "!", "?", "…")) else f"{said}."]
    else:
        subject_line = f"[{where}] {sentence}: {line(told.question, 80)}"
        lines = [f"{sentence}: {line(told.question)}", _facts(subject)]
    if notice.quotes_note and event.note:
        lines.insert(1, f"“{line(event.note)}”")
    return Message(line(subject_line, SUBJECT_MAX), tuple(filter(None, lines)), link(_path(subject)))


def _sentence(notice: NoticeKind, subject: NoticeSubject, topic: str) -> str:
    words = notice.if_mentioned if topic == Topic.MENTIONED else notice.sentence
    kind = subject.conflict.get_kind_display() if subject.conflict else "A card"
    return words.format(kind=kind, who=line(subject.event.label, 60))


def _facts(subject: NoticeSubject) -> str:
    """Return severity, dispute, task and what the dispute blocks, or "" without a dispute."""
    dispute, told = subject.dispute, subject.conflict or subject.dispute
    if dispute is None or told is None:
        return ""
    task = f"{dispute.task.ref} {line(dispute.task.title, 80)}" if dispute.task else dispute.project.name
    blocks = f", blocks {dispute.blocks_words}" if dispute.blocks_words else ""
    return f"{told.get_severity_display()}, {dispute.ref}, {task}{blocks}"


def _path(subject: NoticeSubject) -> str:
    """Return the path of the page that shows the card, or else of the task or project."""
    event, dispute, conflict = subject.event, subject.dispute, subject.conflict
    if subject.notice is not None and (row := event.data.get(subject.notice.row)):
        return reverse(subject.notice.page, args=[row])
    if dispute is not None:
        path = reverse("dispute", args=[dispute.pk])
        return f"{path}?conflict={conflict.ref}" if conflict else path
    if subject.notice is not None and subject.notice.page:
        return reverse(subject.notice.page, args=[event.project.slug])
    if event.task is not None:
        return reverse("task", args=[event.task.ref])
    return reverse("project", args=[event.project.slug])


def link(path: str) -> str:
    """Return a URL that works outside the browser, or "" if the program's own URL is not known."""
    root = settings.URL or settings.API_URL.rstrip("/")
    return f"{root}{path}" if root else ""


def together(messages: Sequence[Message]) -> Message:
    """Combine several messages into one, in the order in which things happened."""
    if len(messages) == 1:
        return messages[0]
    lines: list[str] = []
    for number, each in enumerate(messages[:DIGEST_MAX], start=1):
        lines += [
            f"{number}. {each.lines[0]}",
            *(f"   {more}" for more in (*each.lines[1:], each.url) if more),
        ]
    if left := len(messages) - DIGEST_MAX:
        lines += [f"And {left} more."] if left > 0 else []
    return Message(f"{len(messages)} messages from Steroids Web", tuple(lines), link(reverse("queue")))


def payload(subject: NoticeSubject, uid: str, topic: str = "") -> dict[str, Any]:
    """Return the event as the JSON data for machines."""
    event, dispute, conflict = subject.event, subject.dispute, subject.conflict
    told = conflict or dispute
    return {
        "id": uid,
        "type": topic or str(subject.topic),
        "timestamp": event.at.isoformat(),
        "data": {
            "event": event.pk,
            "kind": event.kind,
            "project": event.project.slug,
            "task": event.task.ref if event.task else None,
            "dispute": dispute.ref if dispute else None,
            "conflict": conflict.ref if conflict else None,
            "severity": told.severity if told else None,
            "question": plain(told.question) if told else None,
            "actor": {"kind": event.actor_kind, "name": plain(event.label)},
            "note": plain(event.note),
            "url": link(_path(subject)) or None,
        },
    }

"""What people are told about: one row per notification, with its topic, its recipients and its words.

An event whose kind is in `NOTICES` leaves a notice when it is recorded; everything else reads the row.
"""

from dataclasses import dataclass
from enum import Enum, auto

from django.db.models import TextChoices

from disputes.models import Conflict
from tasks.models import Event


class Topic(TextChoices):
    """What messages are about. People choose among topics."""

    OPENED = "opened", "A card was opened"
    REOPENED = "reopened", "A ruling was reopened or not honoured"
    ASSIGNED = "assigned", "A dispute was assigned to you"
    MENTIONED = "mentioned", "Somebody mentioned you"
    COMMENTED = "commented", "A comment on what you follow or hold"
    RULED = "ruled", "A ruling, or its end, on what you follow or hold"
    REMINDER = "reminder", "Nobody has ruled for hours"
    STALE = "stale", "A dispute is stale"
    PROJECT = "project", "The project is stuck, at its limit or ended"
    LANDED = "landed", "A task landed"


# What a person's and a project's channel may choose: landings are not told to persons, and nobody can mention
# a project.
OF_A_PERSON = {topic: topic.label for topic in Topic if topic != Topic.LANDED}
OF_A_PROJECT = {topic: topic.label for topic in Topic if topic != Topic.MENTIONED} | {
    Topic.ASSIGNED: "A dispute was assigned",
    Topic.COMMENTED: "A comment",
    Topic.RULED: "A ruling, or its end",
}


class People(Enum):
    """Groups of people by their part in an event; `audience` finds them."""

    DUTY = auto()  # who looks after the queue that day
    LEADS = auto()
    HOLDER = auto()  # the assignee, or whoever has claimed the dispute
    HOLDER_ELSE_DUTY = auto()
    AROUND = auto()  # the assignee and the followers
    ASSIGNED = auto()  # the person to whom this event assigns the dispute
    RULED_BEFORE = auto()  # who made the ruling that is open again


@dataclass(frozen=True, slots=True)
class NoticeKind:
    """One notification, sent to the people of `to` and to the project's own channels.

    In `sentence`, {kind} is the kind of card and {who} is who acted. `of_origin` limits the row to cards with
    that origin; such a row comes before the general one for its event.
    """

    event: str
    topic: Topic
    sentence: str
    to: tuple[People, ...] = ()
    of_origin: str = ""
    quotes_note: bool = False  # the event's note follows the sentence
    if_mentioned: str = ""  # the sentence for people whom the event mentions
    is_news: bool = False  # nobody has to act on it, so that even critical ones respect quiet hours
    has_dispute: bool = True  # whether the task's dispute is meant if the event names none
    page: str = ""  # the project's page to which the link leads if there is no dispute
    row: str = ""  # the key in the event's data of the row to whose own page the link leads instead


NOTICES = (
    NoticeKind(
        "conflict_opened", Topic.REOPENED, "A ruling was reopened",
        (People.DUTY, People.AROUND, People.RULED_BEFORE), of_origin=Conflict.Origin.REOPENED,
    ),
    NoticeKind(
        "conflict_opened", Topic.REOPENED, "A ruling was not honoured",
        (People.DUTY, People.AROUND, People.RULED_BEFORE), of_origin=Conflict.Origin.NOT_HONOURED,
    ),
    NoticeKind(
        "conflict_opened", Topic.OPENED, "{kind} waits for a ruling", (People.DUTY, People.AROUND)
    ),
    NoticeKind("alert_opened", Topic.OPENED, "An alert waits for a ruling", (People.DUTY, People.AROUND)),
    NoticeKind("ruled", Topic.RULED, "{who} ruled", (People.AROUND,), quotes_note=True, is_news=True),
    NoticeKind("ruling_undone", Topic.RULED, "{who} took a ruling back", (People.AROUND,), is_news=True),
    NoticeKind("dispute_closed", Topic.RULED, "Settled", (People.AROUND,), is_news=True),
    NoticeKind("assigned", Topic.ASSIGNED, "{who} assigned it", (People.ASSIGNED,), quotes_note=True),
    NoticeKind(
        "commented", Topic.COMMENTED, "{who} commented", (People.AROUND,), quotes_note=True, is_news=True,
        if_mentioned="{who} mentioned you",
    ),
    NoticeKind(
        "nudged", Topic.REMINDER, "Still waits for a ruling", (People.HOLDER_ELSE_DUTY,), quotes_note=True
    ),
    NoticeKind(
        "unattended", Topic.REMINDER, "Nobody has ruled yet", (People.DUTY, People.LEADS), quotes_note=True
    ),
    NoticeKind("stale", Topic.STALE, "Stale", (People.HOLDER, People.LEADS), quotes_note=True),
    NoticeKind(
        "trouble", Topic.PROJECT, "Its repository cannot be reached", (People.LEADS,), quotes_note=True
    ),
    NoticeKind(
        "settings_invalid", Topic.PROJECT, "It is paused, because its stored settings are not valid",
        (People.LEADS,), quotes_note=True,
    ),
    NoticeKind(
        "todo_waits", Topic.PROJECT, "Landed work changed its list of tasks", (People.LEADS,),
        quotes_note=True, page="project",
    ),
    NoticeKind(
        "round_limit", Topic.PROJECT, "The limit of checkpoints is reached", (People.LEADS,),
        quotes_note=True, page="project-end",
    ),
    NoticeKind(
        "project_ended", Topic.PROJECT, "The project has ended", (People.LEADS,), quotes_note=True,
        page="project-end",
    ),
    NoticeKind(
        "amendment_drafted", Topic.OPENED, "An amendment of the specification waits for approval",
        (People.DUTY, People.AROUND), quotes_note=True, page="amendment", row="amendment",
    ),
    NoticeKind(
        "amendment_failed", Topic.OPENED, "An amendment of the specification cannot be drafted",
        (People.AROUND,), quotes_note=True, is_news=True, page="amendment", row="amendment",
    ),
    NoticeKind("landed", Topic.LANDED, "Landed", has_dispute=False),
)  # fmt: skip
TOLD = frozenset(row.event for row in NOTICES)


def is_told(kind: str) -> bool:
    """Whether anybody may be told of events of this kind."""
    return kind in TOLD


def notice_of(event: Event, conflict: Conflict | None) -> NoticeKind | None:
    """Return the row for an event, or None if nobody is told; some projects want that of stale disputes."""
    if event.kind == "stale" and not event.data.get("told", True):
        return None
    origins = {"", conflict.origin if conflict else ""}
    return next((row for row in NOTICES if row.event == event.kind and row.of_origin in origins), None)

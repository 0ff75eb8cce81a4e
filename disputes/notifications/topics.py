"""What messages are about. People choose among topics; each event that is told belongs to one."""

from django.db.models import TextChoices

from disputes.models import Conflict
from tasks.models import Event


class Topic(TextChoices):
    OPENED = "opened", "A card was opened"
    REOPENED = "reopened", "A ruling was reopened or not honoured"
    ASSIGNED = "assigned", "A dispute was assigned to you"
    MENTIONED = "mentioned", "Somebody mentioned you"
    COMMENTED = "commented", "A comment on what you watch or hold"
    RULED = "ruled", "A ruling, or its end, on what you watch or hold"
    REMINDER = "reminder", "Nobody has ruled for hours"
    STALE = "stale", "A dispute is stale"
    PROJECT = "project", "The project is stuck, at its limit or ended"
    LANDED = "landed", "A task landed"


TOPICS = {
    "conflict_opened": Topic.OPENED,
    "alert_opened": Topic.OPENED,
    "ruled": Topic.RULED,
    "ruling_undone": Topic.RULED,
    "dispute_closed": Topic.RULED,
    "assigned": Topic.ASSIGNED,
    "commented": Topic.COMMENTED,
    "nudged": Topic.REMINDER,
    "unattended": Topic.REMINDER,
    "stale": Topic.STALE,
    "trouble": Topic.PROJECT,
    "round_limit": Topic.PROJECT,
    "project_ended": Topic.PROJECT,
    "landed": Topic.LANDED,
}
# What a person's channel may choose, and what a project's: nobody is told in person of a landing, and a room
# is not mentioned.
OF_A_PERSON = {topic: topic.label for topic in Topic if topic != Topic.LANDED}
OF_A_PROJECT = {topic: topic.label for topic in Topic if topic != Topic.MENTIONED} | {
    Topic.ASSIGNED: "A dispute was assigned",
    Topic.COMMENTED: "A comment",
    Topic.RULED: "A ruling, or its end",
}
AGAIN = {Conflict.Origin.REOPENED, Conflict.Origin.NOT_HONOURED}


def topic_of(event: Event, conflict: Conflict | None) -> Topic | None:
    """The topic of an event; None for one that nobody is told of, as some projects want it of stale ones."""
    if event.kind == "stale" and not event.data.get("told", True):
        return None
    if event.kind == "conflict_opened" and conflict is not None and conflict.origin in AGAIN:
        return Topic.REOPENED
    return TOPICS.get(event.kind)

"""Who is told what: people by their part in it, each through one of their channels."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from disputes.models import Channel, Conflict, Decision, Dispute, Follow
from disputes.notifications.notices import People, Topic
from disputes.notifications.subjects import NoticeSubject
from disputes.triage import on_call
from tasks.access import MAINTAIN, READ, RULE, who_may_enter
from tasks.database.clock import estimated_time
from tasks.models import Membership, Project


def channels_for(subject: NoticeSubject) -> list[tuple[Channel, Topic]]:
    """Return one channel per person and the project's own channels, each with the event's topic for it.

    Nobody is told of what they did themselves.
    """
    if subject.topic is None:
        return []
    project = subject.event.project
    told = {pk: topic for pk, topic in _people(subject).items() if pk not in {None, subject.event.user_id}}
    active = Channel.objects.filter(Q(project=project) | Q(project=None), is_active=True)
    mine = active.filter(user__in=members(project, told)).order_by("user", "project", "pk")
    of_project = active.filter(user=None, project=project).order_by("pk")
    return [
        *_best_of(mine, told),
        *((each, subject.topic) for each in of_project if wants(each, subject.topic)),
    ]


def wants(channel: Channel, topic: str) -> bool:
    """Whether a channel takes messages on the topic; one without a choice takes all."""
    return not channel.wants or topic in channel.wants


def _best_of(channels: Iterable[Channel], told: dict[int | None, Topic]) -> Iterator[tuple[Channel, Topic]]:
    """Yield for each person the channel of that project if they have one, else a general one that wants it.

    A channel for the project overrides the person's general ones: a topic it does not want is not sent at
    all.
    """
    by_person: dict[int | None, list[Channel]] = {}
    for channel in channels:
        by_person.setdefault(channel.user_id, []).append(channel)
    for person, own in by_person.items():
        closest = [each for each in own if each.project_id is not None] or own
        if best := next((each for each in closest if wants(each, told[person])), None):
            yield best, told[person]


# --- People -----------------------------------------------------------------------------------------------


def members(project: Project, people: Iterable[int | None]) -> QuerySet[Any]:
    """Return those of the people who may see the project at present."""
    may_see = Membership.objects.filter(project=project, role__in=READ)
    return get_user_model().objects.filter(
        who_may_enter(), Q(is_superuser=True) | Q(pk__in=may_see.values("user")), pk__in=people
    )


def may_still_see(channel: Channel, project: Project) -> bool:
    """Whether the channel's person may see the project, checked again when a message goes out."""
    return channel.user_id is None or members(project, [channel.user_id]).exists()


def _people(subject: NoticeSubject) -> dict[int | None, Topic]:
    """Return who is told, and on which topic: for a comment, some are told because they are mentioned."""
    notice = subject.notice
    if notice is None:
        return {}
    people = {person: notice.topic for group in notice.to for person in _group(group, subject)}
    if notice.if_mentioned:
        people |= dict.fromkeys(map(_number, subject.event.data.get("mentions") or ()), Topic.MENTIONED)
    return people


def _group(group: People, subject: NoticeSubject) -> set[int | None]:
    event, project, dispute = subject.event, subject.event.project, subject.dispute
    match group:
        case People.DUTY:
            return on_duty(project)
        case People.LEADS:
            return leads(project)
        case People.HOLDER:
            return holder(dispute)
        case People.HOLDER_ELSE_DUTY:
            return holder(dispute) or on_duty(project)
        case People.AROUND:
            return _around(dispute)
        case People.ASSIGNED:
            return {_number(event.data.get("assignee"))}
        case People.RULED_BEFORE:
            return _who_ruled(subject.conflict)


def on_duty(project: Project) -> set[int | None]:
    """Return who looks after the queue today; if nobody is on call, everybody who may rule."""
    on_it = set(on_call([project.pk]).values_list("user", flat=True))
    return on_it or _present(project, role__in=RULE) or _superusers()


def leads(project: Project) -> set[int | None]:
    """Return the leads, or the maintainers if there are none."""
    return _present(project, is_lead=True) or _present(project, role__in=MAINTAIN) or _superusers()


def _present(project: Project, **what: Any) -> set[int | None]:
    """Return the members with that part in the project whose accounts are not shut."""
    rows = Membership.objects.filter(who_may_enter("user"), project=project, **what)
    return set(rows.values_list("user", flat=True))


def _superusers() -> set[int | None]:
    """Return those who may do everything, who are told where nobody of the project is left."""
    rows = get_user_model().objects.filter(who_may_enter(), is_superuser=True)
    return set(rows.values_list("pk", flat=True))


def holder(dispute: Dispute | None) -> set[int | None]:
    """Return whose turn it is: the assignee, else whoever has claimed the dispute; empty if nobody.

    Somebody who has left the project holds nothing, so that those on call are told instead.
    """
    if dispute is None:
        return set()
    is_claimed = dispute.claimed_until is not None and dispute.claimed_until > estimated_time()
    held = dispute.assignee_id or (dispute.claimed_by_id if is_claimed else None)
    return set(members(dispute.project, [held]).values_list("pk", flat=True)) if held else set()


def _around(dispute: Dispute | None) -> set[int | None]:
    """Return the assignee and the followers; the assignee may be None."""
    if dispute is None:
        return set()
    following = Follow.objects.filter(dispute=dispute).values_list("user", flat=True)
    return {dispute.assignee_id, *following}


def _who_ruled(conflict: Conflict | None) -> set[int | None]:
    if conflict is None or conflict.previous_id is None:
        return set()
    return set(Decision.objects.filter(conflict=conflict.previous_id).values_list("user", flat=True))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None

"""How a team shares open disputes: claims, assignees, followers, snoozes and the on-call rota.

None of this decides anything or keeps anybody from ruling. Claims come and go without a trace; everything
else leaves one event.
"""

from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, Expression, OuterRef, Q, QuerySet
from django.utils import timezone

from disputes.models import Dispute, Follow, OnCall
from disputes.models.dispute import SNOOZE_CONDITIONS
from tasks.access import READ, RULE, may, may_enter, require, who_may_enter
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared
from tasks.errors import Invalid, Refused
from tasks.events import SYSTEM, Actor
from tasks.models import Event, Membership
from tasks.models.event import record

CLAIM_FOR = timedelta(minutes=5)
SNOOZE_MAX = timedelta(days=365)
SUBMISSION, COMMENT, LANDING = (condition for condition, _ in SNOOZE_CONDITIONS)
# The events that may wake a dispute. Nobody waits for a task that was cancelled or finished by hand either.
WAKING = {
    "submit": SUBMISSION,
    "commented": COMMENT,
    "landed": LANDING,
    "cancel": LANDING,
    "finish": LANDING,
}


def _not_open(dispute: Dispute) -> Refused:
    return Refused("not_open", f"{dispute.ref} does not wait for anybody any more.", "Reload the queue.")


def _told(dispute: Dispute, kind: str, actor: Actor, note: str = "", **data: Any) -> None:
    data = {"dispute": dispute.ref, **data}
    record(dispute.project, kind, actor=actor, task=dispute.task, note=note, data=data)


# --- Claims -----------------------------------------------------------------------------------------------


def claim(dispute: Dispute, user: Any) -> bool:
    """Show others for five minutes that the person is about to rule; claiming again prolongs it.

    Return False if somebody else has a claim. The caller has checked the right to rule.
    """
    now = estimated_time()
    until = now + CLAIM_FOR
    free = Q(claimed_by__isnull=True) | Q(claimed_by=user.pk) | Q(claimed_until__lte=now)
    if Dispute.objects.open().filter(free, pk=dispute.pk).update(claimed_by=user, claimed_until=until):
        dispute.claimed_by, dispute.claimed_until = user, until
        return True
    dispute.refresh_from_db(fields=["claimed_by", "claimed_until"])
    return False


def release(dispute: Dispute, user: Any) -> None:
    """Remove the person's claim, because they went away without ruling."""
    Dispute.objects.filter(pk=dispute.pk, claimed_by=user.pk).update(claimed_by=None, claimed_until=None)


# --- Whose turn, and who wants to know --------------------------------------------------------------------


def people_for(projects: Any) -> dict[int, list[Any]]:
    """Return who may rule in each of the projects, by name. Superusers without a membership are left out."""
    may_rule = Membership.objects.filter(who_may_enter("user"), project__in=projects, role__in=RULE)
    people: dict[int, list[Any]] = {}
    for membership in may_rule.select_related("user").order_by("user__first_name", "user__username"):
        people.setdefault(membership.project_id, []).append(membership.user)
    return people


@transaction.atomic
def assign(dispute: Dispute, to: Any, *, by: Any) -> bool:
    """Assign the dispute to somebody, or to nobody (None). Return False if that changes nothing.

    Raises Refused: "no_right", "cannot_rule" if `to` may not rule there, or "not_open".
    """
    require(by, dispute.project, RULE, "assign disputes")
    if to is not None and not (may_enter(to) and may(to, dispute.project, RULE)):
        raise Invalid(
            "cannot_rule", f"{name_of(to)} may not rule in {dispute.project.name}.", "Choose somebody else."
        )
    other = Q(assignee__isnull=False) if to is None else ~Q(assignee=to.pk) | Q(assignee__isnull=True)
    if not Dispute.objects.open().filter(other, pk=dispute.pk).update(assignee=to):
        if not Dispute.objects.open().filter(pk=dispute.pk).exists():
            raise _not_open(dispute)
        return False
    dispute.assignee = to
    words = f"to {name_of(to)}" if to else "to nobody"
    _told(dispute, "assigned", Actor.person(by), words, assignee=to.pk if to else None)
    return True


def release_left() -> int:
    """Assign to nobody what is assigned to somebody who may not rule there any more. Return how many."""
    roles = Membership.objects.filter(project=OuterRef("project"), user=OuterRef("assignee"), role__in=RULE)
    may_rule = who_may_enter("assignee") & (Q(assignee__is_superuser=True) | Exists(roles))
    left = Dispute.objects.open().filter(~may_rule, assignee__isnull=False)
    return sum(map(_release, left.select_related("project", "task__project", "assignee")))


@transaction.atomic
def _release(dispute: Dispute) -> bool:
    held = Dispute.objects.open().filter(pk=dispute.pk, assignee=dispute.assignee_id)
    if not held.update(assignee=None):
        return False
    why = f"to nobody: {name_of(dispute.assignee)} may not rule here any more"
    _told(dispute, "assigned", SYSTEM, why, assignee=None)
    return True


@transaction.atomic
def follow(dispute: Dispute, user: Any) -> bool:
    """Let the person follow the dispute. Return False if they already do. Raises Refused("no_right")."""
    require(user, dispute.project, READ, "follow disputes")
    _, made = Follow.objects.get_or_create(dispute=dispute, user=user)
    if made:
        _told(dispute, "followed", Actor.person(user))
    return made


@transaction.atomic
def unfollow(dispute: Dispute, user: Any) -> bool:
    """Let the person stop following. Return False if they did not follow. Raises Refused("no_right")."""
    require(user, dispute.project, READ, "follow disputes")
    gone, _ = Follow.objects.filter(dispute=dispute, user=user.pk).delete()
    if gone:
        _told(dispute, "unfollowed", Actor.person(user))
    return bool(gone)


# --- Snooze -----------------------------------------------------------------------------------------------


@transaction.atomic
def snooze(dispute: Dispute, *, by: Any, until: datetime | None = None, condition: str = "") -> None:
    """Take the dispute out of the queue until a time or until something happens, whichever comes first.

    Raises Refused: "no_right", "not_open", "no_end" if nothing would ever wake it, "too_long",
    "unknown_condition".
    """
    require(by, dispute.project, RULE, "snooze disputes")
    now = estimated_time()
    if condition and condition not in dict(SNOOZE_CONDITIONS):
        raise Invalid("unknown_condition", f"Nothing is known as {condition!r}.", "Choose from the list.")
    if until is None and not condition:
        raise Invalid("no_end", "Nothing would ever wake it.", "Say when, or what for.")
    if until is not None and not now < until <= now + SNOOZE_MAX:
        raise Invalid(
            "too_long", "It sleeps for a year at most, and not into the past.", "Choose another time."
        )
    if condition and dispute.task is None:
        raise Invalid("no_end", "A card of a whole project sleeps until a time.", "Say when.")
    if condition == LANDING and dispute.task is not None and not dispute.task.waits_for:
        raise Invalid("no_end", f"{dispute.task.ref} waits for no other task.", "Choose another end.")
    done = Dispute.objects.open().filter(pk=dispute.pk)
    if not done.update(snoozed_at=now, snoozed_by=by, snoozed_until=until, snoozed_for=condition):
        raise _not_open(dispute)
    dispute.snoozed_at, dispute.snoozed_by, dispute.snoozed_until = now, by, until
    dispute.snoozed_for = condition
    _told(
        dispute, "snoozed", Actor.person(by), snoozed_words(dispute),
        until=until.isoformat() if until else None, condition=condition,
    )  # fmt: skip


def asleep(now: Any = None) -> Q:
    """Return the opposite of `awake`. One whose time has come is awake even if no job has said so."""
    later = Q(snoozed_until__isnull=True) | Q(snoozed_until__gt=estimated_time() if now is None else now)
    return Q(snoozed_at__isnull=False) & later


def awake(now: Any = None) -> Q:
    """Return a filter for disputes that are not snoozed at `now`, an expression or the current time."""
    return Q(snoozed_at__isnull=True) | Q(snoozed_until__lte=estimated_time() if now is None else now)


def is_asleep(dispute: Dispute) -> bool:
    """Whether the dispute is snoozed."""
    until = dispute.snoozed_until
    return dispute.snoozed_at is not None and (until is None or until > estimated_time())


def snoozed_words(dispute: Dispute) -> str:
    """Return until when the dispute is snoozed, such as "until 3 Dec, 09:00, or until somebody comments"."""
    ends = []
    if dispute.snoozed_until:
        local = timezone.localtime(dispute.snoozed_until)
        ends.append(f"until {local.day} {local:%b, %H:%M}")
    if dispute.snoozed_for:
        condition = dispute.get_snoozed_for_display()
        ends.append(f"until {condition[0].lower()}{condition[1:]}")
    return ", or ".join(ends)


@transaction.atomic
def wake(dispute: Dispute, why: str, *, actor: Actor = SYSTEM) -> bool:
    """Put the dispute back into the queue. Return False if it was not snoozed.

    `why` is time, person, conflict or the condition.
    """
    asleep_still = Dispute.objects.filter(pk=dispute.pk, snoozed_at__isnull=False)
    if not asleep_still.update(snoozed_at=None, snoozed_by=None, snoozed_until=None, snoozed_for=""):
        return False
    dispute.snoozed_at = dispute.snoozed_by = dispute.snoozed_until = None
    dispute.snoozed_for = ""
    if dispute.status == Dispute.Status.OPEN:
        _told(dispute, "woken", actor, why=why)
    return True


def wake_by(dispute: Dispute, user: Any) -> bool:
    """Put the dispute back into the queue because a person wants it back. Raises Refused("no_right")."""
    require(user, dispute.project, RULE, "wake disputes")
    return wake(dispute, "person", actor=Actor.person(user))


def wake_due() -> int:
    """Record for each snoozed dispute whose time has come that it is awake. Return how many; idempotent."""
    due = Dispute.objects.open().filter(snoozed_at__isnull=False, snoozed_until__lte=estimated_time())
    return sum(wake(dispute, "time") for dispute in due.select_related("project", "task__project"))


def _waiting_for_landing(project: Expression, task: Expression) -> QuerySet[Dispute]:
    direct = Q(task__dependencies__on=task)
    by_section = Q(task__section__depends_on__tasks=task)
    sleeping = Dispute.objects.open().filter(direct | by_section, project=project, snoozed_for=LANDING)
    return sleeping.order_by().distinct().values_list("pk")


def _waiting(task: Expression, condition: Expression) -> QuerySet[Dispute]:
    sleeping = Dispute.objects.open().filter(task=task, snoozed_for=condition)
    return sleeping.order_by().values_list("pk", "snoozed_by")


_until_landing, _until_something = Prepared(_waiting_for_landing), Prepared(_waiting)


def wake_for(event: Event) -> None:
    """Wake what waited for this event, in its transaction; comments do not wake what their author snoozed."""
    condition = WAKING.get(event.kind)
    if condition is None or event.task_id is None:
        return
    if condition == LANDING:
        found = [pk for (pk,) in _until_landing.rows(event.project_id, event.task_id)]
    else:
        own = event.user_id if condition == COMMENT else None
        rows = _until_something.rows(event.task_id, condition)
        found = [pk for pk, snoozed_by in rows if own is None or snoozed_by != own]
    if found:  # most events wake nothing
        for dispute in Dispute.objects.filter(pk__in=found).select_related("project", "task__project"):
            wake(dispute, condition)


# --- OnCall -------------------------------------------------------------------------------------------------


def on_call(projects: Any, day: date | None = None) -> QuerySet[OnCall]:
    """Return who is on call in these projects that day and may still rule there."""
    today = day or timezone.localdate()
    member = Membership.objects.filter(project=OuterRef("project"), user=OuterRef("user"), role__in=RULE)
    return (
        OnCall.objects.filter(project__in=projects, first_day__lte=today, last_day__gte=today)
        .filter(who_may_enter("user"), Exists(member) | Q(user__is_superuser=True))
        .select_related("user", "project")
        .order_by("last_day", "pk")
    )


def name_of(user: Any) -> str:
    """Return a person's name as others read it."""
    return Actor.person(user).label

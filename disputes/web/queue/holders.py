"""Who holds a dispute: its assignee, its claim, its followers, and until when it is snoozed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.functional import cached_property

from disputes import triage
from disputes.models import Dispute, Follow
from disputes.models.dispute import SNOOZE_CONDITIONS
from tasks.access import RULE, may
from tasks.database.clock import estimated_time
from tasks.text.unseen import plain

MORNING = 9  # the hour at which a snooze until a day ends


@dataclass(frozen=True, slots=True)
class HeldBy:
    """One person in the column "held by"; an empty name means nobody."""

    name: str = ""
    initials: str = ""
    is_me: bool = False
    until: datetime | None = None  # the end of the claim of a person who is looking at it

    @classmethod
    def of(cls, dispute: Dispute, user: Any) -> "HeldBy":
        """Return whoever is looking at the dispute, or else the assignee."""
        if dispute.status != Dispute.Status.OPEN:
            return cls()
        if dispute.claimed_by and dispute.claimed_until and dispute.claimed_until > estimated_time():
            return cls._named(dispute.claimed_by, user, dispute.claimed_until)
        return cls._named(dispute.assignee, user) if dispute.assignee else cls()

    @classmethod
    def _named(cls, person: Any, user: Any, until: datetime | None = None) -> "HeldBy":
        name = plain(triage.name_of(person)).strip() or "?"
        letters = "".join(word[0] for word in name.split()[:2]).upper()
        is_me = person.pk == user.pk
        return cls("You" if is_me else name.split()[0], letters, is_me, until)

    @property
    def left(self) -> str:
        """How long the claim still lasts, such as 4:12."""
        seconds = int((self.until - estimated_time()).total_seconds()) if self.until else 0
        return f"{max(seconds, 0) // 60}:{max(seconds, 0) % 60:02}"

    @property
    def seen_at(self) -> datetime | None:
        """When the person who claimed the dispute last gave a sign, or None."""
        return self.until - triage.CLAIM_FOR if self.until else None


@dataclass
class Holders:
    """Everything about who holds one dispute, and what the person may do about it."""

    dispute: Dispute
    user: Any
    has_right: bool | None = None  # None: look it up in the memberships
    is_followed: bool | None = None  # by the person; None: look it up

    @cached_property
    def may_rule(self) -> bool:
        return may(self.user, self.dispute.project, RULE) if self.has_right is None else self.has_right

    @property
    def is_open(self) -> bool:
        return self.dispute.status == Dispute.Status.OPEN

    @property
    def may_act(self) -> bool:
        """Whether the dispute is open and the person may assign or snooze it."""
        return self.is_open and self.may_rule

    @property
    def held(self) -> HeldBy:
        return HeldBy.of(self.dispute, self.user)

    @property
    def is_mine(self) -> bool:
        return self.dispute.assignee_id == self.user.pk

    @cached_property
    def people(self) -> list[Any]:
        """The people the dispute may be assigned to: everybody who may rule there, the person first."""
        people = triage.people_for([self.dispute.project_id]).get(self.dispute.project_id, [])
        others = [person for person in people if person.pk != self.user.pk]
        return [self.user, *others] if self.may_rule else others

    @cached_property
    def _following(self) -> list[Any]:
        follows = Follow.objects.filter(dispute=self.dispute).select_related("user")
        return [follow.user for follow in follows]

    @property
    def followers(self) -> list[str]:
        return [triage.name_of(person) for person in self._following]

    @property
    def follows(self) -> bool:
        known = self.is_followed
        return self.user.pk in {person.pk for person in self._following} if known is None else known

    @property
    def asleep(self) -> str:
        """Until when the dispute is snoozed and by whom; empty if it is not snoozed."""
        dispute = self.dispute
        if not self.is_open or not triage.is_asleep(dispute):
            return ""
        by = f", by {triage.name_of(dispute.snoozed_by)}" if dispute.snoozed_by else ""
        return f"{triage.snoozed_words(dispute)}{by}"

    @property
    def endings(self) -> list[tuple[str, str]]:
        """The ways in which a snooze of this dispute may end."""
        return endings(self.dispute)


def endings(dispute: Dispute | None = None) -> list[tuple[str, str]]:
    """Return the times to choose from, and what else may wake the dispute; None stands for any dispute.

    Each is the value of a button and its label.
    """
    times = [(value, label) for value, (label, _) in _times(timezone.localtime()).items()]
    if dispute is not None and dispute.task is None:
        return times
    waits = dispute is None or bool(dispute.task and dispute.task.waits_for)
    return times + [each for each in SNOOZE_CONDITIONS if each[0] != triage.LANDING or waits]


def _times(now: datetime) -> dict[str, tuple[str, datetime]]:
    """Return what the buttons say and mean, in the time zone of the installation."""
    morning = now.replace(hour=MORNING, minute=0, second=0, microsecond=0)
    monday = morning + timedelta(days=7 - now.weekday())
    return {
        "1h": ("1 hour", now + timedelta(hours=1)),
        "4h": ("4 hours", now + timedelta(hours=4)),
        "day": (f"Tomorrow, {MORNING}:00", morning + timedelta(days=1)),
        "week": (f"Monday, {MORNING}:00", monday),
    }


def ending_of(value: str) -> tuple[datetime | None, str]:
    """Return the time or the condition that a button stands for.

    An unknown value is returned as a condition, which `triage.snooze` refuses.
    """
    times = _times(timezone.localtime())
    return (times[value][1], "") if value in times else (None, value)

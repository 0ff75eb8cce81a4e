"""The queue: its tabs, its filters and its rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import django_filters
from django.db.models import Prefetch, Q, QuerySet
from django.forms import SearchInput
from django.utils import timezone

from disputes.models import Conflict, Decision, Dispute
from tasks.access import READ, RULE, projects_for
from tasks.models import SEVERITY_CHOICES, Project
from tasks.states import severity_rank

COUNT_MAX = 99
LATE, STALE = timedelta(hours=24), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Tab:
    """A part of the queue with a URL of its own."""

    name: str  # of the URL
    label: str
    empty: str
    hint: str


MINE, TEAM, WAITING, SETTLED = TABS = (
    Tab(
        "queue", "Your turn", "Nothing waits for you.",
        "Where a coder and a reviewer disagree, or an agent needs a hand, it appears here.",
    ),
    Tab(
        "queue-team", "Team", "Nothing waits for anybody.",
        "All open disputes of your projects stand here, also those that you may only read.",
    ),
    Tab(
        "queue-waiting", "Waiting for agents", "No ruling waits to be carried out.",
        "A ruled dispute stands here until a review has seen whether it was followed.",
    ),
    Tab(
        "queue-settled", "Settled", "Nothing is settled yet.",
        "Disputes that were ruled on and followed, or that became moot, newest first.",
    ),
)  # fmt: skip


def disputes_in(tab: Tab, user: Any) -> QuerySet[Dispute]:
    """The disputes of a tab that the person may see, in their order."""
    disputes = Dispute.objects.filter(project__in=projects_for(user, RULE if tab is MINE else READ))
    if tab is WAITING:
        return disputes.filter(status=Dispute.Status.RULED).in_order()
    if tab is SETTLED:
        return disputes.filter(status=Dispute.Status.CLOSED).order_by("-closed_at", "-pk")
    return disputes.open().in_order()


def count_of(tab: Tab, user: Any) -> str:
    """How many there are, at most 99+, so that counting stays cheap."""
    number = disputes_in(tab, user).order_by()[: COUNT_MAX + 1].count()
    return f"{COUNT_MAX}+" if number > COUNT_MAX else str(number)


# --- Filters ----------------------------------------------------------------------------------------------


def _own_projects(request: Any) -> QuerySet[Project]:
    return projects_for(request.user)


class QueueFilter(django_filters.FilterSet):
    """What the address of the page may narrow down."""

    q = django_filters.CharFilter(
        method="search",
        label="Search",
        max_length=200,
        widget=SearchInput(attrs={"placeholder": "Search questions and code"}),
    )
    project = django_filters.ModelChoiceFilter(
        queryset=_own_projects, to_field_name="slug", empty_label="Project"
    )
    kind = django_filters.ChoiceFilter(
        method="of_kind", label="Kind", choices=Conflict.Kind.choices, empty_label="Kind"
    )
    severity = django_filters.ChoiceFilter(label="Severity", choices=SEVERITY_CHOICES, empty_label="Severity")

    class Meta:
        model = Dispute
        fields = ["q", "project", "kind", "severity"]

    def search(self, disputes: QuerySet[Dispute], name: str, words: str) -> QuerySet[Dispute]:
        """In questions, titles, and the findings' codes and paths; or a name: D-7, ledger-214."""
        found = Conflict.objects.filter(
            Q(question__icontains=words)
            | Q(finding__code__icontains=words)
            | Q(finding__path__icontains=words)
        )
        asked = Q(question__icontains=words) | Q(task__title__icontains=words)
        asked |= Q(pk__in=found.values("dispute"))
        head, _, number = words.strip().rpartition("-")
        if number.isdecimal() and len(number) < 18:
            asked |= Q(pk=number) if head.upper() == "D" else Q(project__slug=head, task__number=number)
        return disputes.filter(asked)

    def of_kind(self, disputes: QuerySet[Dispute], name: str, kind: str) -> QuerySet[Dispute]:
        """Disputes that hold a conflict of the kind; open ones, where the dispute is open."""
        found = Conflict.objects.filter(kind=kind)
        still = found.filter(status=Conflict.Status.OPEN)
        return disputes.filter(
            Q(status=Dispute.Status.OPEN, pk__in=still.values("dispute"))
            | (~Q(status=Dispute.Status.OPEN) & Q(pk__in=found.values("dispute")))
        )


# --- Rows -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A dispute as one row: its question, and why it stands here since when."""

    dispute: Dispute
    conflict: Conflict | None
    number: int  # the conflict's, among those of the dispute
    total: int
    why: str
    since: datetime

    @property
    def is_late(self) -> bool:
        return self.dispute.status == Dispute.Status.OPEN and timezone.now() - self.since > LATE

    @property
    def is_stale(self) -> bool:
        return self.is_late and timezone.now() - self.since > STALE


def with_conflicts(disputes: QuerySet[Dispute]) -> QuerySet[Dispute]:
    """The disputes with all that `row_of` looks at: a constant number of queries."""
    rulings = Decision.objects.standing().select_related("user").order_by("pk")
    conflicts = Conflict.objects.order_by("pk").prefetch_related(
        Prefetch("decisions", queryset=rulings, to_attr="rulings")
    )
    return disputes.select_related("project", "task__project").prefetch_related(
        Prefetch("conflicts", queryset=conflicts)
    )


def in_order(conflicts: Iterable[Conflict]) -> list[Conflict]:
    """The order inside a dispute: severity, then age."""
    return sorted(conflicts, key=lambda conflict: (-severity_rank(conflict.severity), conflict.pk))


def first_of(conflicts: Iterable[Conflict]) -> Conflict | None:
    """The conflict to show: the first open one, else the one that was decided last, else any."""
    ordered = in_order(conflicts)
    opened = [conflict for conflict in ordered if conflict.status == Conflict.Status.OPEN]
    decided = [conflict for conflict in ordered if conflict.status == Conflict.Status.DECIDED]
    decided.sort(key=lambda conflict: max((ruling.pk for ruling in conflict.rulings), default=0))
    return next(iter([*opened, *reversed(decided), *ordered]), None)


def row_of(dispute: Dispute) -> Row:
    conflicts = in_order(dispute.conflicts.all())
    head = first_of(conflicts)
    why, since = _why(dispute, head)
    number = conflicts.index(head) + 1 if head else 0
    return Row(dispute, head, number, len(conflicts), why, since)


def _why(dispute: Dispute, conflict: Conflict | None) -> tuple[str, datetime]:
    """Why it stands in its tab, and since when."""
    if dispute.status == Dispute.Status.OPEN:
        return (conflict.get_origin_display() if conflict else ""), dispute.opened_at
    ruling = next(iter(conflict.rulings), None) if conflict else None
    since = dispute.closed_at or (ruling.at if ruling else dispute.opened_at)
    if ruling is None:
        return dispute.closed_reason.capitalize(), since
    return f"{word_of(ruling)} by {name_of(ruling)}", since


def word_of(ruling: Decision) -> str:
    """What was ruled, in a word: A, B, C or D; Retry where a card asked for hands."""
    return ruling.letter if ruling.letter.isalpha() else ruling.option.capitalize()


def name_of(ruling: Decision) -> str:
    """Who ruled."""
    return ruling.user.get_full_name() or ruling.user.get_username() if ruling.user else "policy"


# --- The way through --------------------------------------------------------------------------------------

ORDER_MAX = 500


def order_for(user: Any) -> list[int]:
    """The keys of the disputes that wait for the person, in the queue's order."""
    return list(disputes_in(MINE, user).values_list("pk", flat=True)[:ORDER_MAX])


def next_after(dispute: Dispute, order: list[int], user: Any) -> Dispute | None:
    """The dispute to go on with: this one while it is open, else the next of `order` that still is."""
    dispute.refresh_from_db()
    if dispute.status == Dispute.Status.OPEN:
        return dispute
    place = order.index(dispute.pk) if dispute.pk in order else 0
    still = disputes_in(MINE, user).in_bulk([*order[place:], *order[:place]])
    return next((still[pk] for pk in [*order[place:], *order[:place]] if pk in still), None)

"""The queue: its tabs and its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import IntegerField, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.functional import cached_property

from disputes import staleness, triage
from disputes.models import Conflict, Decision, Dispute, Opinion
from disputes.models.dispute import DisputeQuerySet
from disputes.web.queue.holders import HeldBy
from tasks.access import READ, RULE, PreparedForReaders, Reader, my_projects, of_projects, project_ids
from tasks.database.clock import estimated_time
from tasks.database.prepared import PreparedForKeys
from tasks.models import Project
from tasks.states import severity_rank

COUNT_MAX = 99
PER_PAGE = 30
LATE = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Tab:
    """A part of the queue with a URL of its own."""

    name: str  # the name of the URL
    label: str
    empty: str
    hint: str
    column: str  # the heading of the column of reasons


MINE, TEAM, WAITING, SNOOZED, SETTLED = TABS = (
    Tab(
        "queue", "Your turn", "Nothing waits for you.",
        "When a coder and a reviewer disagree, or an agent needs help, a card appears here.",
        "Why it waits, since",
    ),
    Tab(
        "queue-team", "Team", "Nothing waits for anybody.",
        "All open disputes of your projects stand here, also those that you may only read.",
        "Why it waits, since",
    ),
    Tab(
        "queue-waiting", "Waiting for agents", "No ruling waits to be carried out.",
        "A ruled dispute stands here until a review has seen whether it was followed.",
        "Ruling, since",
    ),
    Tab(
        "queue-snoozed", "Snoozed", "Nothing is snoozed.",
        "What somebody put off until a time, or until something happens, comes back by itself.",
        "Until when, open since",
    ),
    Tab(
        "queue-settled", "Settled", "Nothing is settled yet.",
        "Disputes that were ruled on and followed, or that became moot, newest first.",
        "Ruling, since",
    ),
)  # fmt: skip


class VisibleProjects:
    """The projects that a person sees, by name, and those in which they may rule; read when first needed."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.user: Any = request.user

    @cached_property
    def projects(self) -> dict[int, Project]:
        return {project.pk: project for project in my_projects(self.request)}

    @property
    def ruled(self) -> frozenset[int]:
        return project_ids(self.request, RULE)


def _of_tab(tab: Tab, disputes: DisputeQuerySet, user: Any, now: Any = None) -> QuerySet[Dispute]:
    """Return those of the disputes that belong in the tab at that time, in its order."""
    if tab is WAITING:
        return disputes.filter(status=Dispute.Status.RULED).of_what_goes_on().in_order()
    if tab is SETTLED:
        return disputes.filter(status=Dispute.Status.CLOSED).order_by("-closed_at", "-pk")
    if tab is SNOOZED:
        return disputes.waiting().filter(triage.asleep(now)).in_order()
    waiting = disputes.waiting().filter(triage.awake(now))
    if tab is MINE:  # what is assigned to somebody else appears in the team's tab
        waiting = waiting.filter(Q(assignee__isnull=True) | Q(assignee=user.pk))
    return waiting.in_order()


def disputes_in(tab: Tab, user: Any, now: Any = None) -> QuerySet[Dispute]:
    """Return the disputes of a tab that the person may see, in the tab's order.

    `now` is an expression for a query that is built once; without it, it is the current time.
    """
    disputes = Dispute.objects.filter(of_projects(user, RULE if tab is MINE else READ, in_order=True))
    return _of_tab(tab, disputes, user, now)


class CountOf(Subquery):
    """The number of rows that a query finds; the query itself sets the limit."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS found)"
    output_field = IntegerField()


def number_of(tab: Tab, reader: Reader, now: Any) -> CountOf:
    """Return how many disputes of the tab the person may see, as part of another query."""
    roles = RULE if tab is MINE else READ
    return first_few(_of_tab(tab, Dispute.objects.filter(of_projects(reader, roles)), reader, now))


def first_few(rows: QuerySet[Any]) -> CountOf:
    """Return how many rows there are, counted only as far as `capped` needs."""
    return CountOf(rows.order_by().values("pk")[: COUNT_MAX + 1])


def _numbers_of(reader: Reader, now: Any) -> QuerySet[Any, Any]:
    own = get_user_model().objects.filter(pk=reader.pk)
    return own.values_list(*(number_of(tab, reader, now) for tab in TABS))


_numbers = PreparedForReaders(_numbers_of)


def counts(user: Any) -> dict[str, str]:
    """Return how many disputes are in each tab, at most 99+ so that counting stays cheap, in one query."""
    [numbers] = _numbers.found(user, estimated_time())
    return {tab.name: capped(number or 0) for tab, number in zip(TABS, numbers, strict=True)}


def count_of(tab: Tab, user: Any) -> str:
    """Return the number of disputes in one tab, in the form that `counts` gives."""
    disputes = Dispute.objects.filter(of_projects(user, RULE if tab is MINE else READ))
    return capped(_of_tab(tab, disputes, user).order_by()[: COUNT_MAX + 1].count())


def capped(number: int) -> str:
    """Return the number as text, or 99+ for any larger one."""
    return f"{COUNT_MAX}+" if number > COUNT_MAX else str(number)


# --- Rows -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A dispute as one row: its question, why it is in this tab, and since when."""

    dispute: Dispute
    conflict: Conflict | None
    number: int  # the conflict's number among those of the dispute
    total: int
    why: str
    since: datetime
    held: HeldBy
    judge: str = ""  # whether the judge was asked, and its verdict, in a word

    @property
    def is_late(self) -> bool:
        return self.dispute.status == Dispute.Status.OPEN and estimated_time() - self.since > LATE

    @property
    def is_stale(self) -> bool:
        return self.is_late and staleness.is_stale(self.dispute)


def for_rows(disputes: QuerySet[Dispute]) -> QuerySet[Dispute]:
    """Read with the disputes what their rows show of other tables; `with_projects` adds their projects."""
    return disputes.select_related("task", "claimed_by", "assignee")


def _first_of(tab: Tab) -> PreparedForReaders:
    return PreparedForReaders(lambda reader, now: for_rows(disputes_in(tab, reader, now))[: PER_PAGE + 1])


_first_pages = {tab: _first_of(tab) for tab in TABS}


def first_page(tab: Tab, user: Any) -> list[Dispute]:
    """Return the first disputes of a tab, one more than a page holds; it is asked for at every refresh."""
    return _first_pages[tab].found(user, estimated_time())


def _shown_of(disputes: Any) -> QuerySet[Conflict]:
    """Return what rows show of the disputes' conflicts, not such long texts as positions and evidence."""
    rulings = Decision.objects.standing().select_related("user").order_by("pk")
    rulings = rulings.only(
        "conflict", "option", "at", "user__first_name", "user__last_name", "user__username"
    )
    rows = Conflict.objects.filter(dispute__pk__in=disputes).order_by("pk").select_related("submission").only(
        "dispute", "kind", "origin", "thread", "severity", "status", "opened_at", "coder_label",
        "reviewer_label", "submission__by_model",
    )  # fmt: skip
    judged = Opinion.objects.filter(conflict=OuterRef("pk"), kind=Opinion.Kind.JUDGE).order_by("-pk")
    rows = rows.annotate(
        judge_state=Subquery(judged.values("state")[:1]), judge_verdict=Subquery(judged.values("verdict")[:1])
    )
    return rows.prefetch_related(Prefetch("decisions", queryset=rulings, to_attr="rulings"))


_conflicts_of = PreparedForKeys(_shown_of, PER_PAGE)


def rows_of(disputes: Sequence[Dispute], user: Any) -> list[QueueRow]:
    """Return the disputes of one page, at most PER_PAGE, as rows: two queries more."""
    by_key = {dispute.pk: dispute for dispute in disputes}
    found: dict[int, list[Conflict]] = {pk: [] for pk in by_key}
    for conflict in _conflicts_of.found(by_key):
        conflict.dispute = by_key[conflict.dispute_id]
        found[conflict.dispute_id].append(conflict)
    return [_row_of(dispute, in_order(found[dispute.pk]), user) for dispute in disputes]


def in_order(conflicts: Iterable[Conflict]) -> list[Conflict]:
    """Sort the conflicts of a dispute by severity, then by age."""
    return sorted(conflicts, key=lambda conflict: (-severity_rank(conflict.severity), conflict.pk))


def first_of(conflicts: Iterable[Conflict]) -> Conflict | None:
    """Return the conflict to show: the first open one, else the last decided one, else any; None if none."""
    ordered = in_order(conflicts)
    opened = [conflict for conflict in ordered if conflict.is_open]
    decided = [conflict for conflict in ordered if conflict.status == Conflict.Status.DECIDED]
    decided.sort(key=lambda conflict: max((ruling.pk for ruling in conflict.rulings), default=0))
    return next(iter([*opened, *reversed(decided), *ordered]), None)


def _row_of(dispute: Dispute, conflicts: list[Conflict], user: Any) -> QueueRow:
    head = first_of(conflicts)
    why, since = _why(dispute, head)
    number = conflicts.index(head) + 1 if head else 0
    judge = _judge_word(head) if head and head.is_open else ""
    return QueueRow(dispute, head, number, len(conflicts), why, since, HeldBy.of(dispute, user), judge)


def _judge_word(conflict: Conflict) -> str:
    """Return the judge's state or verdict as its chip shows it, or "" if there is nothing to show."""
    match getattr(conflict, "judge_state", None):
        case Opinion.State.ASKED:
            return "Judge asked"
        case Opinion.State.GIVEN:
            return f"Judge: {conflict.judge_verdict}"  # type: ignore[attr-defined]
    return ""


def _why(dispute: Dispute, conflict: Conflict | None) -> tuple[str, datetime]:
    """Return why the dispute is in its tab, and since when."""
    if dispute.status == Dispute.Status.OPEN:
        if triage.is_asleep(dispute):
            words = triage.snoozed_words(dispute)
            return f"{words[0].upper()}{words[1:]}", dispute.opened_at
        return (conflict.get_origin_display() if conflict else ""), dispute.opened_at
    ruling = next(iter(conflict.rulings), None) if conflict else None
    since = dispute.closed_at or (ruling.at if ruling else dispute.opened_at)
    if ruling is None:
        return dispute.closed_reason.capitalize(), since
    return f"{ruling.word} by {name_of(ruling)}", since


def name_of(ruling: Decision) -> str:
    """Return the name of the person who ruled, or "policy"."""
    return triage.name_of(ruling.user) if ruling.user else "policy"

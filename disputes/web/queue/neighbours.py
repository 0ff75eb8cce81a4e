"""The way through the queue from one dispute: the previous one, the next one, and its place.

Whoever filtered the queue walks through what matches, until they look at the queue without the filter.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, QueryDict
from django.urls import reverse

from disputes.models import Decision, Dispute
from disputes.web.queue.filters import QueueFilter
from disputes.web.queue.listing import COUNT_MAX, MINE, CountOf, VisibleProjects, disputes_in
from tasks.database.clock import estimated_time
from tasks.states import severity_rank

IN_SESSION = "queue-filter"
AT_IT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The keys of the disputes around one; its place is empty past 99, or if it waits for somebody else."""

    previous: int | None = None
    next: int | None = None
    place: str = ""
    places: str = ""
    filter: str = ""  # as the queue's address has it


def keep_filter(request: HttpRequest, asked: dict[str, str]) -> None:
    """Remember what the person asked the queue for, but not who holds it: opening a dispute changes that."""
    query = QueryDict(mutable=True)
    query.update({name: value for name, value in asked.items() if name != "holder"})
    if request.session.get(IN_SESSION, "") != query.urlencode():
        request.session[IN_SESSION] = query.urlencode()


def way(request: HttpRequest) -> str:
    """Return the address of the queue as the person last filtered it."""
    kept = request.session.get(IN_SESSION, "")
    return f"{reverse(MINE.name)}?{kept}" if kept else reverse(MINE.name)


def _waiting(request: HttpRequest) -> tuple[QuerySet[Dispute], str]:
    """Return what waits for the person and matches the filter they last used, and that filter."""
    kept = request.session.get(IN_SESSION, "")
    waiting = disputes_in(MINE, request.user)
    if not kept:
        return waiting, ""
    reach = VisibleProjects.of(request)
    return QueueFilter(QueryDict(kept), queryset=waiting, request=request, reach=reach).qs, kept


def with_neighbours(disputes: QuerySet[Dispute], user: Any, now: Any = None) -> QuerySet[Dispute]:
    """Annotate the disputes with what `neighbours` needs, as `around_…`, within the query that reads them."""
    return _annotated(disputes, disputes_in(MINE, user, now))


def _annotated(disputes: QuerySet[Dispute], waiting: QuerySet[Dispute]) -> QuerySet[Dispute]:
    """Each part reads at most a hundred rows of an index."""
    place = [OuterRef(name) for name in ("severity_rank", "blocks", "opened_at", "pk")]
    following = waiting.filter(_from_here(*place)).values("pk")
    before = waiting.filter(_before(*place)).reverse().values("pk")
    return disputes.annotate(
        around_here=Subquery(following[:1]),
        around_next=Subquery(following[1:2]),
        around_previous=Subquery(before[:1]),
        around_before=CountOf(before.order_by()[:COUNT_MAX]),
        around_from_here=CountOf(following.order_by()[: COUNT_MAX + 1]),
    )


def neighbours(dispute: Any, request: HttpRequest) -> Neighbours:
    """Return the neighbours of a dispute that was read `with_neighbours`: among what matches, if it does.

    Where it does not wait for the person, perhaps because somebody else was faster, the way leads on from it.
    """
    waiting, kept = _waiting(request)
    is_waiting = dispute.around_here == dispute.pk
    matching: Any = _annotated(Dispute.objects.filter(pk=dispute.pk), waiting).first() if kept else None
    if matching is not None and (matching.around_here == dispute.pk or not is_waiting):
        return _of(matching, kept)
    return _of(dispute, "")


def _of(dispute: Any, kept: str) -> Neighbours:
    if dispute.around_here != dispute.pk:
        return Neighbours(dispute.around_previous, dispute.around_here, filter=kept)
    place, number = dispute.around_before + 1, dispute.around_before + dispute.around_from_here
    return Neighbours(
        dispute.around_previous, dispute.around_next, str(place) if place <= COUNT_MAX else "",
        str(number) if number <= COUNT_MAX else f"{COUNT_MAX}+", kept,
    )  # fmt: skip


def next_after(dispute: Dispute, blocks: int, request: HttpRequest) -> Dispute | None:
    """Return the dispute to continue with: this one if open, else the next that waits, else the first.

    The way goes on from where the person met the dispute: at the worst that they have just ruled on in it,
    and while it blocked so many tasks.
    """
    if Dispute.objects.open().filter(pk=dispute.pk).exists():
        return dispute
    waiting, _ = _waiting(request)
    rank = max(map(severity_rank, _just_ruled_on(dispute, request.user)), default=dispute.severity_rank)
    following = _from_here(rank, blocks, dispute.opened_at, dispute.pk)
    return waiting.filter(following).first() or waiting.first()


def _just_ruled_on(dispute: Dispute, user: Any) -> QuerySet[Decision, str]:
    """Return the severities of what the person has ruled on in it while they were at it."""
    rulings = Decision.objects.filter(user=user.pk, conflict__dispute=dispute)
    return rulings.filter(at__gt=estimated_time() - AT_IT).values_list("conflict__severity", flat=True)


def _beside(down: str, up: str, own: str, rank: Any, blocks: Any, at: Any, pk: Any) -> Q:
    """Return a filter for what lies on one side of a dispute in the queue.

    `down` and `up` compare with it as on that side, `own` compares the keys of those that are as old. The
    first condition says the same of the ranks alone, so that an index knows where to begin and to stop.
    """
    as_severe, as_blocking = Q(severity_rank=rank), Q(severity_rank=rank, blocks=blocks)
    return Q((f"severity_rank__{down}e", rank)) & (
        Q((f"severity_rank__{down}", rank))
        | (as_severe & Q((f"blocks__{down}", blocks)))
        | (as_blocking & Q((f"opened_at__{up}", at)))
        | (as_blocking & Q((f"pk__{own}", pk), opened_at=at))
    )


_from_here = partial(_beside, "lt", "gt", "gte")  # the dispute and all after it
_before = partial(_beside, "gt", "lt", "lt")

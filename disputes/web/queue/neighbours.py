"""The way through the queue from one dispute: the one before, the next, and where it stands."""

from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from disputes.models import Dispute
from disputes.web.queue.listing import COUNT_MAX, MINE, CountOf, disputes_in


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Keys of the disputes around one that waits for the person; its place is empty past 99."""

    previous: int | None = None
    next: int | None = None
    place: str = ""
    places: str = ""


def with_neighbours(disputes: QuerySet[Dispute], user: Any) -> QuerySet[Dispute]:
    """Each with what `neighbours` says of it, as `around_…`: part of the query that reads a dispute anyway.

    Of each part a hundred rows of an index are read at most.
    """
    waiting = disputes_in(MINE, user)
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


def neighbours(dispute: Any) -> Neighbours:
    """Around a dispute that was read `with_neighbours`."""
    if dispute.around_here != dispute.pk:  # the person has nothing to do with it
        return Neighbours()
    place, number = dispute.around_before + 1, dispute.around_before + dispute.around_from_here
    return Neighbours(
        dispute.around_previous, dispute.around_next, str(place) if place <= COUNT_MAX else "",
        str(number) if number <= COUNT_MAX else f"{COUNT_MAX}+",
    )  # fmt: skip


def next_after(dispute: Dispute, user: Any) -> Dispute | None:
    """The dispute to go on with: this one while it is open, else the next that waits, else the first."""
    waiting = disputes_in(MINE, user)
    if Dispute.objects.open().filter(pk=dispute.pk).exists():
        return dispute
    following = _from_here(dispute.severity_rank, dispute.blocks, dispute.opened_at, dispute.pk)
    return waiting.filter(following).first() or waiting.first()


def _from_here(rank: Any, blocks: Any, at: Any, pk: Any) -> Q:
    """A dispute and what comes after it, by the queue's order; the first condition is what an index needs."""
    as_severe, as_blocking = Q(severity_rank=rank), Q(severity_rank=rank, blocks=blocks)
    return Q(severity_rank__lte=rank) & (
        Q(severity_rank__lt=rank)
        | (as_severe & Q(blocks__lt=blocks))
        | (as_blocking & Q(opened_at__gt=at))
        | (as_blocking & Q(opened_at=at, pk__gte=pk))
    )


def _before(rank: Any, blocks: Any, at: Any, pk: Any) -> Q:
    """What comes before it: the negation, said so that an index knows where to stop."""
    as_severe, as_blocking = Q(severity_rank=rank), Q(severity_rank=rank, blocks=blocks)
    return Q(severity_rank__gte=rank) & (
        Q(severity_rank__gt=rank)
        | (as_severe & Q(blocks__gt=blocks))
        | (as_blocking & Q(opened_at__lt=at))
        | (as_blocking & Q(opened_at=at, pk__lt=pk))
    )

"""The way through the queue from one dispute: the one before, the next, and where it stands."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, Subquery

from disputes.models import Dispute
from disputes.web.queue.listing import COUNT_MAX, MINE, CountOf, disputes_in


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Keys of the disputes around one that waits for the person; its place is empty past 99."""

    previous: int | None = None
    next: int | None = None
    place: str = ""
    places: str = ""


def neighbours(dispute: Dispute, user: Any) -> Neighbours:
    """One query, of which each part reads a hundred rows of an index at most."""
    if dispute.status != Dispute.Status.OPEN:
        return Neighbours()
    waiting = disputes_in(MINE, user)
    following = waiting.filter(_from_here(dispute)).values("pk")
    before = waiting.filter(_before(dispute)).reverse().values("pk")
    found = Dispute.objects.filter(pk=dispute.pk).values_list(
        Subquery(following[:1]), Subquery(following[1:2]), Subquery(before[:1]),
        CountOf(before.order_by()[:COUNT_MAX]), CountOf(following.order_by()[: COUNT_MAX + 1]),
    )  # fmt: skip
    here, after, previous, number_before, number_from_here = found.get()
    if here != dispute.pk:
        return Neighbours()
    place, number = number_before + 1, number_before + number_from_here
    return Neighbours(
        previous, after, str(place) if place <= COUNT_MAX else "",
        str(number) if number <= COUNT_MAX else f"{COUNT_MAX}+",
    )  # fmt: skip


def next_after(dispute: Dispute, user: Any) -> Dispute | None:
    """The dispute to go on with: this one while it is open, else the next that waits, else the first."""
    waiting = disputes_in(MINE, user)
    if Dispute.objects.open().filter(pk=dispute.pk).exists():
        return dispute
    return waiting.filter(_from_here(dispute)).first() or waiting.first()


def _from_here(dispute: Dispute) -> Q:
    """This one and what comes after it, by the queue's order; the first condition is what an index needs."""
    rank, blocks, at = dispute.severity_rank, dispute.blocks, dispute.opened_at
    as_severe, as_blocking = Q(severity_rank=rank), Q(severity_rank=rank, blocks=blocks)
    return Q(severity_rank__lte=rank) & (
        Q(severity_rank__lt=rank)
        | (as_severe & Q(blocks__lt=blocks))
        | (as_blocking & Q(opened_at__gt=at))
        | (as_blocking & Q(opened_at=at, pk__gte=dispute.pk))
    )


def _before(dispute: Dispute) -> Q:
    """What comes before it: the negation, said so that an index knows where to stop."""
    rank, blocks, at = dispute.severity_rank, dispute.blocks, dispute.opened_at
    as_severe, as_blocking = Q(severity_rank=rank), Q(severity_rank=rank, blocks=blocks)
    return Q(severity_rank__gte=rank) & (
        Q(severity_rank__gt=rank)
        | (as_severe & Q(blocks__gt=blocks))
        | (as_blocking & Q(opened_at__lt=at))
        | (as_blocking & Q(opened_at=at, pk__lt=dispute.pk))
    )

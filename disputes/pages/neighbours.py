"""The way through the queue from one dispute: the one before, the next, and where it stands."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from disputes.models import Dispute
from disputes.pages.queue import COUNT_MAX, MINE, disputes_in


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Keys of the disputes around one that waits for the person; its place is empty past 99."""

    previous: int | None = None
    next: int | None = None
    place: str = ""
    places: str = ""


def neighbours(dispute: Dispute, user: Any) -> Neighbours:
    """Two queries, each of which reads a hundred rows of an index at most."""
    if dispute.status != Dispute.Status.OPEN:
        return Neighbours()
    waiting = disputes_in(MINE, user)
    here, *following = [*_from(waiting, dispute).values_list("pk", flat=True)[: COUNT_MAX + 1]] or [None]
    if here != dispute.pk:
        return Neighbours()
    before = list(waiting.exclude(_from_here(dispute)).reverse().values_list("pk", flat=True)[:COUNT_MAX])
    place, number = len(before) + 1, len(before) + 1 + len(following)
    return Neighbours(
        previous=before[0] if before else None,
        next=following[0] if following else None,
        place=str(place) if place <= COUNT_MAX else "",
        places=str(number) if number <= COUNT_MAX else f"{COUNT_MAX}+",
    )


def next_after(dispute: Dispute, user: Any) -> Dispute | None:
    """The dispute to go on with: this one while it is open, else the next that waits, else the first."""
    waiting = disputes_in(MINE, user)
    if Dispute.objects.open().filter(pk=dispute.pk).exists():
        return dispute
    return _from(waiting, dispute).first() or waiting.first()


def _from(waiting: QuerySet[Dispute], dispute: Dispute) -> QuerySet[Dispute]:
    return waiting.filter(_from_here(dispute))


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

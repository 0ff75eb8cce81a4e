"""The way through the queue from one dispute: the previous one, the next one, and its place."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from disputes.models import Dispute
from disputes.web.queue.listing import COUNT_MAX, MINE, CountOf, disputes_in


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The keys of the disputes around one that waits for the person; its place is empty past 99."""

    previous: int | None = None
    next: int | None = None
    place: str = ""
    places: str = ""


def with_neighbours(disputes: QuerySet[Dispute], user: Any, now: Any = None) -> QuerySet[Dispute]:
    """Annotate the disputes with what `neighbours` needs, as `around_…`, within the query that reads them.

    Each part reads at most a hundred rows of an index.
    """
    waiting = disputes_in(MINE, user, now)
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
    """Return the neighbours of a dispute that was read `with_neighbours`."""
    if dispute.around_here != dispute.pk:  # it does not wait for the person
        return Neighbours()
    place, number = dispute.around_before + 1, dispute.around_before + dispute.around_from_here
    return Neighbours(
        dispute.around_previous, dispute.around_next, str(place) if place <= COUNT_MAX else "",
        str(number) if number <= COUNT_MAX else f"{COUNT_MAX}+",
    )  # fmt: skip


def next_after(dispute: Dispute, user: Any) -> Dispute | None:
    """Return the dispute to continue with: this one if open, else the next that waits, else the first."""
    waiting = disputes_in(MINE, user)
    if Dispute.objects.open().filter(pk=dispute.pk).exists():
        return dispute
    following = _from_here(dispute.severity_rank, dispute.blocks, dispute.opened_at, dispute.pk)
    return waiting.filter(following).first() or waiting.first()


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

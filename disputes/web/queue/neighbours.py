"""The way through the queue from one dispute: the previous one, the next one, and its place.

Whoever filtered the queue walks through what matches, until they look at the queue without the filter. Each
step says with which filter the page before it was shown, so that two windows go their own ways.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.conf import settings
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from disputes.models import Decision, Dispute
from disputes.web.queue.filters import QueueFilter
from disputes.web.queue.listing import COUNT_MAX, MINE, SNOOZED, TEAM, CountOf, disputes_in
from tasks.database.clock import estimated_time
from tasks.states import severity_rank

FILTERS = tuple(name for name in QueueFilter.base_filters if name != "holder")  # opening one changes that
FILTER_MAX = 3_500  # characters; a browser keeps 4,096 bytes, and a longer filter is not remembered
LISTS = tuple(tab.name for tab in (MINE, TEAM, SNOOZED))  # of what may be ruled on
AT_IT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The keys of the disputes around one; its place is empty past 99, or if it waits for somebody else."""

    previous: int | None = None
    next: int | None = None
    place: str = ""
    places: str = ""
    filter: str = ""  # as the queue's address has it


def keep_filter(request: HttpRequest, response: HttpResponse, kept: str) -> None:
    """Remember the filter of the queue in the browser: the session writes to the database."""
    kept = _read(kept)
    if kept != _read(request.COOKIES.get(_cookie(request), "")):
        response.set_cookie(
            _cookie(request), kept, secure=settings.SESSION_COOKIE_SECURE, httponly=True, samesite="Lax"
        )


def kept_filter(request: HttpRequest) -> str:
    """Return the filter with which the person goes on, as the queue's address has it.

    It is that of the dispute or the list that they come from, or else of the last one that they saw.
    """
    came_from = urlsplit(request.headers.get("Referer", ""))
    if "filter" in (sent := request.POST or request.GET):
        return _read(sent["filter"])
    if came_from.path in map(reverse, LISTS):
        return _read(came_from.query)
    return _read(request.COOKIES.get(_cookie(request), ""))


def _read(text: str) -> str:
    kept = dict(parse_qsl(text)) if len(text) <= FILTER_MAX else {}
    return urlencode({name: kept[name] for name in FILTERS if name in kept})


def _cookie(request: HttpRequest) -> str:
    return f"queue-filter-{request.user.pk}"


def way(request: HttpRequest) -> str:
    """Return the address of the queue with the filter with which the person goes on."""
    kept = kept_filter(request)
    return f"{reverse(MINE.name)}?{kept}" if kept else reverse(MINE.name)


def _waiting(request: HttpRequest, kept: str) -> QuerySet[Dispute]:
    """Return what waits for the person and matches the filter."""
    waiting = disputes_in(MINE, request.user)
    return QueueFilter(QueryDict(kept), waiting, request).qs if kept else waiting


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
    kept = kept_filter(request)
    is_waiting = dispute.around_here == dispute.pk
    if kept:
        of_it = Dispute.objects.filter(pk=dispute.pk).order_by()
        matching: Any = _annotated(of_it, _waiting(request, kept)).only("pk").first()
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
    waiting = _waiting(request, kept_filter(request))
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

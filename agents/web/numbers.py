"""The numbers on the sidebar and the first page: what waits, what runs, what is wrong.

Each page queries them at most once. The first page counts all of them in one query, and does not load what
there is none of.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from agents.crew import coverage, pauses
from agents.models import Run
from agents.setup.demo import SLUG as DEMO
from disputes.models import Dispute
from disputes.notifications import channels, fanout
from disputes.web.queue.listing import MINE, first_few, number_of
from tasks.access import MAINTAIN, PreparedForReaders, Reader, of_projects, projects_for
from tasks.database.clock import estimated_time
from tasks.models import Section, Task

KEPT = 5  # seconds


@dataclass(frozen=True, slots=True)
class Badges:
    """Disputes that the person is to rule on, and runs under way; neither is counted beyond 100."""

    queue: int
    runs: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers on the first page, none counted beyond 100."""

    queue: int
    runs: int
    waiting: int  # open disputes, including those for other people
    to_land: int
    given_up: int
    untold: int
    has_landed: bool
    has_pauses: bool
    is_escalated: bool


def badges(request: HttpRequest) -> Badges:
    """Return the badges of the person, up to five seconds old."""

    def count() -> Badges:
        return Badges(*_answers(_badges, request))

    found: Badges = cache.get_or_set(_key(request), count, KEPT)
    return found


def numbers(request: HttpRequest) -> Numbers:
    """Return the numbers as they are now, and cache the badges, so that the sidebar shows the same."""
    found = Numbers(*_answers(_numbers, request))
    cache.set(_key(request), Badges(found.queue, found.runs), KEPT)
    return found


def _key(request: HttpRequest) -> str:
    return f"badges-{request.user.pk}"


def _for_badges(reader: Reader, now: Any) -> dict[str, Any]:
    live = Run.objects.live().filter(of_projects(reader))
    return {"queue": number_of(MINE, reader, now), "runs": first_few(live)}


def _for_the_first_page(reader: Reader, now: Any) -> dict[str, Any]:
    """Return what asks for each number.

    What is to land is looked up by projects even for superusers, since the index begins with them; whether
    anything has landed is looked up by sections, since no index answers that by project alone.
    """
    mine = of_projects(reader)
    landed = Task.objects.filter(section=OuterRef("pk"), landed_at__isnull=False)
    set_up = projects_for(reader, MAINTAIN).exclude(slug=DEMO)
    untold = fanout.stuck() if reader.is_superuser else fanout.stuck().none()
    return _for_badges(reader, now) | {
        "waiting": first_few(Dispute.objects.waiting().filter(mine)),
        "to_land": first_few(Task.objects.filter(project__in=projects_for(reader)).to_land()),
        "given_up": first_few(channels.given_up(reader)),
        "untold": first_few(untold),
        "has_landed": Exists(Section.objects.filter(Exists(landed), project__in=set_up)),
        "has_pauses": Exists(pauses.holding()),
        "is_escalated": Exists(coverage.escalated().filter(mine)),
    }


def _in_one_row(kind: Any, asked: Callable[[Reader, Any], dict[str, Any]]) -> PreparedForReaders:
    """Return the query for one row with an answer for each field of that dataclass."""

    def row(reader: Reader, now: Any) -> QuerySet[Any, Any]:
        answers = asked(reader, now)
        own = get_user_model().objects.filter(pk=reader.pk)
        return own.values_list(*(answers[field.name] for field in fields(kind)))

    return PreparedForReaders(row)


_badges, _numbers = _in_one_row(Badges, _for_badges), _in_one_row(Numbers, _for_the_first_page)


def _answers(query: PreparedForReaders, request: HttpRequest) -> list[Any]:
    """Return all answers from the row; an answer that is NULL becomes 0."""
    [row] = query.found(request.user, estimated_time())
    return [answer or 0 for answer in row]

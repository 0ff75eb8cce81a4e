"""The numbers on the sidebar and the first page: what waits, what runs, what is wrong.

Each page queries them at most once. The first page counts all of them in one query, and does not load what
there is none of.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest

from agents.crew import coverage, pauses
from agents.models import Run
from disputes.models import Dispute
from disputes.notifications import channels, fanout
from disputes.web.queue.listing import MINE, first_few, number_of
from tasks.access import READ, RULE, is_superuser, project_ids
from tasks.models import Project, Section, Task

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
        return Badges(**_answers(request, _badges(request)))

    found: Badges = cache.get_or_set(_key(request), count, KEPT)
    return found


def numbers(request: HttpRequest, maintained: Iterable[Project]) -> Numbers:
    """Return the numbers as they are now, and cache the badges, so that the sidebar shows the same.

    `maintained` are the projects for which the page wants to know whether anything has landed. That is looked
    up by their sections, since no index answers it by project alone.
    """
    mine = _in_projects(request, READ)
    to_land = Task.objects.filter(project__in=project_ids(request, READ)).to_land()
    landed = Task.objects.filter(section=OuterRef("pk"), landed_at__isnull=False)
    untold = fanout.stuck() if is_superuser(request) else fanout.stuck().none()
    asked = _badges(request) | {
        "waiting": first_few(Dispute.objects.open().filter(mine)),
        "to_land": first_few(to_land),
        "given_up": first_few(channels.given_up(request.user)),
        "untold": first_few(untold),
        "has_landed": Exists(Section.objects.filter(Exists(landed), project__in=list(maintained))),
        "has_pauses": Exists(pauses.holding()),
        "is_escalated": Exists(coverage.escalated().filter(mine)),
    }
    found = Numbers(**_answers(request, asked))
    cache.set(_key(request), Badges(found.queue, found.runs), KEPT)
    return found


def _key(request: HttpRequest) -> str:
    return f"badges-{request.user.pk}"


def _badges(request: HttpRequest) -> dict[str, Any]:
    ruled = Dispute.objects.filter(_in_projects(request, RULE))
    live = Run.objects.live().filter(_in_projects(request, READ))
    return {"queue": number_of(MINE, ruled, request.user), "runs": first_few(live)}


def _in_projects(request: HttpRequest, roles: frozenset[str]) -> Q:
    """Return the condition that the person has one of the roles in the project; superusers have all."""
    return Q() if is_superuser(request) else Q(project__in=project_ids(request, roles))


def _answers(request: HttpRequest, asked: dict[str, Any]) -> dict[str, Any]:
    """Return all answers from one row; an answer that is NULL becomes 0."""
    row = get_user_model().objects.filter(pk=request.user.pk).values_list(*asked.values()).get()
    return {name: answer or 0 for name, answer in zip(asked, row, strict=True)}

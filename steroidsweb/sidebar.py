"""What the sidebar asks on every page: who sees which entry, and the number on the queue."""

import copy
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest
from django.utils.module_loading import import_string

from agents.models import Run
from disputes.web.queue import listing
from steroidsweb.navigation import GROUPS
from tasks.access import READ, is_superuser, project_ids, projects_for

BADGE_MAX = 99
BADGE_SECONDS = 5


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the sidebar. Badges are filled in here: unfold would show an empty one as a red dot."""
    if getattr(request, "has_no_sidebar", False):
        return []
    groups = copy.deepcopy(GROUPS)
    for item in (item for group in groups for item in group["items"] if "badge" in item):
        item["badge"] = import_string(item["badge"])(request)
    return groups


def queue_badge(request: HttpRequest) -> str:
    """How many disputes wait for the person; empty for none, at most 99+. Up to five seconds old."""

    key = f"queue-badge-{request.user.pk}"
    number = cache.get_or_set(key, lambda: listing.count_of(listing.MINE, request.user), BADGE_SECONDS)
    return "" if number in {None, "0"} else str(number)


def runs_badge(request: HttpRequest) -> str:
    """How many runs are under way in the person's projects; empty for none. Up to five seconds old."""

    def count() -> int:
        mine = Run.objects.live().filter(project__in=projects_for(request.user))
        return mine.order_by()[: BADGE_MAX + 1].count()

    number = cache.get_or_set(f"runs-badge-{request.user.pk}", count, BADGE_SECONDS) or 0
    return f"{BADGE_MAX}+" if number > BADGE_MAX else str(number or "")


def has_project(request: HttpRequest) -> bool:
    return is_superuser(request) or bool(project_ids(request, READ))


def no_inline_colours(request: HttpRequest) -> dict[str, None]:
    """Unfold would write its colours into a <style> of each page, which our policy refuses: colours.css."""
    return {"colors": None}

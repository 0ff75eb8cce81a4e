"""What the sidebar asks on every page: who sees which entry, and the number on the queue."""

import copy
from typing import Any

from django.contrib.auth.models import User
from django.core.cache import cache
from django.http import HttpRequest
from django.utils.module_loading import import_string

from agents.models import Run
from disputes.web.queue import listing
from disputes.web.queue.listing import CountOf
from steroidsweb.navigation import GROUPS
from tasks.access import READ, is_superuser, project_ids, projects_for

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
    return _badges(request)[0]


def runs_badge(request: HttpRequest) -> str:
    """How many runs are under way in the person's projects; empty for none. Up to five seconds old."""
    return _badges(request)[1]


def _badges(request: HttpRequest) -> tuple[str, str]:
    """Both, counted in one query."""
    user: Any = request.user

    def count() -> tuple[str, str]:
        runs = Run.objects.live()
        if not user.is_superuser:
            runs = runs.filter(project__in=projects_for(user))
        waiting = listing.counted(listing.MINE, user).values("pk")
        under_way = runs.order_by().values("pk")[: listing.COUNT_MAX + 1]
        numbers = User.objects.filter(pk=user.pk).values_list(CountOf(waiting), CountOf(under_way)).get()
        queue, live = (listing.capped(number) if number else "" for number in numbers)
        return queue, live

    return cache.get_or_set(f"badges-{user.pk}", count, BADGE_SECONDS) or ("", "")


def has_project(request: HttpRequest) -> bool:
    return is_superuser(request) or bool(project_ids(request, READ))


def no_inline_colours(request: HttpRequest) -> dict[str, None]:
    """Unfold would write its colours into a <style> of each page, which our policy refuses: colours.css."""
    return {"colors": None}

"""What the sidebar asks on every page: who sees which entry, and the number on the queue."""

import copy
from typing import Any

from django.http import HttpRequest
from django.utils.functional import lazy
from django.utils.module_loading import import_string

from agents.web import numbers
from disputes.web.queue.listing import capped
from steroidsweb.navigation import GROUPS
from tasks.access import READ, is_superuser, project_ids


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the sidebar. Badges are filled in here: unfold would show an empty one as a red dot.

    Each is asked for where it is shown, and by then the first page has counted already.
    """
    if getattr(request, "has_no_sidebar", False):
        return []
    groups = copy.deepcopy(GROUPS)
    for item in (item for group in groups for item in group["items"] if "badge" in item):
        item["badge"] = lazy(import_string(item["badge"]), str)(request)
    return groups


def queue_badge(request: HttpRequest) -> str:
    """How many disputes wait for the person; empty for none, at most 99+."""
    number = numbers.badges(request).queue
    return capped(number) if number else ""


def runs_badge(request: HttpRequest) -> str:
    """How many runs are under way in the person's projects; empty for none, at most 99+."""
    number = numbers.badges(request).runs
    return capped(number) if number else ""


def has_project(request: HttpRequest) -> bool:
    return is_superuser(request) or bool(project_ids(request, READ))


def no_inline_colours(request: HttpRequest) -> dict[str, None]:
    """Unfold would write its colours into a <style> of each page, which our policy refuses: colours.css."""
    return {"colors": None}

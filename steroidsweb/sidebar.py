"""What the sidebar needs on every page: who sees which entry, and the numbers beside entries."""

from functools import cache
from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import lazy
from django.utils.module_loading import import_string

from agents.web import numbers
from disputes.web.queue.listing import capped
from steroidsweb.navigation import GROUPS
from tasks.access import READ, is_superuser, project_ids


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of the sidebar, with badges only if they have a text.

    Unfold would show an empty badge as a red dot. A badge is computed when it is shown, and by then the first
    page has counted already.
    """
    if getattr(request, "has_no_sidebar", False):
        return []
    return [
        group | {"items": [_shown(item, request) for item in group["items"] if _is_there(item)]}
        for group in GROUPS
    ]


def _is_there(item: dict[str, Any]) -> bool:
    return "app" not in item or apps.is_installed(item["app"])


def _shown(item: dict[str, Any], request: HttpRequest) -> dict[str, Any]:
    shown = item | ({"link": _address(*item["view"])} if "view" in item else {})
    return shown | ({"badge": lazy(import_string(item["badge"]), str)(request)} if "badge" in item else {})


@cache
def _address(view: str, *args: str) -> str:
    return reverse(view, args=args)


def queue_badge(request: HttpRequest) -> str:
    """Return how many disputes wait for the user; empty for none, at most "99+"."""
    number = numbers.badges(request).queue
    return capped(number) if number else ""


def runs_badge(request: HttpRequest) -> str:
    """Return how many runs are under way in the user's projects; empty for none, at most "99+"."""
    number = numbers.badges(request).runs
    return capped(number) if number else ""


def has_project(request: HttpRequest) -> bool:
    return is_superuser(request) or bool(project_ids(request, READ))


def no_inline_colours(request: HttpRequest) -> dict[str, None]:
    """Keep unfold from writing colours into a <style>, which the policy refuses; colours.css has them."""
    return {"colors": None}

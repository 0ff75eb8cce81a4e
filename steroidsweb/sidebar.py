"""What the sidebar needs on every page: who sees which entry, and the numbers beside entries."""

from functools import cache, lru_cache, partial
from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from agents.web import numbers
from disputes.web.queue.listing import capped
from steroidsweb.navigation import GROUPS, MEMBER, SUPERUSER
from tasks.access import READ, is_superuser, project_ids


def groups_for(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of the sidebar with the entries that the person may open, each of which shows itself.

    An entry is written when it is shown, and by then the first page has counted what the badges say.
    """
    if getattr(request, "has_no_sidebar", False):
        return []
    is_member = is_superuser(request) or project_ids(request, READ)
    words = {None, MEMBER if is_member else None, SUPERUSER if is_superuser(request) else None}
    return [
        group | {"entries": entries, "is_active": any(entry.keywords["is_active"] for entry in entries)}
        for group in GROUPS
        if (entries := [_entry(item, request) for item in group["items"] if _is_seen(item, words)])
    ]


def _is_seen(item: dict[str, Any], words: set[str | None]) -> bool:
    return item.get("permission") in words and ("app" not in item or apps.is_installed(item["app"]))


def _entry(item: dict[str, Any], request: HttpRequest) -> partial[SafeString]:
    link = _address(*item["view"]) if "view" in item else item["link"]
    is_active = request.path == link if link == _address("admin:index") else link in request.path
    return partial(
        _shown, request, item.get("badge", ""), item["title"], item["icon"], link, is_active=is_active
    )


def _shown(
    request: HttpRequest, counts: str, title: str, icon: str, link: str, *, is_active: bool
) -> SafeString:
    badge = badge_of(request, counts) if counts else ""
    return _written(counts, badge, title, icon, link, is_active=is_active)


@lru_cache(maxsize=512)  # every page has thirty, and they hardly ever change
def _written(counts: str, badge: str, title: str, icon: str, link: str, *, is_active: bool) -> SafeString:
    return render_to_string(
        "components/sidebar_entry.html",
        {
            "counts": counts,
            "badge": badge,
            "title": title,
            "icon": icon,
            "link": link,
            "is_active": is_active,
        },
    )


@cache
def _address(view: str, *args: str) -> str:
    return reverse(view, args=args)


def badge_of(request: HttpRequest, counts: str) -> str:
    """Return how many disputes wait for the user, or runs are under way; empty for none, at most "99+"."""
    number = getattr(numbers.badges(request), counts)
    return capped(number) if number else ""


def no_inline_colours(request: HttpRequest) -> dict[str, None]:
    """Keep unfold from writing colours into a <style>, which the policy refuses; colours.css has them."""
    return {"colors": None}

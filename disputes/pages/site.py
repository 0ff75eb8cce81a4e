"""What every page of the triage room starts from: who comes in, how a page is shown, and where to go next."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from tasks.errors import Refused

# Whoever is not signed in goes to the admin's login; nothing here is kept by a browser's cache.
staff_only = admin.site.admin_view


def page(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """The template inside the admin's frame."""
    return render(request, template, {**admin.site.each_context(request), **context}, status=status)


def not_allowed(request: HttpRequest, refused: Refused) -> HttpResponse:
    """The page that says why somebody may not do this."""
    return page(request, "disputes/refused.html", {"title": "Not allowed", "refused": refused}, 403)


def next_url(request: HttpRequest, otherwise: str) -> str:
    """Where the form says to go on: a page of ours, else `otherwise`."""
    wanted = request.POST.get("next", "")
    is_ours = wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if is_ours else otherwise

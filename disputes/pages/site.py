"""What every page of the triage room starts from: who comes in, how a page is shown, and where to go next."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.http import url_has_allowed_host_and_scheme

from tasks.access import tasks_for
from tasks.errors import Refused
from tasks.models import Task

DIGITS_MAX = 9  # of a task's number

# Whoever is not signed in goes to the admin's login; nothing here is kept by a browser's cache.
staff_only = admin.site.admin_view


def page(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """The template inside the admin's frame; where that has no sidebar, nothing is counted for it."""
    request.has_no_sidebar = context.get("is_nav_sidebar_enabled") is False  # type: ignore[attr-defined]
    return render(request, template, {**admin.site.each_context(request), **context}, status=status)


def not_allowed(request: HttpRequest, refused: Refused) -> HttpResponse:
    """The page that says why somebody may not do this."""
    return page(request, "disputes/refused.html", {"title": "Not allowed", "refused": refused}, 403)


def next_url(request: HttpRequest, otherwise: str) -> str:
    """Where the form or the address says to go on: a page of ours, else `otherwise`."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if is_ours else otherwise


def refuses(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A view whose Refused, where it is not shown with the form, is a page of its own."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except Refused as error:
            title = "Not allowed" if error.status == 403 else "Not done"
            return page(request, "disputes/refused.html", {"title": title, "refused": error}, error.status)

    return answer


def task_of(request: HttpRequest, ref: str) -> Task:
    """The task of that name (ledger-214), one that the person may see. Raises Http404."""
    slug, _, number = ref.rpartition("-")
    if not (number.isascii() and number.isdigit() and len(number) <= DIGITS_MAX):
        raise Http404(f"{ref} names no task.")
    tasks = tasks_for(request.user).select_related("project", "section")
    return get_object_or_404(tasks, project__slug=slug, number=number)

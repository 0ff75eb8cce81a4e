"""The pages for errors outside the program's views: not found, not allowed, form expired, wrong method."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import Resolver404, resolve, reverse

from disputes.web.view_helpers import came_from, refusal_page, wants_page
from steroidsweb.security import API, GetResponse
from tasks.admin.base import SuperuserAdmin
from tasks.errors import Refused

PATH_MAX = 200  # characters of a URL that a page repeats


def _answer(request: HttpRequest, title: str, refused: Refused, **context: Any) -> HttpResponse:
    if wants_page(request):
        return refusal_page(request, title, refused, **context)
    return JsonResponse(refused.as_json(), status=refused.status)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the 404 page, which does not say whether the page is missing or only hidden from this user."""
    hint, back, word = "Check the address.", reverse("admin:index"), "Dashboard"
    if not admin.site.has_permission(request):
        hint, word = "There may be for whoever is signed in.", "Sign in"
    elif not request.user.is_superuser:  # type: ignore[union-attr]
        hint = "Check the address. If somebody sent it to you, ask them to make you a member of its project."
    query = request.META.get("QUERY_STRING")
    asked = f"{request.path}?{query}" if query else request.path
    message = f"There is nothing at {asked[:PATH_MAX]} that you may see."
    if request.method == "POST":
        message = "Nothing was done: what this form is about is gone, or you may not see it any more."
        hint = "Ask a maintainer of its project."
    refused = Refused("not_found", message, hint, status=404)
    return _answer(request, "Not found", refused, back=back, back_word=word)


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the admin's 403 page, which says which right is missing."""
    view = getattr(request.resolver_match, "func", None)
    owner = getattr(view, "model_admin", None)
    takes = "It takes a higher role in the project."
    if isinstance(owner, SuperuserAdmin):
        takes = "Only superusers may."
    refused = Refused("no_right", f"You may not open {request.path[:PATH_MAX]}.", takes, status=403)
    return _answer(request, "Not allowed", refused, back=reverse("admin:index"), back_word="Dashboard")


def form_expired(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the 403 page for a form without its CSRF cookie, or from another site."""
    refused = Refused(
        "form_expired",
        "Nothing was done: this form is no longer valid, or your browser sent no cookie with it.",
        "What you typed is kept in this browser. Go back and send it again.",
        status=403,
    )
    back = came_from(request) or reverse("admin:index")
    return _answer(request, "Send it again", refused, back=back, rights=None)


def methods_in_words(get_response: GetResponse) -> GetResponse:
    """Replace an empty 405 answer by a page that leads back to the page of the form (middleware)."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        is_bare = response.status_code == 405 and not getattr(response, "content", b"")
        if not is_bare or request.path.startswith(API) or request.method != "GET":
            return response
        refused = Refused(
            "form_only", "This address only takes what a form sends.", "Go back to its page.", status=405
        )
        page = _answer(request, "Nothing to see", refused, back=_page_above(request.path))
        page.headers["Allow"] = response.headers["Allow"]
        return page

    return middleware


def _page_above(path: str) -> str:
    """Return the nearest path above this one that resolves."""
    while (path := path.rstrip("/").rpartition("/")[0] + "/") != "/":
        try:
            resolve(path)
        except Resolver404:
            continue
        return path
    return reverse("admin:index")

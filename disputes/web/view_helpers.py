"""What all pages share: who may come in, how a page is shown, and where to go next."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib import admin, messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import SuspiciousOperation
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    UnreadablePostError,
)
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods

from disputes.web.rights import Rights
from tasks.access import formerly, my_projects, projects_for, role_in
from tasks.database.prepared import Prepared
from tasks.errors import Invalid, Refused
from tasks.models import Project, Task
from tasks.models.task import parts_of

FRAME, NO_FRAME = "unfold/layouts/base.html", "unfold/layouts/unauthenticated.html"


def staff_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return the view for people who are signed in, with nothing of it kept in a browser's cache.

    Others go to the admin's sign-in page and from there back to the page; after a POST, to the page with the
    form. A script gets 401 instead, because it would take the sign-in page for its answer.
    """
    inside = admin.site.admin_view(view)

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if admin.site.has_permission(request):
            return inside(request, *args, **kwargs)
        response = _signed_out(request)
        add_never_cache_headers(response)
        return response

    return answer


# sent.js shows what holds only if scripts run.
SIGNED_OUT = SafeString(
    "You are signed out, so nothing was done. Sign in to go on."
    "<span data-kept hidden> What you typed is kept.</span>"
    "<noscript> Scripts are off, so what you typed is not kept: go back first and copy it.</noscript>"
)


def _signed_out(request: HttpRequest) -> HttpResponse:
    if not wants_page(request):
        refused = Refused("signed_out", "You are signed out.", "Reload the page to sign in.", status=401)
        return JsonResponse(refused.as_json(), status=401)
    if request.method == "POST":
        messages.info(request, SIGNED_OUT)
    return redirect_to_login(here_or_form(request), reverse("admin:login"))


def here_or_form(request: HttpRequest) -> str:
    """Return the address to come back to: of this page, or after a POST of the page with the form."""
    if request.method == "POST":
        return next_url(request, came_from(request) or reverse("admin:index"))
    return request.get_full_path()


def wants_page(request: HttpRequest) -> bool:
    """Whether a person reads the answer: browsers ask for HTML when they navigate, scripts do not."""
    return "text/html" in request.headers.get("Accept", "text/html")


def came_from(request: HttpRequest) -> str:
    """Return the path of our page with the link or the form, or "" if the browser does not say."""
    referer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referer, allowed_hosts={request.get_host()}):
        return ""
    parts = urlsplit(referer)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def page(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Render the template in the admin's frame; without a sidebar, nothing is counted for one."""
    request.has_no_sidebar = context.get("is_nav_sidebar_enabled") is False  # type: ignore[attr-defined]
    return render(request, template, {**admin.site.each_context(request), **context}, status=status)


def not_allowed(request: HttpRequest, refused: Refused) -> HttpResponse:
    """Show the page that says why somebody may not do this, and who can change that."""
    return refusal_page(request, "Not allowed", refused)


def refusal_page(request: HttpRequest, title: str, refused: Refused, **context: Any) -> HttpResponse:
    """Show a refusal on a page of its own, in the admin's frame if the person is signed in."""
    known = {
        "title": title, "refused": refused, "layout": FRAME, "rights": None, "texts": texts_in(request),
    }  # fmt: skip
    if not admin.site.has_permission(request):
        known |= {"layout": NO_FRAME, "is_nav_sidebar_enabled": False}
    elif refused.status == 403:
        known["rights"] = Rights(request.user)
    return page(request, "disputes/refused.html", known | context, refused.status)


def texts_in(request: HttpRequest) -> str:
    """Return the texts of more than one word in the form that a person who is signed in has sent.

    No page that says that something was not done may lose them. Of what nobody typed, only a bulk's items and
    its query have blanks.
    """
    if not admin.site.has_permission(request):
        return ""
    fields = fields_in(request)
    typed = [values for name, values in fields if name not in {"item", "query"} and "password" not in name]
    texts = [text.strip() for values in typed for text in values]
    return "\n\n".join(text for text in texts if len(text.split()) > 1).replace("\0", "")


def fields_in(request: HttpRequest) -> list[tuple[str, list[str]]]:
    """Return the fields of the form that was sent; of one that cannot be read, which is refused, none."""
    try:
        return list(request.POST.lists()) if request.method == "POST" else []
    except (SuspiciousOperation, UnreadablePostError, MultiPartParserError):
        return []


def next_url(request: HttpRequest, otherwise: str) -> str:
    """Return where the form or the URL says to go next, if that is a page of ours, else `otherwise`."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if is_ours else otherwise


def refuses(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view that shows a Refused as a page of its own unless the view handles it.

    It refuses a form that holds NUL, which no browser sends and no database takes.
    """

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if moved := _filtered_by_present_name(request):
            return redirect(moved)
        try:
            if any("\0" in value for _, values in request.POST.lists() for value in values):
                raise Invalid("no_text", "The form holds a character that is no text.", "Leave it out.")
            return view(request, *args, **kwargs)
        except Refused as error:
            return refusal_page(request, "Not allowed" if error.status == 403 else "Not done", error)
        except Http404:
            if moved := _moved_to(request, kwargs):
                return HttpResponseRedirect(moved, status=307)  # which a browser sends a form to again
            raise

    return answer


def _moved_to(request: HttpRequest, named: dict[str, Any]) -> str:
    """Return the address of the page by its project's present short name, or "" if it had no other before."""
    slug, number = parts_of(named.get("ref", "")) or (named.get("slug", ""), None)
    project = formerly(request.user, slug)
    if project is None or request.resolver_match is None:
        return ""
    now = {"slug": project.slug} if number is None else {"ref": f"{project.slug}-{number}"}
    path = reverse(request.resolver_match.view_name, kwargs=named | now)
    return f"{path}?{request.META['QUERY_STRING']}" if request.META["QUERY_STRING"] else path


def _filtered_by_present_name(request: HttpRequest) -> str:
    """Return the address with the present name if it filters by an earlier one of a project, else ""."""
    slug = request.GET.get("project", "")
    if request.method != "GET" or not slug or any(slug == each.slug for each in my_projects(request)):
        return ""
    if (project := formerly(request.user, slug)) is None:
        return ""
    query = request.GET.copy()
    query["project"] = project.slug
    return f"{request.path}?{query.urlencode()}"


def _staff_view(*methods: str) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    return lambda view: staff_only(require_http_methods(methods)(refuses(view)))


# A page that only shows, what a form is sent to, and a page that shows a form and takes it.
staff_get = _staff_view("GET", "HEAD")
staff_post = _staff_view("POST")
staff_form = _staff_view("GET", "HEAD", "POST")


def attached(reply: HttpResponse, name: str) -> HttpResponse:
    """Return the reply as a file of that name to download."""
    reply["Content-Disposition"] = f'attachment; filename="{name}"'
    return reply


def project_of(request: HttpRequest, slug: str) -> Project:
    """Return the project of that name if the person may see it. Raises Http404."""
    return get_object_or_404(projects_for(request.user), slug=slug)


def read_with(columns: Callable[[], dict[str, Any]]) -> Prepared:
    """Return the query for a task by slug and number, with `columns`."""

    def named(slug: Any, number: Any) -> QuerySet[Task]:
        tasks = Task.objects.filter(project__slug=slug, number=number)
        return tasks.select_related("project", "section").annotate(**columns())

    return Prepared(named)


_by_name = read_with(dict)


def task_of(request: HttpRequest, ref: str, query: Prepared = _by_name) -> Task:
    """Return the task of that name (ledger-214) if the person may see it, read by `query`. Raises Http404."""
    name = parts_of(ref)
    task: Task | None = query.first(*name) if name else None
    if task is None or not role_in(request, task.project_id):
        raise Http404(f"There is no task {ref}.")
    return task

"""The views of a project's board."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from agents.web import board
from disputes.web.view_helpers import page, staff_get
from tasks.access import my_projects, projects_for, role_in
from tasks.errors import Refused
from tasks.models import Project, Task

LAST = "board-project"
KEYS = [
    ("HJKL", "Left, down, up, right"),
    (["Enter"], "Open the task"),
    (["Shift", "H"], "Move the card to the left"),
    (["Shift", "L"], "Move the card to the right"),
    ("/", "Search"),
    ("?", "This list"),
]


@staff_get
def boards(request: HttpRequest) -> HttpResponse:
    """Redirect to the board of the project that is named, or of the one viewed last, or of the first."""
    mine = projects_for(request.user)
    wanted = request.GET.get("project") or request.COOKIES.get(LAST, "")
    project = mine.filter(slug=wanted).first() or mine.order_by("name").first()
    if project is None:
        return page(request, "agents/no_board.html", {"title": "Board"})
    return redirect("board", project.slug)


@staff_get
def board_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the tasks of a project in columns."""
    mine = my_projects(request)
    project = next((each for each in mine if each.slug == slug), None)
    if project is None:
        raise Http404(f"There is no project {slug}.")
    response = show_board(request, project, projects=mine)
    if request.COOKIES.get(LAST) != slug:  # the session would be written to the database
        kept = {"max_age": settings.SESSION_COOKIE_AGE, "secure": settings.SESSION_COOKIE_SECURE}
        response.set_cookie(LAST, slug, httponly=True, samesite="Lax", **kept)
    return response


def show_board(
    request: Any,
    project: Project,
    *,
    projects: list[Project] | None = None,
    refused: Refused | None = None,
    note: str = "",
    moved: Task | None = None,
) -> HttpResponse:
    """Show the board; after a refusal, with its reason and what was typed."""
    request.board_sections = list(project.sections.order_by("rank").values_list("pk", "title"))
    request.board_disputes = board.disputes_in(project)
    asked = board.BoardFilter(request.GET, queryset=Task.objects.filter(project=project), request=request)
    context = {
        "title": f"Board of {project.name}",
        "is_nav_sidebar_enabled": False,
        "keys": KEYS,
        "project": project,
        "projects": projects or [project],
        "form": asked.form,
        "is_filtered": any(request.GET.get(name) for name in asked.filters),
        "board": board.board_of(project, asked.qs, role_in(request, project.pk)),
        "refused": refused,
        "note": note,
        "moved": moved,
    }
    return page(request, "agents/board.html", context, refused.status if refused else 200)

"""The page of a project's rounds, and the page of a single round."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from agents.web.rounds import figures
from agents.web.rounds.figures import SessionPage
from disputes.web.view_helpers import page, project_of, staff_get
from tasks.models import Project, Task
from tasks.text.numbers import whole_number


@staff_get
def rounds(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the rounds on a timeline, the gaps, and whether the session is coming to an end."""
    project = project_of(request, slug)
    if project.kind != Project.Kind.DOCUMENTS:
        messages.info(request, f"{project.name} is a project of code, which has no rounds.")
        return redirect("project", project.slug)
    found = _session_page(request, project)
    context = {
        "title": f"Rounds of {project.name}", "project": project, "page": found, "query": found.query,
    }  # fmt: skip
    return page(request, "agents/rounds/rounds.html", context)


def _session_page(request: HttpRequest, project: Project) -> SessionPage:
    """Return the session that `?session=` names, or the newest."""
    named = request.GET.get("session", "")
    try:
        return SessionPage(project, whole_number(named) or -1 if named else None)
    except Task.DoesNotExist:
        raise Http404 from None


@staff_get
def one_round(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show the documents of one round side by side, and what it changed."""
    project = project_of(request, slug)
    found = _session_page(request, project)
    row = next((each for each in found.rounds if each.number == number and not each.taken_back), None)
    if row is None:
        raise Http404
    written, judged = figures.papers_of(row)
    there = figures.numbers(found.rounds)
    context = {
        "title": f"Round {number} of {project.name}", "project": project, "row": row, "query": found.query,
        "written": written, "judged": judged, "diff": figures.change_of(row),
        "before": max((each for each in there if each < number), default=None),
        "after": min((each for each in there if each > number), default=None),
    }  # fmt: skip
    return page(request, "agents/rounds/round.html", context)

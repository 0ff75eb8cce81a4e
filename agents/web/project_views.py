"""The overview of a project, and bringing tasks into it from a TODO.md that is pasted."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_safe

from agents.web.project import Overview
from disputes.web.view_helpers import page, refuses, staff_only
from tasks.access import MAINTAIN, projects_for, require_role
from tasks.admin.base import role_in
from tasks.events import Actor
from tasks.models import Project
from tasks.todo.format import TodoError
from tasks.todo.importing import ImportReport, import_todo

TODO_MAX = 500_000  # characters
SHOWN = 200  # tasks and notes of a preview


def _project(request: HttpRequest, slug: str) -> Project:
    """A project that the person may see. Raises Http404."""
    return get_object_or_404(projects_for(request.user), slug=slug)


@staff_only
@require_safe
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """How far the project is, what is under way, and what to do next."""
    project = _project(request, slug)
    context = {
        "title": project.name, "project": project,
        "page": Overview(project, request.user, role_in(request, project.pk)),
    }  # fmt: skip
    return page(request, "agents/project.html", context)


@staff_only
@require_http_methods(["GET", "HEAD", "POST"])
@refuses
def import_tasks(request: HttpRequest, slug: str) -> HttpResponse:
    """Paste a TODO.md: a look at what would come of it, with its faults by line, then the import."""
    project = _project(request, slug)
    require_role(role_in(request, project.pk), project, MAINTAIN, "import tasks")
    text = request.POST.get("text", "").replace("\r\n", "\n")
    context = {
        "title": f"Import tasks into {project.name}",
        "project": project,
        "text": text,
        "max": TODO_MAX,
    }
    if request.method != "POST":
        return page(request, "agents/import_tasks.html", context)
    if not text.strip() or len(text) > TODO_MAX:
        fault = "Nothing was pasted." if not text.strip() else f"More than {TODO_MAX:,} characters."
        return page(request, "agents/import_tasks.html", context | {"fault": fault}, 422)
    only_look = "import" not in request.POST
    try:
        report = _imported(project, text, request, only_look=only_look)
    except TodoError as error:
        faults = {"problems": error.problems[:SHOWN], "problem_count": len(error.problems)}
        return page(request, "agents/import_tasks.html", context | faults, 422)
    if only_look:
        created = list(report.created[:SHOWN])
        return page(request, "agents/import_tasks.html", context | {"report": report, "created": created})
    for note in report.notes[:5]:
        messages.info(request, note)
    count = len(report.created)
    created = "1 task" if count == 1 else f"{count} tasks"
    messages.success(request, f"{created} created, {len(report.updated)} updated.")
    return redirect("board", slug)


def _imported(project: Project, text: str, request: HttpRequest, *, only_look: bool) -> ImportReport:
    """What the import did, or what it would do: then all of it is taken back. Raises TodoError."""
    with transaction.atomic():
        report = import_todo(project, text, actor=Actor.person(request.user))
        transaction.set_rollback(only_look)
    return report

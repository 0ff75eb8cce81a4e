"""The overview of a project, and importing pasted tasks and rounds into it."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from agents.web.project import Overview
from disputes.importing.folder import SessionFolder, session_of_text
from disputes.importing.rows import import_session, read_session
from disputes.web.view_helpers import page, project_of, staff_form, staff_get, staff_post
from tasks.access import MAINTAIN, require_role, role_in
from tasks.events import Actor
from tasks.models import Project
from tasks.text.counting import counted
from tasks.text.regex import regex
from tasks.todo import following
from tasks.todo.format import TodoError
from tasks.todo.importing import ImportReport, import_todo
from tasks.todo.lists import count_boxes, with_boxes

TODO_MAX = 500_000  # characters
SHOWN = 200  # tasks and notes of a preview
NAME = regex(r"\w[\w .-]{0,79}")  # the name of a session
LOOK_FIRST = "Look at what it would do, below, and import then."
OTHERWISE = (
    "The text or the project is another than was shown. Look at what it would do now, and import then."
)


@staff_get
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """Show how far the project is, what is under way, and what to do next."""
    project = project_of(request, slug)
    context = {
        "title": f"Project {project.name}", "project": project,
        "page": Overview(project, request.user, role_in(request, project.pk)),
    }  # fmt: skip
    return page(request, "agents/project.html", context)


@staff_form
def import_tasks(request: HttpRequest, slug: str) -> HttpResponse:
    """Import a pasted TODO.md: first show what it would do, with its faults by line, then do it."""
    project = project_of(request, slug)
    require_role(role_in(request, project.pk), project, MAINTAIN, "import tasks")
    text = request.POST.get("text", "").replace("\r\n", "\n")
    if "guess" in request.POST:
        text = with_boxes(text)
    context = {
        "title": f"Import tasks into {project.name}",
        "project": project,
        "text": text,
        "boxes": count_boxes(text) if len(text) <= TODO_MAX else 0,
        "max": TODO_MAX,
    }
    if request.method != "POST":
        return page(request, "agents/import_tasks.html", context)
    if not text.strip() or len(text) > TODO_MAX:
        fault = "Nothing was pasted." if not text.strip() else f"More than {TODO_MAX:,} characters."
        return page(request, "agents/import_tasks.html", context | {"fault": fault}, 422)
    shown = request.POST.get("shown", "") if "import" in request.POST else ""
    try:
        report, is_done = _imported(project, text, request, shown)
    except TodoError as error:
        context |= {"problems": error.problems[:SHOWN], "problem_count": len(error.problems)}
        return page(request, "agents/import_tasks.html", context, 422)
    if not is_done:
        context |= {"report": report, "created": list(report.created[:SHOWN]), "shown": report.digest(text)}
        if "import" in request.POST:
            context["fault"] = OTHERWISE if shown else LOOK_FIRST
        status = 409 if "import" in request.POST else 200
        return page(request, "agents/import_tasks.html", context, status)
    for note in report.notes[:5]:
        messages.info(request, note)
    count = len(report.created)
    created = counted(count, "task")
    messages.success(request, f"{created} created, {len(report.updated)} updated.")
    return redirect("board", slug)


def _imported(project: Project, text: str, request: HttpRequest, shown: str) -> tuple[ImportReport, bool]:
    """Import the text and return the report, and whether the result is what was shown.

    If it is not, everything is rolled back, and the report says what the import would do. Raises TodoError.
    """
    with transaction.atomic():
        report = import_todo(project, text, actor=Actor.person(request.user))
        is_shown = shown == report.digest(text)
        transaction.set_rollback(not is_shown)
    return report, is_shown


@staff_post
def let_pass(request: HttpRequest, slug: str) -> HttpResponse:
    """Accept a version of the followed TODO.md that landed work changed."""
    project = project_of(request, slug)
    require_role(role_in(request, project.pk), project, MAINTAIN, "let the list of tasks pass")
    following.grant(project, request.POST.get("sha", ""), user=request.user)
    messages.success(request, "A host takes the file up at its next look.")
    return redirect("project", slug)


@staff_form
def import_rounds(request: HttpRequest, slug: str) -> HttpResponse:
    """Import pasted documents of rounds: first show how they are understood, then import exactly that."""
    project = project_of(request, slug)
    require_role(role_in(request, project.pk), project, MAINTAIN, "import rounds")
    text = request.POST.get("text", "").replace("\r\n", "\n")
    name = request.POST.get("name", "").strip()
    context = {
        "title": f"Import rounds into {project.name}", "project": project, "text": text, "name": name,
        "max": TODO_MAX,
    }  # fmt: skip
    template = "agents/import_rounds.html"
    if request.method != "POST":
        return page(request, template, context)
    session = session_of_text(name, text)
    if fault := _fault_of(session, text):
        return page(request, template, context | {"fault": fault}, 422)
    reading = read_session(project, session)
    context["reading"] = reading
    if session.unreadable:
        return page(request, template, context, 422)
    if "import" not in request.POST:
        return page(request, template, context)
    if request.POST.get("shown") != reading.digest:
        fault = OTHERWISE if request.POST.get("shown") else LOOK_FIRST
        return page(request, template, context | {"fault": fault}, 409)
    report = import_session(project, session, actor=Actor.person(request.user))
    messages.success(request, f"New: {report.summary}." if report.counts else "Nothing is new.")
    return redirect("board", slug)


def _fault_of(session: SessionFolder, text: str) -> str:
    if len(text) > TODO_MAX:
        return f"More than {TODO_MAX:,} characters."
    if not NAME.fullmatch(session.name):
        return "The session needs a name of letters, digits, blanks, points and hyphens."
    if not session.documents:
        return "No document was pasted: each begins with a line like “=== round_001/reviewer.md”."
    return ""

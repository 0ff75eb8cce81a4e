"""The page of a task, its events and its diff, and what people do to it by hand."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.web import moves
from agents.web import task as pages
from agents.web.board_views import show_board
from disputes.web.view_helpers import next_url, page, staff_get, staff_post, task_of
from tasks.access import role_in
from tasks.errors import Refused
from tasks.text.numbers import whole_number

BOARD = "board"
KEYS = [("O", "Open the dispute"), ("V", "Whole diff"), ("N", "Comment"), ("?", "This list")]


@staff_get
def task_page(request: HttpRequest, ref: str) -> HttpResponse:
    """Show where the task stands and how it got there."""
    return _show(request, ref)


def _show(request: HttpRequest, ref: str, refused: Refused | None = None, note: str = "") -> HttpResponse:
    task = task_of(request, ref, pages.FOUND)
    context = {
        "title": f"Task {task.ref}",
        "keys": KEYS,
        "task": task,
        "page": pages.TaskPage(task, request.user, role_in(request, task.project_id)),
        "refused": refused,
        "note": note,
        "note_max": moves.NOTE_MAX,
    }
    return page(request, "agents/task.html", context, refused.status if refused else 200)


@staff_get
def events_page(request: HttpRequest, ref: str) -> HttpResponse:
    """Show everything that was recorded about the task, newest first."""
    task = task_of(request, ref)
    before = whole_number(request.GET.get("before", ""))
    events = pages.events_of(task, before, pages.EVENTS_PER_PAGE + 1)
    shown = events[: pages.EVENTS_PER_PAGE]
    older = shown[-1].pk if len(events) > len(shown) else None
    context = {
        "title": f"Events of {task.ref}", "task": task, "events": shown, "before": before, "older": older,
    }  # fmt: skip
    return page(request, "agents/events.html", context)


@staff_get
def diff_page(request: HttpRequest, ref: str) -> HttpResponse:
    """Show the whole diff of the last submission, or of the one that `?submission=` names."""
    task = task_of(request, ref)
    submission, diff = pages.whole_diff(task, whole_number(request.GET.get("submission", "")))
    context = {"title": f"Diff of {task.ref}", "task": task, "submission": submission, "diff": diff}
    return page(request, "agents/diff.html", context)


@staff_post
def move(request: HttpRequest, ref: str, verb: str) -> HttpResponse:
    """Defer, resume, cancel, finish or reopen the task; after a refusal, say why and keep what was typed."""
    task = task_of(request, ref)
    role = role_in(request, task.project_id)
    moves.check_right(task, verb, role)
    note, version = request.POST.get("note", ""), request.POST.get("version", "")
    on_board = request.POST.get("from") == BOARD
    try:
        moves.carry_out(task, verb, user=request.user, role=role, note=note, version=version)
    except Refused as refused:
        if on_board:
            task.refresh_from_db()
            return show_board(request, task.project, refused=refused, note=note, moved=task)
        return _show(request, ref, refused, note)
    messages.success(request, f"{task.ref} is {task.get_status_display().lower()} now.")
    if on_board:
        board = next_url(request, reverse("board", args=[task.project.slug]))
        return redirect(f"{board}#{task.ref}")
    return redirect("task", task.ref)

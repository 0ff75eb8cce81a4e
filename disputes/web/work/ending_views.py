"""The page of a project's end, and its three buttons."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from disputes.completion import endings
from disputes.sessions import finishing
from disputes.web.view_helpers import staff_only
from disputes.web.work.ending import EndingPage, Typed
from tasks.access import MAINTAIN, projects_for, require
from tasks.errors import Refused
from tasks.models import Project

TEXT_MAX = 2_000
RATIONALE, PHRASE = "rationale-", "phrase-"


def _project(request: HttpRequest, slug: str) -> Project:
    """A project that the person may see."""
    return get_object_or_404(projects_for(request.user), slug=slug)


def _page(
    request: HttpRequest, project: Project, typed: Typed | None = None, refused: Refused | None = None
) -> HttpResponse:
    """The page; after a refusal with what was typed, and the refusal's status."""
    page = EndingPage(project, request.user, typed or Typed())
    context = {
        "title": f"End {project.name}", "is_nav_sidebar_enabled": False, "page": page, "project": project,
        "refused": refused,
    }  # fmt: skip
    return render(
        request,
        "disputes/ending.html",
        {**admin.site.each_context(request), **context},
        status=refused.status if refused else 200,
    )


def _words(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "")[:TEXT_MAX]


def _typed(request: HttpRequest) -> Typed:
    """Everything that was sent. The list counts as confirmed only with its tick."""
    sent = request.POST
    return Typed(
        kind=sent.get("exit", "")[:20],
        phrases={
            name.removeprefix(PHRASE): _words(request, name) for name in sent if name.startswith(PHRASE)
        },
        rationales={
            name.removeprefix(RATIONALE): _words(request, name) for name in sent if name.startswith(RATIONALE)
        },
        confirmed=tuple(sent.getlist("listed")) if "confirm_list" in sent else (),
        checked=tuple(sent.getlist("check")),
        reason=_words(request, "reason"),
        confirm="confirm" in sent,
        resume_reason=_words(request, "resume_reason"),
    )


@staff_only
@require_http_methods(["GET", "HEAD", "POST"])
def ending(request: HttpRequest, slug: str) -> HttpResponse:
    """What is left and which ends are open; sent, the project ends as the chosen one."""
    project = _project(request, slug)
    if request.method != "POST":
        return _page(request, project)
    typed = _typed(request)
    try:
        require(request.user, project, MAINTAIN, "end the work")
        if not typed.kind:
            raise Refused("incomplete", "Choose an end.", "What you typed is kept.", status=422)
        ended = endings.end_project(project, typed.kind, user=request.user, **_arguments(typed))
    except Refused as refused:
        return _page(request, project, typed, refused)
    messages.success(request, f"{ended.name} has ended: {ended.get_exit_type_display().lower()}.")
    return redirect("project-end", slug)


def _arguments(typed: Typed) -> dict[str, Any]:
    return {
        "typed": typed.phrases,
        "rationales": typed.rationales,
        "confirmed": typed.confirmed,
        "checked": typed.checked,
        "reason": typed.reason,
        "confirm": typed.confirm,
    }


@staff_only
@require_POST
def extend(request: HttpRequest, slug: str) -> HttpResponse:
    """More checkpoints for a project at its limit."""
    project = _project(request, slug)
    try:
        limit = endings.extend(project, user=request.user)
    except Refused as refused:
        return _page(request, project, None, refused)
    messages.success(request, f"{project.name} goes on; its limit is {limit} checkpoints now.")
    return redirect("project-end", slug)


@staff_only
@require_POST
def finish(request: HttpRequest, slug: str) -> HttpResponse:
    """Put off the gaps that are left, so that what a session has accepted lands."""
    project = _project(request, slug)
    try:
        found = finishing.finish(project, user=request.user)
    except Refused as refused:
        return _page(request, project, None, refused)
    codes = ", ".join(gap.gap for gap in found.left) or "None"
    messages.success(request, f"Put off: {codes}. The final review is next; then the session lands.")
    return redirect("project-end", slug)


@staff_only
@require_POST
def resume(request: HttpRequest, slug: str) -> HttpResponse:
    """Take an ended project up again."""
    project = _project(request, slug)
    typed = _typed(request)
    try:
        endings.resume_project(project, user=request.user, reason=typed.resume_reason)
    except Refused as refused:
        return _page(request, project, typed, refused)
    messages.success(request, f"{project.name} is active again.")
    return redirect("project-end", slug)

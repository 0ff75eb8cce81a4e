"""The page of a project's end, and its buttons."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from disputes.completion import endings
from disputes.sessions import finishing
from disputes.web.view_helpers import page, project_of, staff_form, staff_post
from disputes.web.work.ending import EndingPage, Typed
from tasks.access import MAINTAIN, require
from tasks.errors import Invalid, Refused
from tasks.models import Project
from tasks.text.counting import counted

TEXT_MAX = 2_000
RATIONALE, PHRASE = "rationale-", "phrase-"


def _page(
    request: HttpRequest, project: Project, typed: Typed | None = None, refused: Refused | None = None
) -> HttpResponse:
    """Show the page; after a refusal, with what was typed and the refusal's status."""
    context = {
        "title": f"End {project.name}", "is_nav_sidebar_enabled": False, "project": project,
        "page": EndingPage(project, request.user, typed or Typed()), "refused": refused,
    }  # fmt: skip
    return page(request, "disputes/ending.html", context, refused.status if refused else 200)


def _after(
    request: HttpRequest, slug: str, act: Callable[[Project], str], typed: Typed | None = None
) -> HttpResponse:
    """Do it and return to the page with a message; if it is refused, show the page with what was typed."""
    project = project_of(request, slug)
    try:
        said = act(project)
    except Refused as refused:
        return _page(request, project, typed, refused)
    messages.success(request, said)
    return redirect("project-end", slug)


def _words(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "")[:TEXT_MAX]


def _typed(request: HttpRequest) -> Typed:
    """Return everything that was sent. The list counts as confirmed only if its box is ticked."""
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


@staff_form
def ending(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what is left and which exits are open; a POST ends the project by the chosen one."""
    if request.method != "POST":
        return _page(request, project_of(request, slug))
    typed = _typed(request)

    def end(project: Project) -> str:
        require(request.user, project, MAINTAIN, "end the work")
        if not typed.kind:
            raise Invalid("incomplete", "Choose an end.", "What you typed is kept.")
        ended = endings.end_project(project, typed, user=request.user)
        return f"{ended.name} has ended: {ended.get_exit_type_display().lower()}."

    return _after(request, slug, end, typed)


@staff_post
def extend(request: HttpRequest, slug: str) -> HttpResponse:
    """Allow more checkpoints to a project at its limit."""

    def extended(project: Project) -> str:
        limit = endings.extend(project, user=request.user)
        return f"{project.name} goes on; its limit is {counted(limit, 'checkpoint')} now."

    return _after(request, slug, extended)


@staff_post
def finish(request: HttpRequest, slug: str) -> HttpResponse:
    """Defer the gaps that are left, so that what a session has accepted lands."""

    def put_off(project: Project) -> str:
        codes = ", ".join(gap.gap for gap in finishing.finish(project, user=request.user).left)
        return f"Put off: {codes or 'None'}. The final review is next; then the session lands."

    return _after(request, slug, put_off)


@staff_post
def resume(request: HttpRequest, slug: str) -> HttpResponse:
    """Resume a project that has ended."""
    typed = _typed(request)

    def resumed(project: Project) -> str:
        endings.resume_project(project, user=request.user, reason=typed.resume_reason)
        return f"{project.name} is active again."

    return _after(request, slug, resumed, typed)

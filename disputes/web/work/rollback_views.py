"""The page of a task's rollback, and its three buttons."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from disputes.completion import rollbacks
from disputes.models import Decision
from disputes.sessions.gaps import session_of
from disputes.web.view_helpers import not_allowed, page, staff_form, staff_post, task_of
from disputes.web.work.rollback import RollbackPage
from tasks.access import RULE, no_right
from tasks.errors import Invalid, Refused
from tasks.models import StaleTask, Task
from tasks.states import IllegalMove
from tasks.text.numbers import whole_number

ROUNDS_MAX = 32_767  # what the column of a round holds


def _page(
    request: HttpRequest, task: Task, typed: dict[str, str] | None = None, refused: Refused | None = None
) -> HttpResponse:
    """Show the page; after a refusal, with what was typed and the refusal's status."""
    shown = RollbackPage(task, request.user, typed or {})
    if not shown.may_rule:
        return not_allowed(request, no_right(task.project, RULE, "take rounds back"))
    context = {
        "title": f"Rounds of {task.ref}", "is_nav_sidebar_enabled": False, "page": shown, "task": task,
        "typed": typed or {}, "refused": refused,
    }  # fmt: skip
    return page(request, "disputes/rollback.html", context, refused.status if refused else 200)


def _refusal(request: HttpRequest, task: Task, typed: dict[str, str], error: Exception) -> HttpResponse:
    if not isinstance(error, Refused):
        error = Refused("moved_on", str(error), "What you typed is kept. Look at the rounds again.")
    task.refresh_from_db()
    return _page(request, task, typed, error)


@staff_form
def rollback(request: HttpRequest, ref: str) -> HttpResponse:
    """Show what each round contains; a POST takes back the rounds after the chosen one."""
    task = task_of(request, ref)
    if request.method != "POST":
        if task.is_gap and (session := session_of(task.project)):
            messages.info(
                request, f"{task.ref} is a gap: its rounds are taken back with those of its session."
            )
            return redirect("task-rollback", session.ref)
        return _page(request, task)
    typed = {name: request.POST.get(name, "") for name in ("to_round", "reason", "version")}
    try:
        to_round, seen = whole_number(typed["to_round"]), whole_number(typed["version"])
        if to_round is None or to_round > ROUNDS_MAX:
            raise Invalid("incomplete", "Choose what to take back.", "What you typed is kept.")
        made = rollbacks.roll_back(
            task, to_round, user=request.user, reason=typed["reason"], version=-1 if seen is None else seen
        )
    except (Refused, IllegalMove, StaleTask) as error:
        return _refusal(request, task, typed, error)
    messages.success(request, f"{task.ref} begins round {made.to_round + 1} again.")
    return redirect("task-rollback", ref)


@staff_post
def reapply(request: HttpRequest, ref: str, pk: int) -> HttpResponse:
    """Repeat an archived ruling, as it was or with other words."""
    task = task_of(request, ref)
    decision = get_object_or_404(Decision, pk=pk, conflict__dispute__task=task)
    text = request.POST.get("text", "").replace("\r\n", "\n")[: rollbacks.TEXT_MAX]
    try:
        again = rollbacks.reapply(decision, user=request.user, text=text)
    except (Refused, IllegalMove, StaleTask) as error:
        return _refusal(request, task, {f"text-{pk}": text}, error)
    messages.success(
        request, f"{again.conflict.ref} is ruled {again.letter} again; the next prompt begins with it."
    )
    return redirect("task-rollback", ref)


@staff_post
def revert(request: HttpRequest, ref: str) -> HttpResponse:
    """Ask for a task that reverts what has landed."""
    task = task_of(request, ref)
    reason = request.POST.get("reason", "")
    try:
        made = rollbacks.make_revert_task(task, user=request.user, reason=reason)
    except Refused as error:
        return _refusal(request, task, {"revert_reason": reason}, error)
    messages.success(request, f"{made.ref} will take it back.")
    return redirect(reverse("admin:tasks_task_change", args=[made.pk]))

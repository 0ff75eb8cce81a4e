"""The pages of runs: the list, one run, its log as it grows, and the stop button."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from agents.loop import run_ends as verbs
from agents.models import Prompt, Run
from agents.web import costs, log, moves, runs
from disputes.web.view_helpers import next_url, page, staff_get, staff_post
from tasks.access import RULE, project_ids, require_role, role_in
from tasks.database.clock import estimated_time
from tasks.errors import Refused
from tasks.events import Actor
from tasks.states import Status
from tasks.text.numbers import whole_number


def _run(request: HttpRequest, pk: int) -> Run:
    """Return a run that the person may see. Raises Http404."""
    return get_object_or_404(runs.visible(request.user), pk=pk)


@staff_get
def runs_page(request: HttpRequest) -> HttpResponse:
    """Show what is under way, and what ended lately."""
    asked = runs.RunPageFilter(request.GET, queryset=runs.visible(request.user), request=request)
    before = whole_number(request.GET.get("before", ""))
    context = {
        "title": "Runs",
        "form": asked.form,
        "is_filtered": any(request.GET.get(name) for name in asked.filters),
        "before": before,
        "runs": runs.runs_page(asked.qs, project_ids(request, RULE), before),
    }
    return page(request, "agents/runs.html", context)


@staff_get
def run_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one run: its facts, its prompt, and its log."""
    run = _run(request, pk)
    may_stop = run.status != Run.Status.ENDED and role_in(request, run.project_id) in RULE
    prompt = Prompt.objects.filter(run=run).values_list("text", flat=True).first()
    context = {
        "title": f"Run {run.pk}",
        "run": run,
        "row": runs.RunRow(run, may_stop, estimated_time()),
        "log": log.end_of(run),
        "prompt": prompt or "",
    }
    return page(request, "agents/run.html", context)


@staff_get
def run_log(request: HttpRequest, pk: int) -> JsonResponse:
    """Return what is new in the log after `?after=MARK`, or else its end, and how the run is going."""
    run = _run(request, pk)
    mark = whole_number(request.GET.get("after", ""))
    part = log.end_of(run) if mark is None else log.after(run, mark)
    ended = run.status == Run.Status.ENDED
    cost = costs.of_run(run)
    return JsonResponse(
        {
            "text": part.text,
            "mark": part.mark,
            "more": part.has_more,
            "cut": part.is_cut,
            "ended": ended and not part.has_more,
            "state": log.state_of(run),
            "status": run.status,
            "silent": bool(log.silence_of(run)),
            "cost": cost.line if cost else "",
            "tokens": cost.tokens if cost else "",
        }
    )


@staff_post
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the host to end the run; with `defer`, also defer its task, so that the loop leaves it alone."""
    run = _run(request, pk)
    here = reverse("run", args=[run.pk])
    require_role(role_in(request, run.project_id), run.project, RULE, "stop runs")
    is_deferred = "defer" in request.POST
    try:
        if is_deferred:
            _defer(request, run)
        verbs.ask_to_stop(run, actor=Actor.person(request.user))
    except Refused as refused:
        deferred = (
            f"{run.task.ref} is deferred. " if is_deferred and run.task.status == Status.DEFERRED else ""
        )
        messages.warning(request, f"{deferred}{refused.message} {refused.hint}")
    else:
        messages.success(request, _told(run))
    return redirect(next_url(request, here))


def _defer(request: HttpRequest, run: Run) -> None:
    """Defer the run's task unless it is deferred already. Raises Refused if that is not possible."""
    if run.task.status != Status.DEFERRED:
        role, note = role_in(request, run.project_id), f"With run {run.pk}, which was stopped."
        moves.carry_out(run.task, "defer", user=request.user, role=role, note=note)


def _told(run: Any) -> str:
    ref, is_over = run.task.ref, run.status == Run.Status.ENDED
    done = f"Run {run.pk} is {'stopped' if is_over else 'asked to stop'}."
    if run.task.status == Status.DEFERRED:
        return f"{done} {ref} is deferred: nothing begins it until somebody resumes it on its page."
    return f"{done} The loop begins {ref} again; defer it to keep it still."

"""The page of a dispute: reading it, and ruling on it."""

from typing import Any

from django.contrib import messages
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from disputes import comparing, lowering, rulings
from disputes.forms import RulingForm, SynthesisForm
from disputes.models import Conflict, Decision, Dispute
from disputes.pages import queue
from disputes.pages.case import Case
from disputes.pages.code import parse_diff
from disputes.pages.site import next_url, not_allowed, page, staff_only
from disputes.pages.words import plain
from disputes.protocol.options import NOT_FOR_THE_CODER, Option
from disputes.protocol.synthesis import Source
from tasks.access import projects_for
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Finding, StaleTask
from tasks.states import IllegalMove

DISPUTE_KEYS = [
    ("ABCD", "Choose; cards that need hands have 1, 2, 3"),
    ("E", "Edit the text"),
    (["Ctrl", "Enter"], "Rule"),
    ("V", "Whole diff, and back"),
    ("JK", "Next and previous dispute"),
    ("U", "Undo the last ruling"),
    ("?", "This list"),
]


# --- Reading ----------------------------------------------------------------------------------------------


def _dispute(request: HttpRequest, pk: int) -> Dispute:
    """A dispute that the person may see."""
    visible = Dispute.objects.filter(project__in=projects_for(request.user))
    return get_object_or_404(queue.with_conflicts(visible), pk=pk)


def _conflict(dispute: Dispute, name: str) -> Conflict:
    """The conflict of the dispute with that name (C-9), or the one to show where none is named."""
    conflicts = list(dispute.conflicts.all())
    named = [conflict for conflict in conflicts if conflict.ref == name.upper()]
    conflict = next(iter(named), None) if name else queue.first_of(conflicts)
    if conflict is None:
        raise Http404(f"{dispute.ref} has no such conflict.")
    conflict.dispute = dispute
    return conflict


@staff_only
@require_safe
def dispute_page(request: HttpRequest, pk: int) -> HttpResponse:
    """A dispute: its first open conflict, or the one that `?conflict=C-9` names."""
    dispute = _dispute(request, pk)
    conflict = _conflict(dispute, request.GET.get("conflict", ""))
    draft = request.session.pop(_draft_key(conflict), None)
    return _case(request, dispute, conflict, RulingForm(initial=draft))


def _case(
    request: HttpRequest,
    dispute: Dispute,
    conflict: Conflict,
    form: RulingForm,
    *,
    refused: Refused | None = None,
    **typed: Any,
) -> HttpResponse:
    """The page of a conflict; after a refusal with what was typed, and the refusal's status.

    `typed` is what another form than the ruling's held: reason, finding, severity, synthesis.
    """
    case = Case(dispute, conflict, request.user)
    order = queue.order_for(request.user)
    place = order.index(dispute.pk) if dispute.pk in order else None
    option = form["option"].value() or ""
    context = {
        "title": f"{dispute.ref} {plain(dispute.question)}",
        "is_nav_sidebar_enabled": False,
        "keys": DISPUTE_KEYS,
        "case": case,
        "dispute": dispute,
        "conflict": conflict,
        "task": dispute.task,
        "form": form,
        "typed": form.is_bound and bool(option) and not case.is_open,
        "typed_letter": next((each.letter for each in case.options if each.option == option), ""),
        "refused": refused,
        "synthesis": SynthesisForm(),
        "reason": "",
        **typed,
        "place": None if place is None else place + 1,
        "places": len(order),
        "previous": order[place - 1] if place else None,
        "next": order[place + 1] if place is not None and place + 1 < len(order) else None,
    }
    return page(request, "disputes/dispute.html", context, refused.status if refused else 200)


@staff_only
@require_safe
def diff_page(request: HttpRequest, pk: int) -> HttpResponse:
    """The whole diff of what is disputed."""
    dispute = _dispute(request, pk)
    case = Case(dispute, _conflict(dispute, request.GET.get("conflict", "")), request.user)
    context = {
        "title": f"{dispute.ref} diff",
        "is_nav_sidebar_enabled": False,
        "case": case,
        "dispute": dispute,
        "diff": parse_diff(case.submission.diff if case.submission else ""),
    }
    return page(request, "disputes/diff.html", context)


# --- Ruling -----------------------------------------------------------------------------------------------


@staff_only
@require_POST
def preview(request: HttpRequest, pk: int) -> HttpResponse:
    """The lines with which the next coder prompt would begin."""
    dispute = _dispute(request, pk)
    conflict = _conflict(dispute, request.POST.get("conflict", ""))
    form = RulingForm(request.POST)
    if not Case(dispute, conflict, request.user).may_rule:
        return JsonResponse({"error": "You may not rule here."}, status=403)
    if not form.is_valid() or form.cleaned_data["option"] not in _offered(conflict):
        return JsonResponse({"error": "Choose an option first."}, status=422)
    chosen = form.chosen(conflict)
    if chosen["option"] in NOT_FOR_THE_CODER:
        return JsonResponse({"lines": []})
    chosen["text"] = chosen["text"] or rulings.text_of(conflict, chosen["option"])
    return JsonResponse({"lines": [plain(line) for line in rulings.preview(conflict, **chosen)]})


def _offered(conflict: Conflict) -> set[str]:
    return {option.option for option in rulings.options_of(conflict)}


@staff_only
@require_POST
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Rule on a conflict, then go on with the next. A refusal keeps what was typed."""
    dispute = _dispute(request, pk)
    conflict = _conflict(dispute, request.POST.get("conflict", ""))
    form = RulingForm(request.POST)
    order = queue.order_for(request.user)
    try:
        if not form.is_valid():
            raise Refused("incomplete", _first_error(form), "What you typed is kept.", status=422)
        decision = rulings.decide(
            conflict, user=request.user, shown=form.cleaned_data["shown"], **form.chosen(conflict)
        )
    except (Refused, IllegalMove, StaleTask) as error:
        return _refusal(request, conflict, form, error)
    about = plain(dispute.task.title) if dispute.task else dispute.project.name
    undoable = "You may undo it until a prompt uses it." if dispute.task else "It is carried out."
    messages.success(
        request,
        f"You ruled {queue.word_of(decision)} on {dispute.ref}, {about}. {undoable}",
        extra_tags=f"ruling-{decision.pk}" if dispute.task else "",
    )
    if decision.option == Option.CHECK_REVIEW:  # whose findings are to be weighed on this very page
        return redirect(_url(conflict))
    following = queue.next_after(dispute, order, request.user)
    return redirect("dispute", following.pk) if following else redirect("queue")


def _first_error(form: Form) -> str:
    return next(str(error) for errors in form.errors.values() for error in errors)


def _refusal(
    request: HttpRequest, conflict: Conflict, form: RulingForm, error: Exception, **typed: Any
) -> HttpResponse:
    """Say why nothing was done: on the conflict's page as it is now, or on a page of its own."""
    if not isinstance(error, Refused):
        error = Refused("moved_on", str(error), "What you typed is kept. Look at the task, then try again.")
    if error.status == 403:
        return not_allowed(request, error)
    dispute = _dispute(request, conflict.dispute_id)
    return _case(request, dispute, _conflict(dispute, conflict.ref), form, refused=error, **typed)


def _decision(request: HttpRequest, pk: int) -> Decision:
    """A ruling in a project that the person may see."""
    visible = Decision.objects.filter(conflict__dispute__project__in=projects_for(request.user))
    return get_object_or_404(visible.select_related("conflict__dispute__task__project"), pk=pk)


def _url(conflict: Conflict) -> str:
    return f"{reverse('dispute', args=[conflict.dispute_id])}?conflict={conflict.ref}"


@staff_only
@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a ruling back, as long as no prompt has used it."""
    decision = _decision(request, pk)
    try:
        if again := _reopened(decision.conflict):
            raise Refused("reopened", f"It was reopened as {again.ref}.", "Rule on that one.")
        conflict = rulings.undo(decision, user=request.user)
    except (Refused, IllegalMove, StaleTask) as error:
        return _refusal(request, decision.conflict, RulingForm(), error)
    messages.info(request, f"The ruling {queue.word_of(decision)} on {conflict.dispute.ref} is undone.")
    return redirect(next_url(request, _url(conflict)))


def _reopened(conflict: Conflict) -> Conflict | None:
    """The open conflict that names this one."""
    return conflict.reopened_as.filter(status=Conflict.Status.OPEN).first()


def _finding(request: HttpRequest, dispute: Dispute) -> Finding:
    """The finding of the dispute's task that the form names."""
    code = request.POST.get("finding", "")
    return get_object_or_404(Finding.objects.standing(), task=dispute.task, code=code)


@staff_only
@require_POST
def change_severity(request: HttpRequest, pk: int) -> HttpResponse:
    """Lower or raise a finding. What need not be settled any more is no conflict."""
    dispute = _dispute(request, pk)
    conflict = _conflict(dispute, request.POST.get("conflict", ""))
    finding = _finding(request, dispute)
    severity, reason = request.POST.get("severity", ""), request.POST.get("reason", "")
    try:
        lowering.change_severity(finding, severity, user=request.user, reason=reason)
    except (Refused, IllegalMove, StaleTask) as error:
        typed = {"weighing": finding.code, "severity": severity, "why": reason}
        return _refusal(request, conflict, RulingForm(), error, **typed)
    messages.success(request, f"{finding.code} is {severity} now.")
    return redirect(_url(conflict))


@staff_only
@require_POST
def confirm_same(request: HttpRequest, pk: int) -> HttpResponse:
    """Say whether a finding is an earlier one, raised again."""
    dispute = _dispute(request, pk)
    conflict = _conflict(dispute, request.POST.get("conflict", ""))
    finding = _finding(request, dispute)
    said = request.POST.get("same", "")
    try:
        if said not in {"yes", "no"}:
            raise Refused("incomplete", "Say whether it is the same.", "Press one of the two.", status=422)
        comparing.confirm_same(finding, user=request.user, same=said == "yes")
    except (Refused, IllegalMove, StaleTask) as error:
        return _refusal(request, conflict, RulingForm(), error)
    told = "is that point, raised again" if said == "yes" else "is a point of its own"
    messages.success(request, f"{finding.code} {told}.")
    return redirect(_url(conflict))


@staff_only
@require_POST
def propose(request: HttpRequest, pk: int) -> HttpResponse:
    """Hand in a synthesis, which is option C from then on."""
    dispute = _dispute(request, pk)
    conflict = _conflict(dispute, request.POST.get("conflict", ""))
    form = SynthesisForm(request.POST)
    try:
        if not form.is_valid():
            raise Refused("incomplete", _first_error(form), "What you typed is kept.", status=422)
        given = form.cleaned_data
        rulings.propose_synthesis(
            conflict, given["synthesis"], by=Source.HUMAN, actor=Actor.person(request.user),
            trade_off=given["trade_off"], covers_both=given["covers_both"],
        )  # fmt: skip
    except Refused as error:
        return _refusal(request, conflict, RulingForm(), error, synthesis=form)
    messages.success(request, f"Option C of {conflict.ref} is yours now.")
    return redirect(_url(conflict))


def _draft_key(conflict: Conflict) -> str:
    return f"ruling-{conflict.ref}"


@staff_only
@require_POST
def reopen(request: HttpRequest, pk: int) -> HttpResponse:
    """Open a new conflict that names the ruled one. What was typed for the old one comes along."""
    decision = _decision(request, pk)
    form, reason = RulingForm(request.POST), request.POST.get("reason", "")
    old = decision.conflict
    if again := _reopened(old):
        messages.info(request, f"{old.ref} was reopened already: this is {again.ref}.")
    else:
        try:
            again = rulings.reopen(decision, user=request.user, reason=reason)
        except (Refused, IllegalMove, StaleTask) as error:
            return _refusal(request, old, form, error, reason=reason)
    if form.is_valid():
        request.session[_draft_key(again)] = {**form.cleaned_data, "shown": ""}
    return redirect(_url(again))

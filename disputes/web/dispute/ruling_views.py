"""The views for ruling on a conflict, taking a ruling back, and reopening it."""

from django.contrib import messages
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from disputes import amendments, rulings
from disputes.models import Conflict, Decision
from disputes.protocol.rulings.options import Option
from disputes.web.dispute.conflict_page import ConflictPage
from disputes.web.dispute.forms import RulingForm, seconds_since
from disputes.web.dispute.views import card_to_rule, draft_key, needs_right, opened_key, refusal, url_of
from disputes.web.queue.neighbours import keep_filter, kept_filter, next_after, way
from disputes.web.view_helpers import next_url, staff_post
from tasks.access import projects_for
from tasks.errors import Invalid, Refused
from tasks.models import StaleTask
from tasks.states import IllegalMove
from tasks.text.unseen import plain


@staff_post
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Rule on a conflict, then go to the next one. A refusal keeps what was typed."""
    card = card_to_rule(request, pk)
    dispute, conflict, form = card.dispute, card.conflict, RulingForm(request.POST)
    blocks = dispute.blocks  # a ruling may let them go on
    is_read = form.is_valid()
    try:
        rulings.refuse_stale(conflict, request.POST.get("shown", ""))
        if not is_read:
            raise Invalid("incomplete", first_error(form), "What you typed is kept.")
        _needs_care(request, card, form)
        with transaction.atomic():
            decision = rulings.decide(
                conflict, user=request.user, shown=form.cleaned_data["shown"],
                seconds=seconds_since(form.cleaned_data["since"], conflict), **form.chosen(),
            )  # fmt: skip
            if form.cleaned_data["amend"]:
                amendments.ask(decision, user=request.user)
    except (Refused, IllegalMove, StaleTask) as error:
        return refusal(request, conflict, form, error)
    request.session.pop(opened_key(conflict), None)
    about = plain(dispute.task.title) if dispute.task else dispute.project.name
    undoable = "You may undo it until a prompt uses it." if dispute.task else "It is carried out."
    messages.success(
        request,
        f"You ruled {decision.word} on {dispute.ref}, {about}. {undoable}",
        extra_tags=f"ruling-{decision.pk}" if dispute.task else "",
    )
    if decision.option == Option.CHECK_REVIEW:  # the findings of the review are weighed on this same page
        return redirect(url_of(conflict))
    following = next_after(dispute, blocks, request)
    response = redirect("dispute", following.pk) if following else redirect(way(request))
    keep_filter(request, response, kept_filter(request))
    return response


def _needs_care(request: HttpRequest, card: ConflictPage, form: RulingForm) -> None:
    """Demand that for CRITICAL the code was opened and a reason typed, even to discard.

    Raises Refused: "code_unopened", "rationale_missing".
    """
    if not card.is_open or not card.needs_rationale:
        return
    opened = {form.cleaned_data["opened"], request.session.get(opened_key(card.conflict))}
    if card.needs_opening and card.code_mark not in opened:
        raise Invalid(
            "code_unopened", "This is CRITICAL, and you have not opened the code.",
            "Your text is kept. Open the code or the whole diff, then rule.",
        )  # fmt: skip
    if not form.cleaned_data["rationale"].strip():
        raise Invalid(
            "rationale_missing", "This is CRITICAL: say why.",
            "A sentence is enough; it stays with the ruling.",
        )  # fmt: skip


def first_error(form: Form) -> str:
    return next(str(error) for errors in form.errors.values() for error in errors)


def to_change(request: HttpRequest, pk: int) -> Decision:
    """Return a ruling in a project in which the person may rule. Raises Http404 or Refused("no_right")."""
    visible = Decision.objects.filter(conflict__dispute__project__in=projects_for(request.user))
    found = get_object_or_404(visible.select_related("conflict__dispute__task__project"), pk=pk)
    needs_right(request, found.conflict.dispute.project)
    return found


@staff_post
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a ruling back while no prompt has used it."""
    decision = to_change(request, pk)
    try:
        if again := _reopened(decision.conflict):
            raise Refused("reopened", f"It was reopened as {again.ref}.", "Rule on that one.")
        conflict = rulings.undo(decision, user=request.user)
    except (Refused, IllegalMove, StaleTask) as error:
        return refusal(request, decision.conflict, RulingForm(), error)
    messages.info(request, f"The ruling {decision.word} on {conflict.dispute.ref} is undone.")
    return redirect(next_url(request, url_of(conflict)))


def _reopened(conflict: Conflict) -> Conflict | None:
    """Return the open conflict that names this one, or None."""
    return conflict.reopened_as.open().first()


@staff_post
def reopen(request: HttpRequest, pk: int) -> HttpResponse:
    """Open a new conflict that names the ruled one. What was typed for the old one is kept."""
    decision = to_change(request, pk)
    form, reason = RulingForm(request.POST), request.POST.get("reason", "")
    old = decision.conflict
    if again := _reopened(old):
        typed = f" Your reason was: {plain(reason)}" if reason.strip() else ""
        messages.info(request, f"{old.ref} was reopened already: this is {again.ref}.{typed}")
    else:
        try:
            again = rulings.reopen(decision, user=request.user, reason=reason)
        except (Refused, IllegalMove, StaleTask) as error:
            return refusal(request, old, form, error, reason=reason)
    if form.is_valid():
        request.session[draft_key(again)] = {**form.cleaned_data, "shown": "", "since": "", "opened": ""}
    return redirect(url_of(again))

"""The views for what a person says about a finding, proposes or asks, on the page of its dispute."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from disputes import finding_identity, opinions, rulings, severity_changes
from disputes.models import Dispute, Opinion
from disputes.protocol.rulings.synthesis import Source
from disputes.web.dispute.forms import RulingForm, SynthesisForm
from disputes.web.dispute.ruling_views import first_error
from disputes.web.dispute.views import card_to_rule, refusal, url_of
from disputes.web.view_helpers import staff_post
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Finding, StaleTask
from tasks.states import IllegalMove


def _finding(request: HttpRequest, dispute: Dispute) -> Finding:
    """Return the finding of the dispute's task that the form names. Raises Http404."""
    code = request.POST.get("finding", "")
    return get_object_or_404(Finding.objects.standing(), task=dispute.task, code=code)


@staff_post
def change_severity(request: HttpRequest, pk: int) -> HttpResponse:
    """Lower or raise a finding's severity. A finding that need not be settled any more is in no conflict."""
    card = card_to_rule(request, pk)
    conflict, finding = card.conflict, _finding(request, card.dispute)
    severity, reason = request.POST.get("severity", ""), request.POST.get("reason", "")
    try:
        severity_changes.change_severity(finding, severity, user=request.user, reason=reason)
    except (Refused, IllegalMove, StaleTask) as error:
        typed = {"weighing": finding.code, "severity": severity, "why": reason}
        return refusal(request, conflict, RulingForm(), error, **typed)
    messages.success(request, f"{finding.code} is {severity} now.")
    return redirect(url_of(conflict))


@staff_post
def confirm_same(request: HttpRequest, pk: int) -> HttpResponse:
    """Record whether a finding is an earlier one, raised again."""
    card = card_to_rule(request, pk)
    conflict, finding = card.conflict, _finding(request, card.dispute)
    said = request.POST.get("same", "")
    try:
        if said not in {"yes", "no"}:
            raise Invalid("incomplete", "Say whether it is the same.", "Press one of the two.")
        finding_identity.confirm_same(finding, user=request.user, same=said == "yes")
    except (Refused, IllegalMove, StaleTask) as error:
        return refusal(request, conflict, RulingForm(), error)
    told = "is that point, raised again" if said == "yes" else "is a point of its own"
    messages.success(request, f"{finding.code} {told}.")
    return redirect(url_of(conflict))


@staff_post
def propose(request: HttpRequest, pk: int) -> HttpResponse:
    """Hand in a synthesis, which becomes option C."""
    conflict = card_to_rule(request, pk).conflict
    form = SynthesisForm(request.POST)
    try:
        if not form.is_valid():
            raise Invalid("incomplete", first_error(form), "What you typed is kept.")
        given = form.cleaned_data
        rulings.propose_synthesis(
            conflict, given["synthesis"], by=Source.HUMAN, actor=Actor.person(request.user),
            trade_off=given["trade_off"], covers_both=given["covers_both"],
        )  # fmt: skip
    except Refused as error:
        return refusal(request, conflict, RulingForm(), error, synthesis=form)
    messages.success(request, f"Option C of {conflict.ref} is yours now.")
    return redirect(url_of(conflict))


@staff_post
def ask_opinion(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for an opinion, which is never a ruling. What was typed stays in the browser's draft."""
    conflict = card_to_rule(request, pk).conflict
    kind = request.POST.get("kind", "")
    try:
        if kind not in Opinion.Kind.values:
            raise Invalid("unknown_kind", "Nobody is called that.", "Ask a judge or a mediator.")
        opinions.ask(conflict, kind, user=request.user)
    except Refused as error:
        return refusal(request, conflict, RulingForm(), error)
    messages.info(request, f"The {kind} is asked about {conflict.ref}. You may rule without waiting for it.")
    return redirect(url_of(conflict))

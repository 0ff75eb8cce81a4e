"""The view for asking a judge or a mediator from the page of a dispute."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from disputes import opinions
from disputes.models import Opinion
from disputes.web.dispute.forms import RulingForm
from disputes.web.dispute.views import card_to_rule, refusal, url_of
from disputes.web.view_helpers import refuses, staff_only
from tasks.errors import Refused


@staff_only
@require_POST
@refuses
def ask(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for an opinion, which is never a ruling. What was typed stays in the browser's draft."""
    conflict = card_to_rule(request, pk).conflict
    kind = request.POST.get("kind", "")
    try:
        if kind not in Opinion.Kind.values:
            raise Refused("unknown_kind", "Nobody is called that.", "Ask a judge or a mediator.", status=422)
        opinions.ask(conflict, kind, user=request.user)
    except Refused as error:
        return refusal(request, conflict, RulingForm(), error)
    messages.info(request, f"The {kind} is asked about {conflict.ref}. You may rule without waiting for it.")
    return redirect(url_of(conflict))

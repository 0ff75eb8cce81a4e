"""What people do about accounts in trouble."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.crew import pauses
from agents.loop.bell import ring
from agents.web import accounts
from disputes.web.view_helpers import next_url, staff_post
from tasks.errors import Refused


@staff_post
def try_again(request: HttpRequest, pk: int) -> HttpResponse:
    """End the pause of an account; the next run of its agents shows whether the trouble is over."""
    paused = next((each for each in accounts.paused_accounts(request) if each.pause.pk == pk), None)
    if paused is None:
        raise Http404("No such account is paused.")
    name = paused.pause.name
    if not paused.may_end:
        raise Refused("no_right", f"You may not end the pause of {name}.", "Ask a maintainer.", status=403)
    pauses.end(name)
    ring(0)
    messages.success(request, f"{name} is tried again by the next run of its agents.")
    return redirect(next_url(request, reverse("admin:index")))

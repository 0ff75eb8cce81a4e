"""The views for claiming, assigning, following and snoozing, used by the queue and a dispute's page."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from disputes import triage
from disputes.models import Dispute
from disputes.web.queue.holders import Holders, ending_of
from disputes.web.view_helpers import next_url, not_allowed, page, staff_get, staff_post
from tasks.access import RULE, may, no_right, projects_for, require, who_may_enter
from tasks.errors import Invalid, Refused
from tasks.text.numbers import whole_number


def _dispute(request: HttpRequest, pk: int) -> Dispute:
    """Return a dispute that the person may see. Raises Http404."""
    visible = Dispute.objects.filter(project__in=projects_for(request.user))
    return get_object_or_404(
        visible.select_related("project", "task__project", "assignee", "claimed_by", "snoozed_by"), pk=pk
    )


@staff_get
def holders_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what can be done with a dispute short of ruling; the queue shows it as a row's menu."""
    dispute = _dispute(request, pk)
    return _holders(request, dispute)


def _holders(request: HttpRequest, dispute: Dispute, refused: Refused | None = None) -> HttpResponse:
    context = {
        "title": f"{dispute.ref}: assign, snooze, follow", "dispute": dispute,
        "holders": Holders(dispute, request.user), "refused": refused, "next": next_url(request, ""),
        "unfolded": True,
    }  # fmt: skip
    if "part" in request.GET:
        return render(request, "disputes/parts/holders.html", context)
    return page(request, "disputes/holders.html", context, refused.status if refused else 200)


def _done(request: HttpRequest, dispute: Dispute, words: str) -> HttpResponse:
    messages.info(request, words)
    return redirect(next_url(request, reverse("dispute", args=[dispute.pk])))


def _refusal(request: HttpRequest, dispute: Dispute, error: Refused) -> HttpResponse:
    return not_allowed(request, error) if error.status == 403 else _holders(request, dispute, error)


# --- Claims -----------------------------------------------------------------------------------------------


@staff_post
def claim(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the claim or prolong it, and reply with who has it and until when."""
    dispute = _dispute(request, pk)
    if not may(request.user, dispute.project, RULE):
        return JsonResponse(no_right(dispute.project, RULE, "rule").as_json(), status=403)
    mine = triage.claim(dispute, request.user)
    name = triage.name_of(dispute.claimed_by) if dispute.claimed_by else ""
    until = dispute.claimed_until.isoformat() if dispute.claimed_until else None
    return JsonResponse({"mine": mine, "by": name, "until": until})


@staff_post
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """Release the claim, because the person leaves the page."""
    dispute = _dispute(request, pk)
    if not may(request.user, dispute.project, RULE):
        return JsonResponse(no_right(dispute.project, RULE, "rule").as_json(), status=403)
    triage.release(dispute, request.user)
    return HttpResponse(status=204)


# --- Whose turn, who follows, what sleeps -----------------------------------------------------------------


@staff_post
def assign(request: HttpRequest, pk: int) -> HttpResponse:
    """Assign to the person with the key `to`; `me` toggles one's own turn, an empty value unassigns."""
    dispute = _dispute(request, pk)
    try:
        require(request.user, dispute.project, RULE, "assign disputes")
        to = _person(request, dispute)
        triage.assign(dispute, to, by=request.user)
    except Refused as error:
        return _refusal(request, dispute, error)
    if to is None:
        return _done(request, dispute, f"{dispute.ref} is nobody's now.")
    whose = "yours" if to.pk == request.user.pk else f"{triage.name_of(to)}’s"
    return _done(request, dispute, f"{dispute.ref} is {whose} now.")


def _person(request: HttpRequest, dispute: Dispute) -> Any:
    """Return the person who is meant, or None for nobody. Raises Refused("cannot_rule")."""
    asked = request.POST.get("to", "")
    if asked == "me":
        return None if dispute.assignee_id == request.user.pk else request.user
    if not asked:
        return None
    people = get_user_model().objects.filter(who_may_enter())
    person = people.filter(pk=whole_number(asked)).first()
    if person is None or not may(person, dispute.project, RULE):
        raise Invalid(
            "cannot_rule", f"That person may not rule in {dispute.project.name}.", "Choose another."
        )
    return person


@staff_post
def follow(request: HttpRequest, pk: int) -> HttpResponse:
    """Start following, or stop if `follow` is `off`."""
    dispute = _dispute(request, pk)
    if request.POST.get("follow") == "off":
        triage.unfollow(dispute, request.user)
        return _done(request, dispute, f"You follow {dispute.ref} no more.")
    triage.follow(dispute, request.user)
    return _done(request, dispute, f"You follow {dispute.ref}.")


@staff_post
def snooze(request: HttpRequest, pk: int) -> HttpResponse:
    """Snooze the dispute until what `ending` names, or until the time in `until`."""
    dispute = _dispute(request, pk)
    try:
        require(request.user, dispute.project, RULE, "snooze disputes")
        until, condition = chosen_ending(request)
        triage.snooze(dispute, by=request.user, until=until, condition=condition)
    except Refused as error:
        return _refusal(request, dispute, error)
    return _done(request, dispute, f"{dispute.ref} sleeps {triage.snoozed_words(dispute)}.")


def chosen_ending(request: HttpRequest) -> tuple[Any, str]:
    """Return the time or the condition that ends the snooze, from the form. Raises Refused("no_end")."""
    typed = request.POST.get("until", "").strip()
    ending = request.POST.get("ending", "")
    if ending and ending != "time":
        return ending_of(ending)
    try:
        moment = parse_datetime(typed)
    except ValueError:
        moment = None
    if moment is None:
        raise Invalid("no_end", "That is no time.", "Choose one of the buttons, or a date.")
    return (timezone.make_aware(moment) if timezone.is_naive(moment) else moment), ""


@staff_post
def wake(request: HttpRequest, pk: int) -> HttpResponse:
    """Put the dispute back into the queue at once."""
    dispute = _dispute(request, pk)
    triage.wake_by(dispute, request.user)
    return _done(request, dispute, f"{dispute.ref} is awake again.")

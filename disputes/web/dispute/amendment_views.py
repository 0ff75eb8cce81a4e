"""The views of amendments: asking for one, looking at it, approving, rewording or dropping it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from disputes import amendments
from disputes.api.amendments import AS_SHOWN
from disputes.models import Amendment
from disputes.web.dispute.code import coloured, parse_diff
from disputes.web.dispute.ruling_views import to_change
from disputes.web.dispute.views import may_rule, needs_right
from disputes.web.view_helpers import page, staff_get, staff_post
from tasks.access import projects_for
from tasks.errors import Refused
from tasks.text.numbers import whole_number
from tasks.text.unseen import plain

SHOWN = (*AS_SHOWN, "decision__conflict__finding", "decision__user", "decision__policy_set_by")


@staff_post
def ask(request: HttpRequest, pk: int) -> HttpResponse:
    """Have the amendment of a ruling drafted."""
    amendment = amendments.ask(to_change(request, pk), user=request.user)
    return redirect("amendment", amendment.pk)


def _to_see(request: HttpRequest, pk: int) -> Amendment:
    """Return an amendment that the person may see. Raises Http404."""
    rows = Amendment.objects.filter(decision__conflict__dispute__project__in=projects_for(request.user))
    return get_object_or_404(rows.select_related(*SHOWN), pk=pk)


@staff_get
def amendment_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the addition to the specification as a diff; people who may rule can settle it here."""
    return _show(request, _to_see(request, pk))


def _show(
    request: HttpRequest, amendment: Amendment, refused: Refused | None = None, words: str | None = None
) -> HttpResponse:
    conflict = amendment.decision.conflict
    project = conflict.dispute.project
    context = {
        "title": f"Amendment of {plain(amendment.path)}",
        "is_nav_sidebar_enabled": False,
        "amendment": amendment,
        "conflict": conflict,
        "dispute": conflict.dispute,
        "project": project,
        "diff": coloured(parse_diff(amendment.diff)),
        "words": amendment.words if words is None else words,
        "is_open": amendment.state in {Amendment.State.ASKED, Amendment.State.DRAFTED},
        "may_rule": may_rule(request, project),
        "refused": refused,
    }
    return page(request, "disputes/amendment.html", context, refused.status if refused else 200)


@staff_post
def settle(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Approve, reword or drop the amendment that was shown. A refusal keeps what was typed."""
    amendment = _to_see(request, pk)
    needs_right(request, amendment.decision.conflict.dispute.project)
    words = request.POST.get("words", "")
    version = whole_number(request.POST.get("version", ""))
    seen = -1 if version is None else version
    try:
        if verb == "approve":
            task = amendments.approve(amendment, seen=seen, user=request.user)
            messages.success(request, f"Approved: {task.ref} is verified, then it lands.")
        elif verb == "reword":
            amendments.reword(amendment, words, seen=seen, user=request.user)
            messages.info(request, "It is drafted again with these words.")
        else:
            amendments.drop(amendment, seen=seen, user=request.user)
            messages.info(request, "The amendment is dropped.")
    except Refused as error:
        amendment.refresh_from_db(fields=["state", "version", "diff", "words"])
        return _show(request, amendment, error, words or None)
    return redirect("amendment", amendment.pk)

"""The page of a dispute and the whole diff: reading them, and previewing a ruling before making it."""

from typing import Any

from django.db.models import BigIntegerField, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from disputes import rulings
from disputes.models import Conflict, Dispute
from disputes.protocol.rulings.options import NOT_FOR_THE_CODER
from disputes.web.dispute.code import coloured, parse_diff
from disputes.web.dispute.conflict_page import ConflictPage
from disputes.web.dispute.forms import RulingForm, SynthesisForm, signed_now
from disputes.web.dispute.prefetch import conflicts_around, with_people
from disputes.web.queue import listing
from disputes.web.queue.holders import Holders
from disputes.web.queue.neighbours import keep_filter, kept_filter, neighbours, with_neighbours
from disputes.web.view_helpers import not_allowed, page, staff_get, staff_post, texts_in
from disputes.web.work.comments import Discussion
from tasks.access import RULE, PreparedForReaders, Reader, require_role, role_in, with_projects
from tasks.database.clock import estimated_time
from tasks.errors import Refused
from tasks.models import Project
from tasks.text.unseen import plain

DISPUTE_KEYS = [
    ("ABCD", "Choose; other cards have 1, 2, 3. At severity low this rules at once"),
    ("E", "Edit the text"),
    (["Ctrl", "Enter"], "Rule"),
    ("G", "Ask the judge"),
    ("P", "Ask for a proposal"),
    ("V", "Whole diff, and back"),
    ("N", "Comment"),
    ("S", "Snooze"),
    ("M", "Take it yourself"),
    ("JK", "Next and previous dispute"),
    ("U", "Undo the last ruling"),
    ("?", "This list"),
]


# --- Who may see it, and rule on it -----------------------------------------------------------------------


def to_see(request: HttpRequest, pk: int) -> Dispute:
    """Return a dispute that the person may see. Raises Http404."""
    key = min(pk, BigIntegerField.MAX_BIGINT)  # a database takes no larger one, and an address may have any
    dispute = next(iter(_with_all.found(request.user, key, estimated_time())), None)
    if dispute is None or not role_in(request, dispute.project_id):
        raise Http404(f"There is no dispute D-{pk}.")
    with_projects([dispute], {dispute.project_id: dispute.project})
    return dispute


def _as_seen_by(reader: Reader, pk: Any, now: Any) -> QuerySet[Dispute]:
    return with_neighbours(with_people(Dispute.objects.filter(pk=pk), reader), reader, now)


_with_all = PreparedForReaders(_as_seen_by)


def may_rule(request: HttpRequest, project: Project) -> bool:
    """Whether the person may rule in the project, by memberships that the request has already read."""
    return role_in(request, project.pk) in RULE


def to_rule(request: HttpRequest, pk: int) -> Dispute:
    """Return a dispute that the person may rule on. Raises Http404 or Refused("no_right")."""
    dispute = to_see(request, pk)
    needs_right(request, dispute.project)
    return dispute


def needs_right(request: HttpRequest, project: Project) -> None:
    """Raise Refused("no_right") if the person may not rule in the project."""
    require_role(role_in(request, project.pk), project, RULE, "rule")


def card_of(request: HttpRequest, dispute: Dispute, name: str) -> ConflictPage:
    """Return the page of the conflict with that name (C-9), or of the one to show if no name is given.

    Raises Http404.
    """
    around = conflicts_around(dispute)
    own = [conflict for conflict in around if conflict.dispute_id == dispute.pk]
    named = [conflict for conflict in own if conflict.ref == name.upper()]
    conflict = next(iter(named), None) if name else listing.first_of(own)
    if conflict is None:
        raise Http404(f"{dispute.ref} has no such conflict.")
    return ConflictPage(dispute, conflict, around, may_rule(request, dispute.project))


def url_of(conflict: Conflict) -> str:
    return f"{reverse('dispute', args=[conflict.dispute_id])}?conflict={conflict.ref}"


# --- The page ---------------------------------------------------------------------------------------------


@staff_get
def dispute_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a dispute: its first open conflict, or the one that `?conflict=C-9` names.

    `?choose=B` chooses an option, as its key does.
    """
    dispute = to_see(request, pk)
    card = card_of(request, dispute, request.GET.get("conflict", ""))
    draft = request.session.pop(draft_key(card.conflict), None)
    return show(request, card, RulingForm(initial=draft))


def draft_key(conflict: Conflict) -> str:
    """Return the session key of what was typed, kept for the conflict that follows another one."""
    return f"ruling-{conflict.ref}"


def opened_key(conflict: Conflict) -> str:
    """Return the session key that records that the person has opened the code."""
    return f"opened-{conflict.ref}"


def card_to_rule(request: HttpRequest, pk: int) -> ConflictPage:
    """Return the page of the conflict that the form names, if the person may rule on it.

    Raises Http404 or Refused("no_right").
    """
    return card_of(request, to_rule(request, pk), request.POST.get("conflict", ""))


def show(
    request: HttpRequest,
    card: ConflictPage,
    form: RulingForm,
    *,
    refused: Refused | None = None,
    **typed: Any,
) -> HttpResponse:
    """Show a conflict's page; after a refusal, with what was typed and the refusal's status.

    `typed` is what a form other than the ruling's contained: reason, finding, severity, synthesis.
    """
    dispute, conflict = card.dispute, card.conflict
    letter = "" if form.is_bound or form.initial else request.GET.get("choose", "").upper()
    if chosen := next((each for each in card.options if each.letter == letter), None):
        form.initial = {"option": chosen.option, "text": chosen.text}
    if card.needs_rationale:
        form.fields["rationale"].widget.attrs["required"] = True
    option = form["option"].value() or ""
    opened = {form["opened"].value(), request.session.get(opened_key(conflict))}
    context = {
        "title": f"{dispute.ref} {plain(dispute.question)}",
        "is_nav_sidebar_enabled": False,
        "keys": DISPUTE_KEYS,
        "card": card,
        "dispute": dispute,
        "conflict": conflict,
        "task": dispute.task,
        "form": form,
        "since": form["since"].value() or signed_now(conflict),
        "is_opened": bool(card.code_mark) and card.code_mark in opened,
        "typed": form.is_bound and bool(option) and not card.is_open,
        "typed_letter": next((each.letter for each in card.options if each.option == option), ""),
        "refused": refused,
        "texts": texts_in(request) if refused and not card.is_open and not form.is_bound else "",
        "synthesis": SynthesisForm(),
        "reason": "",
        **typed,
        "here": url_of(conflict),  # where the forms beside the ruling come back to
        "holders": Holders(dispute, request.user, card.may_rule, dispute.is_followed),
        "discussion": Discussion(dispute.project, request.user, dispute.task, card.may_rule),
        "around": neighbours(dispute, request),
    }
    response = page(request, "disputes/dispute.html", context, refused.status if refused else 200)
    keep_filter(request, response, kept_filter(request))
    return response


def refusal(
    request: HttpRequest, conflict: Conflict, form: RulingForm, error: Exception, **typed: Any
) -> HttpResponse:
    """Say why nothing was done, on the conflict's present page or on a page of its own."""
    if not isinstance(error, Refused):
        error = Refused("moved_on", str(error), "What you typed is kept. Look at the task, then try again.")
    if error.status == 403:
        return not_allowed(request, error)
    card = card_of(request, to_see(request, conflict.dispute_id), conflict.ref)
    return show(request, card, form, refused=error, **typed)


@staff_get
def diff_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the whole diff of what is disputed; `?view=split` shows old and new side by side."""
    dispute = to_see(request, pk)
    card = card_of(request, dispute, request.GET.get("conflict", ""))
    if card.needs_opening:
        request.session[opened_key(card.conflict)] = card.code_mark
    diff = parse_diff(card.submission.diff if card.submission else "")
    context = {
        "title": f"{dispute.ref} diff",
        "is_nav_sidebar_enabled": False,
        "card": card,
        "dispute": dispute,
        "diff": coloured(diff),
        "is_split": request.GET.get("view") == "split",
    }
    return page(request, "disputes/diff.html", context)


# --- Trying out -------------------------------------------------------------------------------------------


@staff_post
def preview(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the lines with which the next coder's prompt would begin."""
    try:
        conflict = card_to_rule(request, pk).conflict
    except Refused as error:
        return JsonResponse({"error": error.message}, status=error.status)
    form = RulingForm(request.POST)
    if not form.is_valid() or conflict.choice(form.cleaned_data["option"]) is None:
        return JsonResponse({"error": "Choose an option first."}, status=422)
    chosen = form.chosen()
    if chosen["option"] in NOT_FOR_THE_CODER:
        return JsonResponse({"lines": []})
    try:
        lines = rulings.preview(conflict, **chosen)
    except Refused as error:
        return JsonResponse({"error": error.message, "lines": [error.message]}, status=error.status)
    return JsonResponse({"lines": [plain(line) for line in lines]})

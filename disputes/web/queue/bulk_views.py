"""The views for many disputes at once: a preview of each effect, the results, and taking it back."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from disputes import bulk, triage
from disputes.models import Bulk
from disputes.web.queue import listing
from disputes.web.queue.filters import QueueFilter
from disputes.web.queue.holders import endings
from disputes.web.queue.triage_views import chosen_ending
from disputes.web.view_helpers import next_url, not_allowed, page, refusal_page, staff_get, staff_post
from tasks.access import RULE, projects_for, require_any
from tasks.errors import Invalid, Refused
from tasks.text.numbers import whole_number

NOTE_MAX = 2_000
KEYS = [("U", "Undo all of it"), ("?", "This list")]


def _verb(request: HttpRequest) -> bulk.Verb:
    """Return the verb that the form names. Raises Refused("unknown_verb")."""
    verb = bulk.VERBS.get(request.POST.get("verb", ""))
    if verb is None:
        raise Invalid("unknown_verb", "Say what to do with them.", "Go back to the queue.")
    return verb


def _tab(request: HttpRequest) -> listing.Tab:
    return next((each for each in listing.TABS if each.name == request.POST.get("tab")), listing.MINE)


def _back(request: HttpRequest) -> str:
    """Return the path of the queue as the person left it."""
    query = QueryDict(request.POST.get("query", "")[:2000]).urlencode()
    return f"{reverse(_tab(request).name)}{'?' if query else ''}{query}"


@staff_post
def preview(request: HttpRequest) -> HttpResponse:
    """Show what the verb would do to each selected dispute, or to all that match the filters."""
    require_any(request.user, RULE, "rule")
    try:
        verb = _verb(request)
    except Refused as error:
        return refusal_page(request, "Nothing was done", error)
    wanted = _wanted(request)
    if not wanted:
        messages.info(request, "Nothing is selected.")
        return redirect(_back(request))
    return _preview(request, verb, wanted)


def _wanted(request: HttpRequest) -> list[int]:
    """Return the keys of the disputes, up to one more than one bulk action takes."""
    if "all" in request.POST or "all" in request.GET:
        disputes = listing.disputes_in(_tab(request), request.user)
        data = QueryDict(request.POST.get("query", "")[:2000])
        found = QueueFilter(data, disputes, request)
        return list(found.qs.values_list("pk", flat=True)[: bulk.BULK_MAX + 1])
    picked = map(whole_number, request.POST.getlist("dispute"))
    return [number for number in picked if number is not None][: bulk.BULK_MAX + 1]


def _preview(
    request: HttpRequest, verb: bulk.Verb, wanted: list[int], refused: Refused | None = None
) -> HttpResponse:
    has_more, wanted = len(wanted) > bulk.BULK_MAX, wanted[: bulk.BULK_MAX]
    items = bulk.items_of(verb, wanted, request.user)
    possible = [item for item in items if not item.why_not]
    projects = {item.dispute.project_id for item in possible}
    context = {
        "title": f"{verb.label}: {len(possible)} of {len(items)}",
        "keys": [("?", "This list")],
        "verb": verb,
        "items": items,
        "possible": len(possible),
        "disputes": wanted,
        "has_more": has_more,
        "people": _people(projects) if verb is bulk.ASSIGN else [],
        "endings": endings() if verb is bulk.SNOOZE else [],
        "back": _back(request),
        "tab": _tab(request).name,
        "query": request.POST.get("query", ""),
        "typed": request.POST,
        "unticked": set(request.POST.getlist("listed")) - set(_chosen(request)),
        "refused": refused,
        "max": bulk.BULK_MAX,
    }
    return page(request, "disputes/bulk.html", context, refused.status if refused else 200)


def _people(projects: set[int]) -> list[Any]:
    """Return who may rule in all of these projects, by name."""
    found = triage.people_for(projects)
    common = set.intersection(*({person.pk for person in few} for few in found.values())) if found else set()
    every = {person.pk: person for few in found.values() for person in few if person.pk in common}
    return sorted(every.values(), key=triage.name_of) if len(found) == len(projects) else []


def _chosen(request: HttpRequest) -> dict[str, str]:
    """Return the stamp of each ticked item by its name, from pairs such as "C-9 5f0c"."""
    pairs = [word.partition(" ") for word in request.POST.getlist("item")]
    return {ref: seen for ref, _, seen in pairs}


@staff_post
def apply(request: HttpRequest) -> HttpResponse:
    """Do it to the items that are still ticked, then show the results."""
    require_any(request.user, RULE, "rule")
    verb = None
    try:
        verb = _verb(request)
        made = bulk.apply(verb, _chosen(request), _terms(request, verb), request.user)
    except Refused as error:
        wanted = _wanted(request)
        if verb is None or not wanted:
            return refusal_page(request, "Nothing was done", error)
        return _preview(request, verb, wanted, error)
    return redirect(f"{reverse('bulk-result', args=[made.pk])}?{_next(_back(request))}")


def _next(url: str) -> str:
    query = QueryDict(mutable=True)
    query["next"] = url
    return query.urlencode()


def _terms(request: HttpRequest, verb: bulk.Verb) -> bulk.Terms:
    """Return what the person specified for all the items. Raises Refused: "no_end", "nobody"."""
    note = request.POST.get("note", "").strip()[:NOTE_MAX]
    if verb is bulk.SNOOZE:
        until, condition = chosen_ending(request)
        return bulk.Terms(note, until=until, condition=condition)
    if verb is bulk.ASSIGN:
        asked = request.POST.get("to", "")
        if asked == "nobody":
            return bulk.Terms(note)
        people = {
            str(person.pk): person for few in triage.people_for(_ruled(request)).values() for person in few
        }
        if asked == "me" or asked == str(request.user.pk):
            return bulk.Terms(note, to=request.user)
        if asked not in people:
            raise Invalid("nobody", "Say whose turn it is.", "Choose a person, or nobody.")
        return bulk.Terms(note, to=people[asked])
    return bulk.Terms(note)


def _ruled(request: HttpRequest) -> list[int]:
    return list(projects_for(request.user, RULE).values_list("pk", flat=True))


def _bulk(request: HttpRequest, pk: int) -> Bulk:
    """Return a bulk action of the person's own; superusers may see all. Raises Http404."""
    mine = Bulk.objects.select_related("user")
    return get_object_or_404(mine if request.user.is_superuser else mine.filter(user=request.user), pk=pk)


@staff_get
def result(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what came of each item."""
    return _result(request, _bulk(request, pk))


def _result(request: HttpRequest, made: Bulk, refused: Refused | None = None) -> HttpResponse:
    results = made.undo_results or made.results
    done = sum(bool(each["done"]) for each in results)
    verb = bulk.VERBS[made.verb]
    context = {
        "title": f"{verb.label}{': undone' if made.undone_at else ''}",
        "keys": KEYS,
        "bulk": made,
        "verb": verb,
        "results": results,
        "done": done,
        "may_undo": not made.undone_at and any(each["done"] for each in made.results),
        "next": next_url(request, reverse(listing.MINE.name)),
        "refused": refused,
    }
    return page(request, "disputes/bulk_result.html", context, refused.status if refused else 200)


@staff_post
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take back as much of the bulk action as can be taken back."""
    made = _bulk(request, pk)
    try:
        undone = bulk.undo(made, user=request.user)
    except Refused as error:
        return not_allowed(request, error) if error.status == 403 else _result(request, made, error)
    taken = sum(result["done"] for result in undone)
    messages.info(request, f"{taken} of {len(undone)} taken back.")
    return redirect(next_url(request, reverse("bulk-result", args=[made.pk])))

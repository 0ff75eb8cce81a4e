"""The queue of what waits for a human, and the views of it that a person has saved."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone

from disputes import triage
from disputes.models import Decision, Dispute, SavedView
from disputes.web.queue import listing
from disputes.web.queue.filters import MORE, QueueFilter
from disputes.web.queue.listing import PER_PAGE
from disputes.web.queue.neighbours import LISTS, keep_filter
from disputes.web.view_helpers import next_url, page, staff_get, staff_post
from tasks.access import PreparedForReaders, projects_for, with_projects
from tasks.database.prepared import Prepared
from tasks.text.numbers import whole_number

PAGES_MAX = 10_000
VIEWS_MAX = 50
KEYS = [
    ("JK", "Next and previous row"),
    (["Enter"], "Open"),
    ("ABCD", "Open with that option chosen; cards with numbers: 1 to 5"),
    ("N", "Open to write a note"),
    ("S", "Snooze"),
    ("M", "Make it mine, or take it off me"),
    ("X", "Select; with Shift all rows from the last one"),
    ("U", "Undo the last ruling"),
    ("/", "Search"),
    ("?", "This list"),
]


@dataclass(frozen=True, slots=True)
class Slice:
    """One page of a long list, which knows whether there is a next one but not how many there are."""

    rows: list[Dispute]
    number: int
    has_next: bool

    @property
    def previous(self) -> int:
        return self.number - 1

    @property
    def next(self) -> int:
        return self.number + 1


def _slice_of(tab: listing.Tab, found: QueueFilter, page: str) -> Slice:
    """Return the page that the URL asks for, the last one of a shorter list, the first one for nonsense."""
    number = min(max(whole_number(page) or 1, 1), PAGES_MAX)
    start = (number - 1) * PER_PAGE
    is_plain = number == 1 and not found.asked()
    asked = slice(start, start + PER_PAGE + 1)
    rows = listing.first_page(tab, found.reach.user) if is_plain else found.qs[asked]
    if number > 1 and not rows:
        return _slice_of(tab, found, str(-(-found.qs.count() // PER_PAGE)))
    rows = with_projects(rows, found.reach.projects)
    return Slice(rows[:PER_PAGE], number, len(rows) > PER_PAGE)


@staff_get
def queue_page(request: HttpRequest, tab: listing.Tab) -> HttpResponse:
    """Show one tab of the queue."""
    user = request.user
    disputes = listing.for_rows(listing.disputes_in(tab, user))
    found = QueueFilter(request.GET, disputes, request)
    reach = found.reach
    part = _slice_of(tab, found, request.GET.get("page", ""))
    rows = listing.rows_of(part.rows, user)
    counts = listing.counts(user)
    asked = found.asked()
    is_waiting = tab.name in LISTS
    context = {
        "title": "Queue",
        "keys": KEYS,
        "tab": tab,
        "tabs": [(each, reverse(each.name), counts[each.name]) for each in listing.TABS],
        "count": counts[listing.MINE.name],
        "form": found.form,
        "is_filtered": bool(asked),
        "is_in_no_project": not reach.projects,
        "has_more": any(name in asked for name in MORE),
        "views": _saved_views.found(user.pk),
        "on_call": _on_call(user) if tab is listing.MINE else [],
        "last": last_ruling(user),
        "may_rule": bool(reach.ruled),
        "ruled": reach.ruled,
        "is_waiting": is_waiting,
        "page": part,
        "rows": rows,
        **_suggestions(rows),
    }
    if "X-Live" in request.headers:
        return render(request, "disputes/parts/live.html", context)
    response = page(request, "disputes/queue.html", context)
    if is_waiting:
        keep_filter(request, response, request.GET.urlencode())
    return response


_saved_views = Prepared(lambda user: SavedView.objects.filter(user=user))
_rota = PreparedForReaders(lambda reader, day: triage.on_call(projects_for(reader), day))


def _on_call(user: Any) -> list[dict[str, Any]]:
    """Return who is on call today in the person's projects, one line per person."""
    lines: dict[int, dict[str, Any]] = {}
    for day in _rota.found(user, timezone.localdate()):
        line = lines.setdefault(
            day.user_id,
            {
                "name": "You" if day.user_id == user.pk else triage.name_of(day.user),
                "until": day.last_day,
                "projects": [],
            },
        )
        line["projects"].append(day.project.name)
    return list(lines.values())


def _suggestions(rows: list[listing.QueueRow]) -> dict[str, list[str]]:
    """Return the names on this page's rows, to be suggested for filters that take a name."""
    conflicts = [row.conflict for row in rows if row.conflict]
    names = {
        "coders": {conflict.coder_label for conflict in conflicts},
        "reviewers": {conflict.reviewer_label for conflict in conflicts},
        "models": {conflict.submission.by_model for conflict in conflicts if conflict.submission},
    }
    return {name: sorted(words - {""}) for name, words in names.items()}


def _newest_ruling(user: Any) -> QuerySet[Decision]:
    mine = Decision.objects.filter(user=user, revoked_at__isnull=True)
    return mine.select_related("conflict__dispute", "bulk").order_by("-pk")[:1]


_last_ruling = Prepared(_newest_ruling)


def last_ruling(user: Any) -> Decision | None:
    """Return the person's newest ruling if it may still be undone, else None."""
    last = _last_ruling.first(user.pk)
    may_be_undone = last and last.may_be_undone and last.conflict.dispute.task_id
    return last if may_be_undone else None


# --- Saved views ------------------------------------------------------------------------------------------


@staff_post
def save_view(request: HttpRequest) -> HttpResponse:
    """Save a tab with its filters under a name; using the same name again replaces it."""
    tab = next((each for each in listing.TABS if each.name == request.POST.get("tab")), listing.MINE)
    asked = QueryDict(request.POST.get("query", "")[:2000])
    query = QueryDict(mutable=True)
    query.update({name: asked[name] for name in QueueFilter.base_filters if asked.get(name)})
    name, here = request.POST.get("name", "").strip()[:60], f"{reverse(tab.name)}?{query.urlencode()}"
    kept = SavedView.objects.filter(user=request.user)
    if not name or len(query.urlencode()) > 1000:
        messages.error(request, "A view needs a name." if not name else "These filters are too long to keep.")
    elif not kept.filter(name=name).exists() and kept.count() >= VIEWS_MAX:
        messages.error(request, f"You keep {VIEWS_MAX} views already; delete one first.")
    else:
        SavedView.objects.update_or_create(
            user=request.user, name=name, defaults={"tab": tab.name, "query": query.urlencode()}
        )
        messages.success(request, f"“{name}” is one of your views now.")
    return redirect(here)


@staff_post
def delete_view(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete one of the person's own views."""
    view = get_object_or_404(SavedView, pk=pk, user=request.user)
    view.delete()
    messages.info(request, f"“{view.name}” is deleted.")
    return redirect(next_url(request, reverse(listing.MINE.name)))

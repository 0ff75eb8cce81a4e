"""The queue: what waits for a human."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from disputes.pages import queue
from disputes.pages.site import page, staff_only

PER_PAGE = 50
KEYS = [
    ("JK", "Next and previous row"),
    (["Enter"], "Open"),
    ("/", "Search"),
    ("U", "Undo the last ruling"),
    ("?", "This list"),
]


@staff_only
@require_safe
def queue_page(request: HttpRequest, tab: queue.Tab) -> HttpResponse:
    """One tab of the queue."""
    disputes = queue.with_conflicts(queue.disputes_in(tab, request.user))
    asked = queue.QueueFilter(request.GET, queryset=disputes, request=request)
    rows = Paginator(asked.qs, PER_PAGE).get_page(request.GET.get("page"))
    counts = {each.name: queue.count_of(each, request.user) for each in queue.TABS}
    context = {
        "title": "Queue",
        "keys": KEYS,
        "tab": tab,
        "tabs": [(each, reverse(each.name), counts[each.name]) for each in queue.TABS],
        "count": counts[queue.MINE.name],
        "form": asked.form,
        "is_filtered": any(request.GET.get(name) for name in asked.filters),
        "page": rows,
        "rows": [queue.row_of(dispute) for dispute in rows],
    }
    return page(request, "disputes/queue.html", context)

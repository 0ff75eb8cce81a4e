"""How the installation does, in the format of Prometheus: counted from the rows when somebody asks."""

import hmac
from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django_q.brokers import get_broker
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily

from agents.api.authentication import bearer_of
from agents.jobs import LAST_TICK
from agents.models import Host, Run
from disputes.models import Dispute
from tasks import broker
from tasks.models import Landing, Task

# Upper limits of the ages by which open cards are counted, as a histogram names them.
AGES = {"3600": timedelta(hours=1), "86400": timedelta(days=1), "604800": timedelta(days=7)}
FORWARDED = ("X-Forwarded-For", "Forwarded")


def metrics(request: HttpRequest) -> HttpResponse:
    """The figures, for who brings STEROIDS_METRICS_TOKEN; where none is set, for this machine alone."""
    if why := _refusal(request):
        return HttpResponse(f"{why}\n", status=403, content_type="text/plain; charset=utf-8")
    registry = CollectorRegistry()
    registry.register(_Figures())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _refusal(request: HttpRequest) -> str:
    if settings.METRICS_TOKEN:
        is_right = hmac.compare_digest(bearer_of(request).encode(), settings.METRICS_TOKEN.encode())
        return "" if is_right else "Send `Authorization: Bearer` with STEROIDS_METRICS_TOKEN."
    is_passed_on = any(name in request.headers for name in FORWARDED)  # by a proxy of this machine
    if not is_passed_on and _is_loopback(request.META.get("REMOTE_ADDR", "")):
        return ""
    return "Only this machine may ask, until STEROIDS_METRICS_TOKEN is set."


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:  # a unix socket has none
        return False


class _Figures:
    """What is counted, each with one query."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield _by("tasks", "Tasks, by their status.", "status", Task.objects.all())
        yield _by("runs_live", "Runs that have not ended, by their role.", "role", Run.objects.live())
        queued = Run.objects.filter(status=Run.Status.QUEUED)
        yield _one("runs_queued", "Runs that wait for a host.", queued.count())
        yield _by(
            "landings", "Attempts to land a commit, by how they stand.", "status", Landing.objects.all()
        )
        yield from _cards()
        yield from _hosts()
        ticked = broker.recall(LAST_TICK)
        if ticked:
            yield _one("tick_timestamp_seconds", "When the cluster last turned the loop.", ticked)
        waiting = _jobs_waiting()
        if waiting is not None:
            yield _one("jobs_waiting", "Background jobs in the queue.", waiting)


def _one(name: str, says: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"steroids_{name}", says, value=value)


def _by(name: str, says: str, column: str, rows: Any) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"steroids_{name}", says, labels=[column])
    for value, count in rows.order_by().values_list(column).annotate(n=Count("pk")).order_by(column):
        family.add_metric([value], count)
    return family


def _cards() -> Iterator[GaugeMetricFamily]:
    now = timezone.now()
    waiting = Dispute.objects.open().filter(snoozed_at__isnull=True)
    opened = sorted(waiting.values_list("opened_at", flat=True))
    family = GaugeMetricFamily("steroids_cards_open", "Cards that wait for people, by age.", labels=["le"])
    for name, age in AGES.items():
        family.add_metric([name], sum(now - at <= age for at in opened))
    family.add_metric(["+Inf"], len(opened))
    yield family
    oldest = (now - opened[0]).total_seconds() if opened else 0
    yield _one("card_oldest_seconds", "The age of the card that waits for longest.", oldest)


def _hosts() -> Iterator[GaugeMetricFamily]:
    seen = GaugeMetricFamily("steroids_host_seen_timestamp_seconds", "When it reported.", labels=["host"])
    slots = GaugeMetricFamily("steroids_host_slots", "Runs that it takes at a time.", labels=["host"])
    for host in Host.objects.order_by("name"):
        slots.add_metric([host.name], 0 if host.is_draining else host.slots)
        if host.seen_at:
            seen.add_metric([host.name], host.seen_at.timestamp())
    yield seen
    yield slots


def _jobs_waiting() -> int | None:
    """None while the broker is away."""
    try:
        return int(get_broker().queue_size())
    except broker.AWAY:
        return None

"""The installation's metrics in the format of Prometheus, counted from rows at each request."""

import hmac
from contextlib import suppress
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django_q.brokers import get_broker
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from agents.models import Host, Run
from agents.web.dashboard import health
from disputes.models import Dispute
from tasks import broker
from tasks.access import bearer_of
from tasks.database.clock import estimated_time
from tasks.models import Landing, Task

# The upper limits of the ages by which open cards are counted, named as in a histogram.
AGES = {"3600": timedelta(hours=1), "86400": timedelta(days=1), "604800": timedelta(days=7)}
FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")


def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics to a request with STEROIDS_METRICS_TOKEN; if none is set, to this machine only.

    A proxy need not say that it passes on what others ask, so behind one there is no telling.
    """
    if why := _refusal(request):
        return HttpResponse(f"{why}\n", status=403, content_type="text/plain; charset=utf-8")
    registry = CollectorRegistry()
    _count(registry)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _refusal(request: HttpRequest) -> str:
    if settings.METRICS_TOKEN:
        is_right = hmac.compare_digest(bearer_of(request).encode(), settings.METRICS_TOKEN.encode())
        return "" if is_right else "Send `Authorization: Bearer` with STEROIDS_METRICS_TOKEN."
    if settings.BEHIND_PROXY:
        return "Set STEROIDS_METRICS_TOKEN: this installation is reached through a proxy."
    is_passed_on = any(name in request.headers for name in FORWARDED)  # by a proxy of this machine
    if not is_passed_on and _is_loopback(request.META.get("REMOTE_ADDR", "")):
        return ""
    return "Only this machine may ask, until STEROIDS_METRICS_TOKEN is set."


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:  # a unix socket has none
        return False


def _count(registry: CollectorRegistry) -> None:
    """Fill the registry, with one query for each metric."""
    _by(registry, "tasks", "Tasks, by their status.", "status", Task.objects.all())
    _by(registry, "runs_live", "Runs that have not ended, by their role.", "role", Run.objects.live())
    queued = Run.objects.filter(status=Run.Status.QUEUED)
    _one(registry, "runs_queued", "Runs that wait for a host.", queued.count())
    _by(registry, "landings", "Attempts to land a commit, by status.", "status", Landing.objects.all())
    _cards(registry)
    _hosts(registry)
    if ticked := health()["last_tick"]:
        says = "When background jobs last turned the loop."
        _one(registry, "tick_timestamp_seconds", says, ticked.timestamp())
    with suppress(*broker.AWAY):
        _one(registry, "jobs_waiting", "Background jobs in the queue.", get_broker().queue_size())


def _one(registry: CollectorRegistry, name: str, says: str, value: float) -> None:
    Gauge(f"steroids_{name}", says, registry=registry).set(value)


def _by(registry: CollectorRegistry, name: str, says: str, column: str, rows: Any) -> None:
    gauge = Gauge(f"steroids_{name}", says, [column], registry=registry)
    for value, count in rows.order_by().values_list(column).annotate(n=Count("pk")).order_by(column):
        gauge.labels(value).set(count)


def _cards(registry: CollectorRegistry) -> None:
    now = estimated_time()
    waiting = Dispute.objects.open().filter(snoozed_at__isnull=True)
    opened = sorted(waiting.values_list("opened_at", flat=True))
    gauge = Gauge("steroids_cards_open", "Cards that wait for people, by age.", ["le"], registry=registry)
    for name, age in AGES.items():
        gauge.labels(name).set(sum(now - at <= age for at in opened))
    gauge.labels("+Inf").set(len(opened))
    oldest = (now - opened[0]).total_seconds() if opened else 0
    _one(registry, "card_oldest_seconds", "The age of the card that waits for longest.", oldest)


def _hosts(registry: CollectorRegistry) -> None:
    seen = Gauge(
        "steroids_host_seen_timestamp_seconds", "When it last reported.", ["host"], registry=registry
    )
    slots = Gauge("steroids_host_slots", "Runs that it takes at a time.", ["host"], registry=registry)
    for host in Host.objects.order_by("name"):
        slots.labels(host.name).set(0 if host.is_draining else host.slots)
        if host.seen_at:
            seen.labels(host.name).set(host.seen_at.timestamp())

"""The first page: what needs the person, what runs, what landed. A constant number of queries."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.db.models import Count, Exists, F, OuterRef, Q
from django.http import HttpRequest
from django.utils import timezone

from agents.jobs import LAST_TICK
from agents.models import Host, Run
from agents.pages.log import silent_for, tail
from disputes.models import Dispute
from disputes.telling import channels
from tasks.access import projects_for
from tasks.models import Event, Section, Task
from tasks.states import Status

DISPUTES, RUNS, LOGS, LANDED, EVENTS, SECTIONS, HOSTS = 6, 8, 2, 8, 12, 10, 4
TAIL_LINES = 4


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run under way, and the end of its log where it is shown."""

    run: Run
    lines: list[str]
    silent: float | None  # seconds, once that is worth a word


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold's callback: the admin's index with our cards, over the projects of the person."""
    projects = projects_for(request.user)
    return {
        **context,
        "title": "Dashboard",
        "has_projects": projects.exists(),
        **_needs_you(projects),
        **_runs(projects),
        **_landed(projects),
        "events": _events(projects),
        "sections": _sections(projects),
        **_health(),
        "given_up": channels.given_up_for(request.user),
    }


def _needs_you(projects: Any) -> dict[str, Any]:
    waiting = Dispute.objects.open().filter(project__in=projects)
    rows = waiting.in_order().select_related("project", "task__project")[:DISPUTES]
    return {"disputes": list(rows), "dispute_count": waiting.count()}


def _runs(projects: Any) -> dict[str, Any]:
    live = Run.objects.live().filter(project__in=projects)
    rows = list(live.select_related("project", "task__project", "host").order_by("-pk")[:RUNS])
    with_log = [run for run in rows if run.status != Run.Status.QUEUED][:LOGS]
    logs = {run.pk: tail(run, TAIL_LINES) for run in with_log}
    return {
        "runs": [LiveRun(run, logs.get(run.pk, []), silent_for(run)) for run in rows],
        "run_count": live.count(),
        "silence": settings.DURATIONS["silence"],
    }


def _landed(projects: Any) -> dict[str, Any]:
    tasks = Task.objects.filter(project__in=projects)
    landed = tasks.filter(landed_at__isnull=False).select_related("project").order_by("-landed_at")
    return {"landed": landed[:LANDED], "to_land": tasks.to_land().count()}


def _events(projects: Any) -> Any:
    """EXISTS and not IN, so that SQLite walks the newest rows instead of sorting all."""
    mine = Exists(projects.filter(pk=OuterRef("project")))
    return Event.objects.filter(mine).select_related("task__project").order_by("-pk")[:EVENTS]


def _sections(projects: Any) -> Any:
    """Sections with tasks; unfinished ones first, each in the order of its project."""
    wanted = ~Q(tasks__status=Status.CANCELLED)
    counted = Section.objects.filter(project__in=projects).annotate(
        task_count=Count("tasks", wanted),
        landed_count=Count("tasks", wanted & Q(tasks__landed_at__isnull=False)),
    )
    return (
        counted.filter(task_count__gt=0)
        .annotate(is_whole=Q(task_count=F("landed_count")))
        .select_related("project")
        .order_by("is_whole", "project__name", "rank")[:SECTIONS]
    )


def _health() -> dict[str, Any]:
    """Which hosts reported lately, and when the loop last turned."""
    now = timezone.now()
    alive_since = now - timedelta(seconds=settings.DURATIONS["lease"])
    turning_since = now - timedelta(seconds=settings.DURATIONS["watchdog"])
    hosts = list(Host.objects.order_by(F("seen_at").desc(nulls_last=True), "name"))
    alive = sum(bool(host.seen_at and host.seen_at >= alive_since) for host in hosts)
    ticked = caches["q2"].get(LAST_TICK)
    last_tick = datetime.fromtimestamp(ticked, UTC) if ticked else None
    return {
        "hosts": hosts[:HOSTS],
        "host_count": len(hosts),
        "hosts_alive": alive,
        "last_tick": last_tick,
        "is_healthy": bool(alive and last_tick and last_tick >= turning_since),
    }

"""The first page: what needs the person, what runs, what landed. A constant number of queries."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, F, OuterRef, Q
from django.http import HttpRequest
from django.utils import timezone

from agents.crew.coverage import unwatched
from agents.models import Host, Run
from agents.web import costs
from agents.web.accounts import paused_accounts
from agents.web.checklist import checklist_for
from agents.web.log import silent_for, tail
from disputes.models import Dispute
from disputes.notifications import channels, fanout
from tasks.access import MAINTAIN, is_superuser, project_ids, projects_for
from tasks.models import Event, Project, Section, Task
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
    rows = list(projects)
    return {
        **context,
        "title": "Dashboard",
        "has_projects": bool(rows),
        "checklist": checklist_for(request.user, project_ids(request, MAINTAIN)),
        **_needs_you(projects),
        **_runs(projects),
        **_landed(projects),
        "events": _events(projects),
        "spent": costs.today(projects),
        "sections": _sections(projects),
        "paused": paused_accounts(request.user),
        "unwatched": unwatched([each for each in rows if each.status == Project.Status.ACTIVE]),
        **health(),
        "given_up": channels.given_up_for(request.user),
        "untold": fanout.stuck() if is_superuser(request) else 0,
    }


def _of(projects: Any) -> Exists:
    """EXISTS and not IN, so that the database walks an index in its order instead of sorting all."""
    return Exists(projects.filter(pk=OuterRef("project")))


def _needs_you(projects: Any) -> dict[str, Any]:
    waiting = Dispute.objects.open().filter(_of(projects))
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
    landed = Task.objects.filter(_of(projects), landed_at__isnull=False).order_by("-landed_at")
    to_land = Task.objects.filter(project__in=projects).to_land().count()
    # The projects apart: joined, they would tempt the database to begin with them and sort.
    return {"landed": landed.prefetch_related("project")[:LANDED], "to_land": to_land}


def _events(projects: Any) -> Any:
    return Event.objects.filter(_of(projects)).select_related("task__project").order_by("-pk")[:EVENTS]


def _sections(projects: Any) -> list[Section]:
    """Sections with tasks; unfinished ones first, each in the order of its project.

    Tasks are counted only for the few that are shown, and from indexes alone.
    """
    wanted = Task.objects.exclude(status=Status.CANCELLED)
    landed, left = wanted.filter(landed_at__isnull=False), wanted.filter(landed_at__isnull=True)
    sections = Section.objects.filter(project__in=projects).annotate(
        has_left=Exists(left.filter(section=OuterRef("pk"))),
        has_landed=Exists(landed.filter(section=OuterRef("pk"))),
    )
    shown = list(
        sections.filter(Q(has_left=True) | Q(has_landed=True))
        .select_related("project")
        .order_by("-has_left", "project__name", "rank")[:SECTIONS]
    )
    landed_in, left_in = (_per_section(tasks, shown) for tasks in (landed, left))
    for section in shown:
        section.landed_count = landed_in.get(section.pk, 0)
        section.task_count = section.landed_count + left_in.get(section.pk, 0)
    return shown


def _per_section(tasks: Any, sections: list[Section]) -> dict[int, int]:
    counted = tasks.filter(section__in=[section.pk for section in sections])
    return dict(counted.order_by().values_list("section").annotate(n=Count("pk")))


def health() -> dict[str, Any]:
    """Which hosts reported lately, and when the loop last turned."""
    now = timezone.now()
    alive_since = now - timedelta(seconds=settings.DURATIONS["lease"])
    turning_since = now - timedelta(seconds=settings.DURATIONS["watchdog"])
    hosts = list(Host.objects.filter(is_removed=False).order_by(F("seen_at").desc(nulls_last=True), "name"))
    alive = sum(bool(host.seen_at and host.seen_at >= alive_since) for host in hosts)
    last_tick = max((host.ticked_at for host in hosts if host.ticked_at), default=None)
    return {
        "hosts": hosts[:HOSTS],
        "host_count": len(hosts),
        "hosts_alive": alive,
        "last_tick": last_tick,
        "is_healthy": bool(alive and last_tick and last_tick >= turning_since),
    }

"""The dashboard: what needs the person, what runs, what landed, in a constant number of queries."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.http import HttpRequest

from agents.crew.choosing import Crew
from agents.crew.coverage import unwatched
from agents.loop import outlook
from agents.models import Host, Run
from agents.web import costs
from agents.web.accounts import paused_accounts
from agents.web.checklist import checklist_for, set_up_by
from agents.web.log import last_lines, last_pieces, silence_of
from agents.web.numbers import numbers
from agents.web.standing.reasons import held
from disputes.models import Dispute
from disputes.web.queue.listing import CountOf, capped
from tasks import access
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared
from tasks.models import Event, Project, Section, Task
from tasks.states import Status

DISPUTES, RUNS, LOGS, LANDED, EVENTS, SECTIONS, HOSTS = 6, 8, 2, 8, 12, 10, 4
TAIL_LINES = 4
MANAGE = ".venv/bin/python manage.py"
ROOM = f"it starts nothing; make room, for instance with `{MANAGE} prune`"
TASKS_MAX = 500  # tasks of a section counted as landed, and as many counted as left


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run under way, with the end of its log if that is shown."""

    run: Run
    lines: list[str]
    silence: str  # for how long nothing was heard of it, once that is worth mentioning


@dataclass(frozen=True, slots=True)
class SectionProgress:
    """A section, and how many of its tasks have landed or are left, neither counted beyond TASKS_MAX."""

    section: Section
    landed: int
    left: int

    @property
    def total(self) -> int:
        return self.landed + self.left

    @property
    def is_exact(self) -> bool:
        return max(self.landed, self.left) < TASKS_MAX

    @property
    def words(self) -> str:
        if self.is_exact:
            return f"{self.landed} of {self.total}"
        landed, left = (f"{TASKS_MAX}+" if n == TASKS_MAX else str(n) for n in (self.landed, self.left))
        return f"{landed}, {left} left"


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Return the context of the admin's index with the program's cards: Unfold's dashboard callback."""
    projects = {project.pk: project for project in access.my_projects(request)}
    maintained = access.project_ids(request, access.MAINTAIN)
    to_set_up = set_up_by(project for project in projects.values() if project.pk in maintained)
    sets_up = bool(maintained) or access.is_superuser(request)
    found, crew = numbers(request), Crew()
    active = [project for project in projects.values() if project.status == Project.Status.ACTIVE]
    shows_setup = sets_up and not found.has_landed
    checklist = checklist_for(request.user, to_set_up) if shows_setup else None
    in_checklist = checklist.project if checklist else None
    refused = outlook.refused_in(projects) if found.to_land else {}
    return {
        **context,
        "title": "Dashboard",
        "has_projects": bool(projects),
        "checklist": checklist,
        "disputes": access.with_projects(_disputes.found(request.user), projects),
        "dispute_count": capped(found.waiting),
        "runs": _runs(request.user, projects),
        "run_count": found.runs,
        "run_words": capped(found.runs),
        "landed": access.with_projects(_landed.found(request.user), projects),
        "to_land": capped(found.to_land) if found.to_land else "",
        "events": access.with_projects(_events.found(request.user), projects),
        "spent": costs.today(projects.values()),
        "sections": _sections(request.user, projects),
        "paused": paused_accounts(request, crew) if found.has_pauses else [],
        "held": [
            (each, why)
            for each in active
            if (each != in_checklist or each.pk in refused) and (why := held(each, refused))
        ],
        "unwatched": unwatched(active, crew, is_escalated=found.is_escalated),
        "shows_health": bool(projects) or access.is_superuser(request),
        **health(),
        "given_up": found.given_up,
        "untold": found.untold,
    }


def _newest_waiting(reader: access.Reader) -> QuerySet[Dispute]:
    waiting = Dispute.objects.waiting().filter(access.of_projects(reader, in_order=True)).in_order()
    return waiting.select_related("task")[:DISPUTES]


def _last_landed(reader: access.Reader) -> QuerySet[Task]:
    return Task.objects.filter(access.of_projects(reader, in_order=True), landed_at__isnull=False).order_by(
        "-landed_at"
    )[:LANDED]


def _newest_events(reader: access.Reader) -> QuerySet[Event]:
    return (
        Event.objects.filter(access.of_projects(reader, in_order=True))
        .select_related("task")
        .order_by("-pk")[:EVENTS]
    )


_disputes, _landed, _events = map(access.PreparedForReaders, (_newest_waiting, _last_landed, _newest_events))


def _newest_runs(reader: access.Reader) -> QuerySet[Run]:
    live = Run.objects.live().filter(access.of_projects(reader, in_order=True)).order_by("-pk")
    with_log = live.exclude(status=Run.Status.QUEUED).values("pk")[:LOGS]
    end = Case(When(pk__in=with_log, then=last_pieces(OuterRef("pk"), TAIL_LINES)), default=Value(""))
    return live.select_related("task", "host").annotate(log_end=end)[:RUNS]


_live_runs = access.PreparedForReaders(_newest_runs)


def _runs(user: Any, projects: dict[int, Project]) -> list[LiveRun]:
    """Return the newest runs under way, with the end of the log for the first few."""
    return [
        LiveRun(run, last_lines(run.log_end, TAIL_LINES), silence_of(run))
        for run in access.with_projects(_live_runs.found(user), projects)
    ]


def _first_sections(reader: access.Reader) -> QuerySet[Section]:
    """Return the query for the sections that are shown.

    Tasks are counted only for these few, from indexes alone and not beyond TASKS_MAX.
    """
    own = Task.objects.exclude(status=Status.CANCELLED).filter(section=OuterRef("pk")).order_by()
    landed, left = own.filter(landed_at__isnull=False), own.filter(landed_at__isnull=True)
    first = (
        Section.objects.filter(access.of_projects(reader, in_order=True))
        .alias(has_left=Exists(left), has_landed=Exists(landed))
        .filter(Q(has_left=True) | Q(has_landed=True))
        .order_by("-has_left", "project__name", "rank")
    )
    shown = Section.objects.filter(pk__in=first.values("pk")[:SECTIONS]).order_by("rank")
    return shown.annotate(
        landed_count=CountOf(landed.values("pk")[:TASKS_MAX]),
        left_count=CountOf(left.values("pk")[:TASKS_MAX]),
    )


_shown_sections = access.PreparedForReaders(_first_sections)


def _sections(user: Any, projects: dict[int, Project]) -> list[SectionProgress]:
    """Return sections that have tasks, unfinished ones first, each in the order of its project."""
    found = [
        SectionProgress(section, section.landed_count, section.left_count)
        for section in access.with_projects(_shown_sections.found(user), projects)
    ]
    return sorted(found, key=lambda each: (not each.left, each.section.project.name))


_known_hosts = Prepared(
    lambda: Host.objects.filter(is_removed=False).order_by(F("seen_at").desc(nulls_last=True), "name")
)


def health() -> dict[str, Any]:
    """Return which hosts reported lately, what is wrong with others, and when the loop last ran.

    What is wrong is told as what it is and what to do about it, here and by `manage.py status`.
    """
    now = estimated_time()
    alive_since = now - timedelta(seconds=settings.DURATIONS["lease"])
    turning_since = now - timedelta(seconds=settings.DURATIONS["watchdog"])
    hosts = _known_hosts.found()
    alive = [host for host in hosts if host.boot_id and host.seen_at and host.seen_at >= alive_since]
    full = [host for host in alive if not host.has_room]
    wrong = [(f"{host.name} has no room left on its disk", ROOM) for host in full[:HOSTS]]
    wrong += [
        (
            f"{host.name} has stopped reporting",
            f"start it again, or `{MANAGE} host remove {host.name}`",
        )
        for host in hosts
        if host.seen_at and host not in alive and host.boot_id and not host.is_draining
    ][:HOSTS]
    last_tick = max((host.ticked_at for host in hosts if host.ticked_at), default=None)
    is_healthy = bool(alive and last_tick and last_tick >= turning_since)
    return {
        "hosts": hosts[:HOSTS],
        "host_count": len(hosts),
        "hosts_alive": len(alive),
        "wrong_hosts": wrong,
        "last_tick": last_tick,
        "is_healthy": is_healthy,
        "is_well": is_healthy and not wrong,
    }

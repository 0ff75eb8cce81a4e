"""What the rows say about a list of tasks, in a constant number of queries; no counter is trusted here."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Now
from django.utils.functional import cached_property

from agents.crew import choosing
from agents.loop import contested, outlook
from agents.models import Host, Run
from agents.money import caps
from disputes.models import Conflict, Decision, Dispute
from tasks.database.clock import estimated_time
from tasks.database.prepared import PreparedForKeys
from tasks.dependencies import SATISFIED_ON
from tasks.models import Dependency, Landing, Section, Submission, Task
from tasks.states import UNFINISHED, Severity, Status

NAMED = 3  # things that a task waits for, named in one line


@dataclass(frozen=True, slots=True)
class Asked:
    """What the rows say about a single task."""

    dispute: int | None
    dispute_since: datetime | None
    dispute_for: str  # the person that the dispute is assigned to
    is_held: bool
    now: datetime  # by the database's clock, which rests and rulings go by
    ruling_at: datetime | None  # when a ruling on it takes effect, if that is still to come
    submission: str  # the state of the last submission
    problem: str
    only_on: str  # the only host that has its commits; empty if any host may take it
    made_on: str  # the host on which it was handed in
    is_refused: bool  # whether the remote of its project does not take what is approved


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The newest session of a project of documents."""

    status: str
    round: int
    dispute: int | None
    is_given: bool  # whether a gap is with its engineer

    @property
    def is_idle(self) -> bool:
        """Whether it would be the engineer's turn, but nothing is given out."""
        return self.status == Status.IN_PROGRESS and not self.is_given


@dataclass(slots=True)
class SectionFacts:
    """A section, and what is left in it."""

    title: str
    project: int
    parent: int | None
    is_stopped: bool
    has_open: bool  # whether it has a task whose dependants have to wait
    failed: int | None  # the number of the task that failed first, if any
    needs: set[int] = field(default_factory=set)


class Facts:
    """Everything that `reasons` asks, loaded for all tasks at once when it is first needed."""

    def __init__(
        self,
        tasks: Iterable[Task],
        now: datetime | None = None,
        runs: Iterable[Run] | None = None,
        crew: choosing.Crew | None = None,
    ) -> None:
        """Note the tasks; a caller that has read their live runs or the crew passes them, too."""
        self.tasks = list(tasks)
        self.now = now or estimated_time()
        self.keys = [task.pk for task in self.tasks]
        self.projects = {task.project_id for task in self.tasks}
        self.crew = crew or choosing.Crew(now=self.now)
        if runs is not None:
            self.runs = _by_task(runs)

    # --- The tasks themselves ---

    @cached_property
    def asked(self) -> dict[int, Asked]:
        """What the rows say about each task, by its key.

        It takes one query, with a subquery for each fact that any task may need, or none if the tasks were
        read with these columns: each subquery has to be planned each time.
        """
        if all(hasattr(task, name) for task in self.tasks for name in _COLUMNS):
            return {task.pk: _asked(getattr(task, name) for name in _COLUMNS) for task in self.tasks}
        return {pk: _asked(values) for pk, *values in _asked_of.found(self.keys)}

    @cached_property
    def failures(self) -> dict[int, int]:
        """For tasks that rest: the counted runs of the role whose turn it is since its last hand-in."""
        resting = [task.pk for task in self.tasks if task.not_before and task.not_before > self.now]
        return dict(_failures(resting))

    @cached_property
    def landings(self) -> dict[int, Landing]:
        """The last attempt to land each accepted submission that has not landed yet."""
        accepted = [task.accepted_id for task in self.tasks if task.accepted_id and not task.landed_at]
        fields = ("submission", "status", "problem", "not_before", "rebased_from")
        rows = Landing.objects.filter(submission__in=accepted).only(*fields).order_by("pk")
        return {landing.submission_id: landing for landing in rows}

    @cached_property
    def refused(self) -> dict[int, Landing]:
        """What the remote of each project does not take for now, by project."""
        return outlook.refused_in(self.projects)

    @cached_property
    def contested(self) -> dict[int, Task]:
        """The task that goes first, for each that waits because both change the same files."""
        return contested.waiting(self.tasks)

    @cached_property
    def unmet(self) -> dict[int, list[tuple[int, str]]]:
        """The tasks that each task waits for, as (number, title); all are of its own project."""
        links = (
            Dependency.objects.filter(task__in=self.keys)
            .exclude(SATISFIED_ON)
            .order_by("on__rank", "on__number")
            .values_list("task", "on__number", "on__title")
        )
        found: dict[int, list[tuple[int, str]]] = {}
        for task, number, title in links:
            found.setdefault(task, []).append((number, title))
        return found

    @cached_property
    def closed(self) -> dict[int, caps.Reached]:
        """The projects in which a cap on money or tokens lets no agent start."""
        return caps.closed({task.project_id: task.project for task in self.tasks}.values(), self.now)

    # --- Sessions of documents ---

    @cached_property
    def sessions(self) -> dict[int, SessionFacts]:
        """The newest session of each of the projects that has one, by project."""
        dispute = Dispute.objects.open().filter(task=OuterRef("pk")).order_by("pk").values("pk")[:1]
        rows = Task.objects.filter(project__in=self.projects, origin=Task.Origin.ROUNDS).order_by("number")
        given = Task.objects.gaps().filter(project=OuterRef("project"), status=Status.IN_PROGRESS)
        found = rows.values_list("project", "status", "round", Subquery(dispute), Exists(given))
        return {project: SessionFacts(*facts) for project, *facts in found}

    @cached_property
    def idle_sessions(self) -> set[int]:
        """The sessions among the tasks whose turn it would be, but that have given out no gap."""
        begun = {Status.PENDING, Status.IN_PROGRESS}
        keys = [task.pk for task in self.tasks if task.is_session and task.status in begun]
        if not keys:
            return set()
        return set(keys).difference(
            Task.objects.filter(pk__in=keys).in_the_loop().values_list("pk", flat=True)
        )

    # --- Sections ---

    @cached_property
    def sections(self) -> dict[int, SectionFacts]:
        """All sections of the projects, in one query with a row for each section that one waits for."""
        own = Task.objects.filter(section=OuterRef("pk")).order_by("status_at")
        # The tasks that SATISFIED leaves, asked so that an index answers: thousands of tasks may have landed.
        begun = own.filter(status__in=UNFINISHED, landed_at__isnull=True)
        to_land = own.filter(
            project=OuterRef("project"), status=Status.COMPLETED, accepted__isnull=False,
            landed_at__isnull=True, finished_by="",
        )  # fmt: skip
        rows = (
            Section.objects.filter(project__in=self.projects)
            .annotate(
                has_open=Exists(begun) | Exists(to_land),
                failed=Subquery(own.filter(status=Status.FAILED).values("number")[:1]),
            )
            .order_by("rank")
            .values_list("pk", "title", "project", "parent", "is_stopped", "has_open", "failed", "depends_on")
        )
        found: dict[int, SectionFacts] = {}
        for pk, *facts, needed in rows:
            section = found.setdefault(pk, SectionFacts(*facts))
            if needed is not None:
                section.needs.add(needed)
        return found

    def unmet_sections(self, section: int | None) -> list[str]:
        """Return the titles of the sections it waits for, by itself or through the section around it."""
        if section is None:
            return []
        here = self.sections[section]
        own = [self.sections[needed].title for needed in sorted(here.needs) if self._is_unmet(needed)]
        return own + self.unmet_sections(here.parent)

    def _is_unmet(self, section: int) -> bool:
        below = [pk for pk, each in self.sections.items() if each.parent == section]
        return self.sections[section].has_open or any(self._is_unmet(pk) for pk in below)

    def failed_in(self, task: Task) -> int | None:
        """Return the number of a failed task that may have stopped this one's section, or None."""
        here = self.sections[task.section_id].failed
        beside = (each.failed for each in self.sections.values() if each.project == task.project_id)
        return here or next((failed for failed in beside if failed), None)

    def has_critical_to_start(self, project: Any) -> bool:
        """Whether the project has critical tasks to start, so that a focus on them holds others back."""
        known = self.__dict__.setdefault("_critical", {})
        if project.pk not in known:
            critical = project.tasks.filter(severity=Severity.CRITICAL)
            known[project.pk] = critical.startable().exists()
        return bool(known[project.pk])

    # --- Who works ---

    @cached_property
    def live(self) -> list[Run]:
        """Every run under way, in all projects: no more than there are seats."""
        fields = (
            "task", "project", "agent", "agent_label", "host", "role", "seat", "status", "queued_at",
            "started_at", "last_output_at", "lease_until", "stop_requested",
        )  # fmt: skip
        return list(Run.objects.live().only(*fields).order_by("pk"))

    @cached_property
    def runs(self) -> dict[int, Run]:
        """The run under way of each task: one that holds a seat rather than one that is closing."""
        return _by_task(self.live)

    @cached_property
    def seated(self) -> Counter[int]:
        return Counter(run.project_id for run in self.live if run.status in Run.SEATED)

    @cached_property
    def busy(self) -> Counter[int | None]:
        return Counter(run.agent_id for run in self.live if run.status in Run.SEATED)

    @cached_property
    def roster(self) -> choosing.Roster:
        """Who would take these tasks next; the loop itself asks the same object."""
        if "live" not in self.__dict__:
            return choosing.Roster(self.crew, self.tasks)
        self.crew.busy = self.busy  # these rows are already read, and so are the seats
        reviewers = [run for run in self.live if run.role == Run.Role.REVIEWER and run.status in Run.SEATED]
        return choosing.Roster(self.crew, self.tasks, [(run.task_id, run.seat) for run in reviewers])

    @cached_property
    def known_hosts(self) -> list[Host]:
        return list(Host.objects.filter(is_removed=False))

    @cached_property
    def hosts(self) -> list[Host]:
        """The hosts that reported lately and have slots for runs."""
        since = self.now - timedelta(seconds=settings.DURATIONS["lease"])
        return [host for host in self.known_hosts if host.slots and host.seen_at and host.seen_at >= since]

    @cached_property
    def seen(self) -> dict[str, datetime | None]:
        """When each host reported last, by its name; None if it never did."""
        return {host.name: host.seen_at for host in self.known_hosts}

    def has_free_slot(self) -> bool:
        held = Counter(run.host_id for run in self.live if run.status in Run.HELD)
        return any(held[host.pk] < host.slots for host in self.hosts if host.takes_work)

    @cached_property
    def last_tick(self) -> datetime | None:
        """When the loop last ran on any host, or None."""
        return max((host.ticked_at for host in self.known_hosts if host.ticked_at), default=None)

    def loop_turns(self) -> bool:
        patience = timedelta(seconds=settings.DURATIONS["watchdog"])
        return self.last_tick is not None and self.now - self.last_tick < patience


def _by_task(runs: Iterable[Run]) -> dict[int, Run]:
    ordered = sorted(runs, key=lambda run: (run.status in Run.SEATED, run.pk))
    return {run.task_id: run for run in ordered}


def columns() -> dict[str, Any]:
    """Return the columns of `Asked`, each under a name that no column of a task has."""
    task = OuterRef("pk")
    disputes = Dispute.objects.open().filter(task=task).order_by("pk")
    held = Conflict.objects.of(task).open().holding()
    rulings = Decision.objects.of(task).standing().unused()
    coming = rulings.filter(effective_at__gt=Now()).order_by("-effective_at")
    last = Submission.objects.standing().filter(task=task).newest_first()
    return {
        "x_dispute": Subquery(disputes.values("pk")[:1]),
        "x_dispute_since": Subquery(disputes.values("opened_at")[:1]),
        "x_dispute_for": Subquery(disputes.values("assignee__username")[:1]),
        "x_is_held": Exists(held),
        "x_now": Now(),
        "x_ruling_at": Subquery(coming.values("effective_at")[:1]),
        "x_submission": Subquery(last.values("state")[:1]),
        "x_problem": Subquery(last.values("problem")[:1]),
        "x_only_on": Subquery(last.values("only_on")[:1]),
        "x_made_on": Subquery(last.values("run__host__name")[:1]),
        "x_is_refused": Exists(outlook.refused().filter(project=OuterRef("project"))),
    }


def _failures(tasks: list[int]) -> Any:
    """Return (task, count) of counted runs since the last hand-in, as `run_ends.failed_in_a_row` counts."""
    role = Q(role=Run.Role.REVIEWER, task__status=Status.REVIEW)
    role |= Q(role=Run.Role.CODER) & ~Q(task__status=Status.REVIEW)
    since = Q(task__counts_since__isnull=True) | Q(queued_at__gt=F("task__counts_since"))
    later_good = Run.objects.filter(
        task=OuterRef("task"), role=OuterRef("role"), outcome=Run.Outcome.HANDED_IN, pk__gt=OuterRef("pk")
    )
    counted = Run.objects.filter(role & since, ~Exists(later_good), task__in=tasks, is_counted=True)
    return counted.order_by().values_list("task").annotate(n=Count("pk"))


_NAMES = tuple(each.name for each in fields(Asked))
_COLUMNS = tuple(f"x_{name}" for name in _NAMES)
_WORDS = ("dispute_for", "submission", "problem", "only_on", "made_on")


def _with_columns(keys: Any) -> Any:
    rows = Task.objects.filter(pk__in=keys).annotate(**columns()).order_by()
    return rows.values_list("pk", *_COLUMNS)


_asked_of = PreparedForKeys(_with_columns, 120)  # as many as a board of eight columns shows


def _asked(values: Iterable[Any]) -> Asked:
    """Return the values of the columns; a word that is missing is empty."""
    named = dict(zip(_NAMES, values, strict=True))
    return Asked(**named | {name: named[name] or "" for name in _WORDS})

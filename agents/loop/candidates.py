"""Which tasks may go on: by their own state, by that of the target branch, and by who is idle."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.db.models import Exists, Expression, OuterRef, Q, QuerySet, Subquery

from agents.crew import choosing
from agents.loop import outlook
from agents.models import Run
from disputes import alerts
from disputes.models import Conflict
from tasks.configuration.stages import Stage, escalations_of, stages_of
from tasks.database.prepared import Prepared
from tasks.models import Landing, Project, Submission, Task
from tasks.states import Status


def working() -> QuerySet[Run]:
    """Return the runs that hold a seat for their task's own work; opinions are asked for beside it."""
    return Run.objects.filter(status__in=Run.SEATED).exclude(role__in=Run.OPINION_ROLES)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tasks somebody idle could take. Its condition is built once for each combination of these."""

    in_parallel: bool  # others may join a review that is under way
    unreviewed: tuple[str, ...]  # columns
    to_review: bool  # a reviewer is idle
    to_code: bool  # a coder is idle
    branch_moves: bool  # a landing is about to be pushed, or was refused, so new work waits until it is over
    shut: tuple[str, ...]  # columns in which no coder is idle
    climbing: tuple[str, ...]  # those of them in which a task at the end of its ladder goes on all the same
    focus: Q | None
    is_closed: bool  # builds and tests cost nothing, so they go on

    def condition(self) -> Q:
        """Return the condition on tasks, by `last_state` and `is_seated`."""
        kept = Q(status=Status.REVIEW, last_state=Submission.State.KEPT)
        verified = Q(status=Status.REVIEW, last_state=Submission.State.VERIFIED)
        alone = Q(is_seated=False)
        wanted = kept & alone
        wanted |= verified & alone & (Q(stage__in=self.unreviewed) | Q(origin=Task.Origin.AMENDMENT))
        if self.in_parallel:
            wanted |= verified
        elif self.to_review:
            wanted |= verified & alone
        code = ~Q(status=Status.REVIEW) & alone
        if self.to_code:
            open_to_all = code & ~Q(stage__in=self.shut)
            wanted |= open_to_all & ~Q(status=Status.PENDING) if self.branch_moves else open_to_all
        if self.climbing:
            wanted |= code & Q(status=Status.IN_PROGRESS, stage__in=self.climbing)
        if self.focus is not None:
            wanted &= self.focus
        return wanted & kept if self.is_closed else wanted


@lru_cache(maxsize=64)  # projects share a few conditions
def first_wanted(wanted: Wanted, most: int) -> Prepared:
    """Return the query for the first wanted tasks that may be picked, with their last submission's state."""

    def rows(project: Expression) -> QuerySet[Task]:
        held = Conflict.objects.of(OuterRef("pk")).open().holding()
        seated = working().filter(task=OuterRef("pk"))
        tasks = Task.objects.filter(project=project).startable().exclude(Exists(held))
        known = with_last(tasks).annotate(is_seated=Exists(seated)).select_related("section")
        return known.filter(wanted.condition()).filter(may_go_on())[:most]

    return Prepared(rows)


def with_last(tasks: QuerySet[Task]) -> QuerySet[Task]:
    """Return the tasks with the state and the commit of their last submission that still stands."""
    last = Submission.objects.standing().filter(task=OuterRef("pk")).newest_first()
    return tasks.annotate(last_state=_last_state(), last_sha=Subquery(last.values("sha")[:1]))


def wanted_in(project: Project, crew: choosing.Crew, *, is_closed: bool) -> Wanted:
    """Return what is wanted of the project's tasks now; if its caps are reached, only what costs nothing."""
    config = project.config
    columns = (*stages_of(config), *escalations_of(config))
    shut = [each for each in columns if not crew.is_idle(project.pk, Run.Role.CODER, each)]
    to_code = crew.is_idle(project.pk, Run.Role.CODER)
    return Wanted(
        in_parallel=config.reviewers == choosing.ALL,
        unreviewed=_names(each for each in columns if not each.is_reviewed),
        to_review=crew.is_idle(project.pk, Run.Role.REVIEWER),
        to_code=to_code,
        branch_moves=to_code and bool(_last_push.rows(project.pk, outlook.a_moment_ago())),
        shut=_names(shut),
        climbing=_names(each for each in shut if each.ladder_name in config.model_ladder),
        focus=alerts.in_focus(project) or None,
        is_closed=is_closed,
    )


def _names(columns: Iterable[Stage]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def may_go_on() -> Q:
    """Return the condition on tasks that the state of the target branch lets go on, by `last_state`.

    If the base is fit, these are all tasks. While it is red, commits that began before are still verified;
    while it cannot be run, they wait. Reviews go on in any case, and so does the task that is to find the
    commands.
    """
    verified = Q(status=Status.REVIEW, last_state=Submission.State.VERIFIED)
    red = Q(project__base_state=Project.Base.RED, status=Status.REVIEW)
    return Q(project__base_state__in=Project.FIT) | verified | red | Q(origin=Task.Origin.SETUP)


def _last_state() -> Subquery:
    last = Submission.objects.standing().filter(task=OuterRef("pk")).newest_first()
    return Subquery(last.values("state")[:1])


def _last_pushes(project: Expression, since: Expression) -> QuerySet[Landing]:
    return outlook.last_pushes(since).filter(project=project).order_by().values_list("pk")[:1]


_last_push = Prepared(_last_pushes)


def to_land(until: datetime | Expression) -> QuerySet[Task]:
    """Return the accepted tasks that are to be queued for landing by then, since no card holds them."""
    live = Landing.objects.filter(submission=OuterRef("accepted"), status__in=Landing.LIVE)
    held = Conflict.objects.of(OuterRef("pk")).open().holding()
    rested = Q(not_before__isnull=True) | Q(not_before__lte=until)
    return Task.objects.to_land().filter(rested).exclude(Exists(live)).exclude(Exists(held))


def waiting_tasks(until: datetime) -> list[Task]:
    """Return the tasks that the loop would start by `until` if it had the seats and the agents."""
    held = Conflict.objects.of(OuterRef("pk")).open().holding()
    refused = outlook.refused().filter(project=OuterRef("project"))
    tasks = (
        Task.objects.startable(until)
        .exclude(Exists(refused), status=Status.PENDING)
        .filter(project__status=Project.Status.ACTIVE)
        .annotate(last_state=_last_state())
        .filter(may_go_on())
        .filter(Q(project__trouble_until__isnull=True) | Q(project__trouble_until__lte=until))
        .exclude(Exists(held))
        .select_related("project")
    )
    rows = list(tasks)
    roster = choosing.Roster(choosing.Crew(now=until), rows)
    turns = [(task, roster.turn_of(task)) for task in rows]
    return [task for task, turn in turns if not (turn.is_wrong or turn.is_paused or turn.is_elsewhere)]

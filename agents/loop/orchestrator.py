"""tick() decides what is next and for whom. It is the only place that starts work.

It reads rows and trusts no queue, so it may run twice at once, late, or again after a crash. It creates
`Run` and `Landing` rows; hosts carry them out. Nothing slow happens here.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, Expression, F, OuterRef, QuerySet, TextField
from django.db.models.functions import Cast, Now

from agents import judging
from agents.crew import choosing, specialists
from agents.loop import abandoned, candidates, contested, outlook, run_ends, schedules
from agents.models import Agent, Run
from agents.money import caps
from agents.pull import leases
from agents.verification import nothing
from disputes import followup, intake, opinions, passing_stages
from disputes.completion import checkpoints
from disputes.sessions import turns
from tasks.configuration.changing import pause_invalid
from tasks.database.clock import database_time, estimated_time
from tasks.database.locking import repeated
from tasks.database.prepared import Prepared, PreparedInsert, PreparedUpdate
from tasks.models import Landing, Project, StaleTask, Submission, Task, Verification
from tasks.models.event import record
from tasks.models.project import locked_project
from tasks.states import IllegalMove, Status

log = logging.getLogger(__name__)

BEATS_MORE = 2  # beats for which a host whose lease is over is still waited for
LOOKED_AT = (4, 500)  # candidates of one project in one tick: a few, and more only if seats are left
LOOKED_AT_ONCE = 50  # candidates looked at in one go, until all seats are taken


@dataclass
class Ticked:
    """What one tick did."""

    reaped: int = 0
    started: int = 0
    landings: int = 0
    claimed: Run | None = None  # the run of an agent that asked for work
    in_a_turn: list[outlook.Ahead] = field(default_factory=list, compare=False)  # a checkpoint may be due


class Quiet:
    """Projects in which no checkpoint was due; they are not asked again while nothing happens in them.

    Their newest event tells whether anything happened. It is believed for a beat only, since on PostgreSQL
    an older event may appear later.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, float]] = {}

    def is_known(self, ahead: outlook.Ahead) -> bool:
        newest, until = self._known.get(ahead.pk, (0, 0.0))
        return newest == ahead.newest_event and time.monotonic() < until

    def note(self, ahead: outlook.Ahead) -> None:
        self._known[ahead.pk] = ahead.newest_event, time.monotonic() + settings.DURATIONS["beat"]


def tick(project_pk: int | None = None, quiet: Quiet | None = None) -> Ticked:
    """End what is lost, then start what may start, in all projects or in one."""
    reaped = clear_up()
    done = go_on(project_pk, quiet)
    done.reaped = reaped
    return done


def _with_settings() -> QuerySet[Project]:
    said = Cast("settings", TextField())  # as a constant, only a text is the same in both databases
    return Project.objects.filter(status=Project.Status.ACTIVE).alias(said=said).exclude(said="{}")


_configured = Prepared(_with_settings)


def clear_up() -> int:
    """End lost runs, and disputes whose tasks are over; pause projects whose settings are not valid.

    Returns how many runs were lost.
    """
    pause_invalid(_configured.found())
    now_and_then = outlook.now_and_then()
    reaped = reap(now_and_then)
    if now_and_then.disputes:
        followup.sweep()
    return reaped


def go_on(project_pk: int | None = None, quiet: Quiet | None = None) -> Ticked:
    """Start what may start, and close the checkpoints that are due."""
    quiet = quiet or Quiet()
    done = start_due(project_pk, quiet)
    take_checkpoints(done, quiet)
    return done


def start_due(project_pk: int | None = None, quiet: Quiet | None = None) -> Ticked:
    """Start what may start, looking only into projects in which something may be due."""
    done, quiet = Ticked(), quiet or Quiet()
    crew = choosing.Crew()
    for ahead in outlook.projects_ahead():
        if project_pk not in {None, ahead.pk}:
            continue
        started = 0
        is_ruled = ahead.has_policy and opinions.apply_policy(Project.objects.get(pk=ahead.pk)) > 0
        if is_ruled or _may_be_due(ahead, crew):
            of_project = _ticked(outlook.everything(ahead.pk) if is_ruled else ahead, crew)
            started = of_project.started
            done.started += started
            done.landings += of_project.landings
        if started or (ahead.is_in_a_turn and not quiet.is_known(ahead)):
            done.in_a_turn.append(ahead)
    return done


def take_checkpoints(done: Ticked, quiet: Quiet) -> None:
    """Close the checkpoints that are due in the projects of this tick.

    A resident loop first has its host begin the work.
    """
    for ahead in done.in_a_turn:
        if not checkpoints.take_checkpoint(ahead.pk):
            quiet.note(ahead)


def _may_be_due(ahead: outlook.Ahead, crew: choosing.Crew) -> bool:
    """Whether the project has to be looked into; new work counts only if somebody could take it."""
    if ahead.to_land or ahead.to_check or ahead.to_ask or ahead.has_session:
        return True
    return ahead.has_seat and (
        ahead.to_verify
        or ahead.is_special
        or (ahead.to_code and crew.is_idle(ahead.pk, Run.Role.CODER))
        or (ahead.to_review and crew.is_idle(ahead.pk, Run.Role.REVIEWER))
    )


@repeated
def _ticked(ahead: outlook.Ahead, crew: choosing.Crew) -> Ticked:
    done = Ticked()
    tick_project(ahead.pk, done, crew, ahead)
    return done


def reap(may: outlook.NowAndThen | None = None) -> int:
    """End runs whose lease was not renewed, and queued ones whose turn is over.

    Returns how many runs were lost.
    """
    may = may or outlook.now_and_then()
    reaped = (leases.reap() if may.pulled else 0) + (_reap_held() if may.held else 0)
    abandoned.give_up()
    if may.asked:
        judging.withdraw()
    schedules.bring_forward()
    of_a_turn = Run.objects.filter(status=Run.Status.QUEUED).exclude(role__in=Run.OPINION_ROLES)
    overtaken = of_a_turn.exclude(task__version=F("task_version"))
    for run in overtaken.select_related("task", "project") if may.queued else ():
        run_ends.end(run, Run.Outcome.STOPPED, reason="The task moved on before it started.")
    return reaped


def _overdue() -> QuerySet[Run]:
    return Run.objects.on_host().filter(lease_until__lt=Now(), is_pulled=False)


_any_overdue = Prepared(lambda: _overdue().order_by().values_list("pk")[:1])


def _reap_held() -> int:
    """End the runs on hosts whose lease is over, and return how many.

    A run found overdue is first given a moment more: if the database's clock was set, all leases are over
    at once, and a host that is alive renews its own within a beat.
    """
    if not _any_overdue.rows():
        return 0
    over = _overdue()
    lost = list(over.filter(is_overdue=True).select_related("task", "project", "host"))
    moment = timedelta(seconds=BEATS_MORE * settings.DURATIONS["beat"])
    over.filter(is_overdue=False).update(is_overdue=True, lease_until=Now() + moment)
    ended = 0
    for run in lost:
        if over.filter(pk=run.pk, fence=run.fence, is_overdue=True).update(fence=F("fence") + 1):
            run.fence += 1  # its host, should it come back only now, finds nothing to renew or end
            ended += run_ends.end(run, Run.Outcome.LOST, reason=f"Host {run.host} did not renew its lease.")
    return ended


@transaction.atomic
def tick_project(
    pk: int, done: Ticked, crew: choosing.Crew | None = None, ahead: outlook.Ahead | None = None
) -> None:
    """Create the project's runs and landings. Its row is locked, so that only one tick at a time does this.

    If the crew has a puller, which is an agent that asks for work itself, the one run that is created is
    for it (COL-3). `ahead` says what may be due; without it, everything may be.
    """
    crew, ahead = crew or choosing.Crew(), ahead or outlook.everything(pk)
    project = locked_project(pk)
    if project is None or _rests(project):
        return
    if ahead.to_verify or ahead.is_special:
        _pass_by(project)
    turns.advance(project)
    if ahead.to_land:
        done.landings += _queue_landings(project)
    free = project.max_parallel - _seats_taken(project)
    if ahead.to_check and project.base_state in Project.FIT:
        free -= _verify_landings(project, free, done)
    is_closed = caps.keeps_closed(project)
    if ahead.to_ask and crew.puller is None and not is_closed:
        asked = judging.start(project, free)
        free, done.started = free - asked, done.started + asked
    if free > 0 and ahead.has_work:
        crew.look_again()
        _start_tasks(project, done, free, crew, is_closed=is_closed)


def _rests(project: Project) -> bool:
    """Whether nothing may be started: its repository is in trouble, or its settings are not valid."""
    in_trouble = project.trouble_until and project.trouble_until > database_time()
    return bool(in_trouble or pause_invalid([project]))


def _start_tasks(project: Project, done: Ticked, free: int, crew: choosing.Crew, *, is_closed: bool) -> None:
    """Queue the runs that the project's tasks need, in the order of the tasks, until all seats are taken."""
    wanted = candidates.wanted_in(project, crew, is_closed=is_closed)
    looked_at: set[int] = set()
    for most in LOOKED_AT:
        found = candidates.first_wanted(wanted, most).found(project.pk)
        tasks = [task for task in found if task.pk not in looked_at]
        for task in tasks:
            task.project = project
        for first in range(0, len(tasks), LOOKED_AT_ONCE):
            some = tasks[first : first + LOOKED_AT_ONCE]
            roster = choosing.Roster(crew, some)
            for task in some:
                if free <= 0 or done.claimed:
                    return
                free -= _start(task, roster, done, free)
        if free <= 0 or len(found) < most:
            return
        looked_at.update(task.pk for task in tasks)


def _seats_taken(project: Project) -> int:
    """Count the seats of runs, and of hand-ins that a host is just taking over: their tasks go on at once."""
    kept = _being_kept.rows(project.pk, outlook.a_moment_ago())
    return len(_seated.rows(project.pk)) + len(kept)


def _runs_with_a_seat(project: Expression) -> QuerySet[Run]:
    return Run.objects.filter(project=project, status__in=Run.SEATED).order_by().values_list("pk")


_seated = Prepared(_runs_with_a_seat)
_being_kept = Prepared(lambda project, since: outlook.being_kept(project, since).order_by().values_list("pk"))


def _pass_by(project: Project) -> None:
    """Send what was handed in straight on to its review if there is nothing to build or test."""
    if not nothing.may_pass_by(project):
        return
    for task in _kept.found(project.pk):
        task.project = project
        if not nothing.is_to_be_run(task):
            _let_pass(task)


def _kept_in_review(project: Expression) -> QuerySet[Task]:
    in_review = Task.objects.filter(project=project).startable().filter(status=Status.REVIEW)
    return candidates.with_last(in_review).filter(last_state=Submission.State.KEPT)


_kept = Prepared(_kept_in_review)


def _let_pass(task: Any) -> int:
    """Send the kept commit on to its review. Returns 0, since no run begins for it."""
    _do(task, lambda: nothing.pass_by(task, task.last_sha))
    return 0


def _start(task: Any, roster: choosing.Roster, done: Ticked, free: int) -> int:
    """Queue the runs that the task needs now, at most `free`, and return how many were queued."""
    if task.status == Status.REVIEW and task.last_state == Submission.State.KEPT:
        if not nothing.is_to_be_run(task):  # it was kept after this tick began
            return _let_pass(task)
        return _queue(task, None, done, sha=task.last_sha)
    if task.status == Status.REVIEW and not passing_stages.is_reviewed(task):
        _do(task, lambda: passing_stages.pass_unreviewed(task))
        return 0
    if contested.waiting([task]):
        return 0
    turn = roster.turn_of(task)
    if roster.crew.puller is None and turn.escalates:
        _do(task, lambda: specialists.escalate(task, crew=roster.crew))
    elif roster.crew.puller is None and turn.is_decided:
        _do(task, lambda: intake.conclude_reviews(task, without=turn.without))
    started = 0
    for choice in turn.choices[:free]:
        if _queue(task, choice, done, sha=task.last_sha if task.status == Status.REVIEW else ""):
            roster.crew.take(choice)
            started += 1
    return started


def _do(task: Task, move: Callable[[], object]) -> None:
    """Make a move on behalf of the tick, unless somebody was faster."""
    try:
        with transaction.atomic():
            move()
    except (StaleTask, IllegalMove):
        log.info("%s moved on by itself.", task.ref)


def _queue(task: Task, choice: choosing.Choice | None, done: Ticked, *, sha: str) -> int:
    """Queue a run of the chosen agent, or a verification if there is none. Returns 1 if it did, else 0."""
    agent = choice.agent if choice else None
    if agent is not None and caps.park_if_spent(task):
        return 0
    try:
        with transaction.atomic():
            if task.status == Status.PENDING:
                task.start()
            run = _run_of(task, choice, sha)
            _new_runs.insert(run)
    except (IntegrityError, StaleTask):
        return 0  # another tick was faster
    _begun.write(task.project_id, last_started_at=estimated_time())
    data = {"run": run.pk, "role": run.role} | ({"step": run.step} if run.step else {})
    note = f"{run.agent_label}. {run.choice}" if run.choice else run.agent_label
    record(task.project, "run_queued", task=task, data=data, note=note)
    done.started += 1
    if run.is_pulled:
        done.claimed = run
    return 1


_new_runs, _new_landings = PreparedInsert(Run), PreparedInsert(Landing)
_begun = PreparedUpdate(lambda pk: Project.objects.filter(pk=pk), "last_started_at")


def _run_of(task: Task, choice: choosing.Choice | None, sha: str) -> Run:
    """Return an unsaved run of the chosen agent, or of the verifier if none was chosen."""
    run = Run(
        task=task, project=task.project, role=Run.Role.VERIFIER, seat=Run.Role.VERIFIER,
        round=max(task.round, 1), stage=task.stage, sha=sha, task_version=task.version,
    )  # fmt: skip
    if choice is not None:
        agent = choice.agent
        run.role, run.seat, run.model, run.choice = choice.role, choice.seat, choice.model, choice.note
        run.step = str(choice.step or "")
        run.agent, run.agent_label = agent, agent.name
        run.is_pulled = agent.provider == Agent.Provider.PULL
    return run


# --- Landings ---------------------------------------------------------------------------------------------


def _queue_landings(project: Project) -> int:
    """Queue a landing for each accepted submission whose turn it is, and return how many."""
    tasks = _accepted.found(project.pk)
    waiting = contested.waiting(tasks)
    tasks = [task for task in tasks if task.pk not in waiting]
    for task in tasks:
        landing = Landing(
            project=project, task=task, submission=task.accepted, sha=task.accepted.sha,
            target=project.target_branch,
        )  # fmt: skip
        _new_landings.insert(landing)
    return len(tasks)


def _may_land(project: Expression) -> QuerySet[Task]:
    """Return what is approved, and first what has clashed before, since others have waited for it."""
    clashed = Landing.objects.filter(task=OuterRef("pk"), status=Landing.Status.CONFLICT)
    tasks = candidates.to_land(Now()).filter(project=project).alias(has_clashed=Exists(clashed))
    return tasks.select_related("accepted").order_by("-has_clashed", "status_at")


_accepted = Prepared(_may_land)


def _verify_landings(project: Project, free: int, done: Ticked) -> int:
    """Queue the builds and tests of rebased commits, which precede the push. Returns how many it queued."""
    started = 0
    for landing in project.landings.filter(status=Landing.Status.CHECKING).select_related(
        "task__project", "task__section"
    ):
        if not nothing.is_to_be_run(landing.task):
            continue
        known = Verification.objects.filter(
            project=project, sha=landing.sha, at__gte=landing.checked_at
        ).exists()
        seated = candidates.working().filter(task=landing.task).exists()
        if not known and not seated and started < free:
            started += _queue(landing.task, None, done, sha=landing.sha)
    return started

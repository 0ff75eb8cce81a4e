"""tick(): what next, for whom. The only place that starts work.

It reads rows and trusts no queue, so it may run twice at once, late, or again after a crash. It creates
`Run` and `Landing` rows; hosts carry them out. Nothing slow happens here.
"""

import logging
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Now
from django.utils import timezone

from agents import choosing, pulling, runs
from agents.models import Agent, Run
from disputes import alerts, checkpoints, followup
from disputes.models import Conflict
from tasks.events import record
from tasks.models import Landing, Project, StaleTask, Submission, Task, Verification
from tasks.policy import HOLD
from tasks.states import MEANINGS, STARTABLE, Status

log = logging.getLogger(__name__)

LOOKED_AT = 500  # candidates of one project in one tick


@dataclass
class Ticked:
    """What one tick did."""

    reaped: int = 0
    started: int = 0
    landings: int = 0
    claimed: Run | None = None  # by an agent that asked for work


def tick(project_pk: int | None = None) -> Ticked:
    """End what is lost, then start what may start: in all projects, or in one."""
    done = Ticked(reaped=reap())
    followup.sweep()
    busy = Count("runs", filter=Q(runs__status__in=Run.SEATED))
    projects = (
        Project.objects.filter(status=Project.Status.ACTIVE)
        .annotate(busy=busy)
        .order_by("busy", F("last_started_at").asc(nulls_first=True))
    )
    if project_pk is not None:
        projects = projects.filter(pk=project_pk)
    for project in projects:
        tick_project(project.pk, done)
        checkpoints.take_checkpoint(project)
    return done


def reap() -> int:
    """End runs whose host no longer renews their lease, and queued ones whose turn is over."""
    reaped = pulling.reap()
    lost = Run.objects.on_host().filter(lease_until__lt=Now(), is_pulled=False)
    reaped += sum(
        runs.end(run, Run.Outcome.LOST, reason=f"Host {run.host} did not renew its lease.")
        for run in lost.select_related("task", "project", "host")
    )
    overtaken = Run.objects.filter(status=Run.Status.QUEUED).exclude(task__version=F("task_version"))
    for run in overtaken.select_related("task", "project"):
        runs.end(run, Run.Outcome.STOPPED, reason="The task moved on before it started.")
    return reaped


@transaction.atomic
def tick_project(pk: int, done: Ticked, puller: Agent | None = None) -> None:
    """Create this project's runs, one tick at a time: its row is locked first.

    With a puller, an agent that asks for work itself, the one run that is created is for it (COL-3).
    """
    project = Project.objects.select_for_update().get(pk=pk)
    if project.trouble_until and project.trouble_until > timezone.now():
        return
    done.landings += _queue_landings(project)
    free = project.max_parallel - project.runs.filter(status__in=Run.SEATED).count()
    free -= _verify_landings(project, free, done)
    if free <= 0:
        return
    held = Conflict.objects.filter(dispute__task=OuterRef("pk"), status=Conflict.Status.OPEN, effect=HOLD)
    seated = Run.objects.filter(task=OuterRef("pk"), status__in=Run.SEATED)
    candidates = (
        Task.objects.filter(project=project)
        .startable()
        .filter(alerts.in_focus(project))
        .exclude(Exists(held))
        .exclude(Exists(seated))
        .select_related("project", "section")
    )
    last = Submission.objects.standing().filter(task=OuterRef("pk")).order_by("-round", "-attempt")
    idle = {
        role
        for role in (Run.Role.CODER, Run.Role.REVIEWER)
        if choosing.ranked(project, role, free_only=True, puller=puller)
    }
    startable = Q(last_state=Submission.State.KEPT)
    if Run.Role.REVIEWER in idle:
        startable |= Q(last_state=Submission.State.VERIFIED)
    wanted = Q(status=Status.REVIEW) & startable
    if Run.Role.CODER in idle:
        wanted |= ~Q(status=Status.REVIEW)
    for task in candidates.annotate(last_state=Subquery(last.values("state")[:1])).filter(wanted)[:LOOKED_AT]:
        if free <= 0 or done.claimed:
            break
        free -= _start(task, done, puller)


def _start(task: Task, done: Ticked, puller: Agent | None = None) -> int:
    """Queue the run that the task needs now. 1 if it did."""
    submission = task.last_submission() if task.status == Status.REVIEW else None
    if task.status == Status.REVIEW:
        if submission is None or submission.state not in {"kept", "verified"}:
            return 0  # its host is about to fetch it
        if submission.state == Submission.State.KEPT:
            return _queue(task, Run.Role.VERIFIER, None, done, sha=submission.sha)
    role = Run.Role.REVIEWER if submission else Run.Role.CODER
    agent = choosing.choose_agent(task, role, puller)
    if agent is None:
        return 0
    return _queue(task, role, agent, done, sha=submission.sha if submission else "")


def _queue(task: Task, role: str, agent: Agent | None, done: Ticked, *, sha: str) -> int:
    seat = f"{role}:{agent.name}" if agent and role == Run.Role.REVIEWER else str(role)
    is_pulled = agent is not None and agent.provider == Agent.Provider.PULL
    try:
        with transaction.atomic():
            if task.status == Status.PENDING:
                task.start()
            run = Run.objects.create(
                task=task, project=task.project, role=role, seat=seat, round=max(task.round, 1), agent=agent,
                agent_label=agent.name if agent else "", model=agent.model if agent else "", sha=sha,
                task_version=task.version, is_pulled=is_pulled,
            )  # fmt: skip
    except (IntegrityError, StaleTask):
        return 0  # another tick was faster
    Project.objects.filter(pk=task.project_id).update(last_started_at=timezone.now())
    record(task.project, "run_queued", task=task, data={"run": run.pk, "role": role}, note=run.agent_label)
    done.started += 1
    if is_pulled:
        done.claimed = run
    return 1


# --- Landings ---------------------------------------------------------------------------------------------


def _queue_landings(project: Project) -> int:
    """A Landing for each accepted submission that has none under way; rows, not memory."""
    live = Landing.objects.filter(submission=OuterRef("accepted"), status__in=Landing.LIVE)
    held = Conflict.objects.filter(dispute__task=OuterRef("pk"), status=Conflict.Status.OPEN, effect=HOLD)
    tasks = (
        Task.objects.filter(project=project)
        .to_land()
        .filter(Q(not_before__isnull=True) | Q(not_before__lte=timezone.now()))
        .exclude(Exists(live))
        .exclude(Exists(held))
        .select_related("accepted")
        .order_by("status_at")
    )
    for task in tasks:
        Landing.objects.create(
            project=project, task=task, submission=task.accepted, sha=task.accepted.sha,
            target=project.target_branch,
        )  # fmt: skip
    return len(tasks)


def _verify_landings(project: Project, free: int, done: Ticked) -> int:
    """A rebased commit is built and tested before it is pushed."""
    started = 0
    for landing in project.landings.filter(status=Landing.Status.CHECKING).select_related(
        "task__project", "task__section"
    ):
        known = Verification.objects.filter(
            project=project, sha=landing.sha, at__gte=landing.checked_at
        ).exists()
        seated = Run.objects.filter(task=landing.task, status__in=Run.SEATED).exists()
        if not known and not seated and started < free:
            started += _queue(landing.task, Run.Role.VERIFIER, None, done, sha=landing.sha)
    return started


def waiting_tasks(until: object) -> list[Task]:
    """Tasks that the loop would start by `until`, had it the seats and the agents."""
    held = Conflict.objects.filter(dispute__task=OuterRef("pk"), status=Conflict.Status.OPEN, effect=HOLD)
    tasks = (
        Task.objects.filter(project__status=Project.Status.ACTIVE, section__is_stopped=False)
        .filter(status__in=STARTABLE)
        .exclude(status=Status.PENDING, waits_for__gt=0)
        .filter(Q(not_before__isnull=True) | Q(not_before__lte=until))
        .filter(Q(project__trouble_until__isnull=True) | Q(project__trouble_until__lte=until))
        .exclude(Exists(held))
        .select_related("project")
    )
    own = Agent.objects.filter(is_active=True).exclude(provider=Agent.Provider.PULL)
    roles = set(own.values_list("role", flat=True))
    return [task for task in tasks if MEANINGS[Status(task.status)].pick in roles]

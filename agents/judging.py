"""Runs that give an opinion on a conflict: who is asked, when one starts, and how it ends (ARB-6 to ARB-8).

The run of a judge or mediator is not part of the task's own work: others may work on the task meanwhile,
nothing is taken from the run's clone, and its failures do not count as the task's. It lives as long as its
conflict is open.
"""

from dataclasses import dataclass, field

from django.db import IntegrityError, transaction
from django.db.models import Q

from agents.crew.choosing import Crew, by_domain
from agents.loop import run_ends
from agents.models import Agent, Run
from agents.money import caps
from disputes import opinions
from disputes.models import Conflict, Opinion
from disputes.opinions import Reach, Said
from disputes.protocol.rulings.arbitration import read_verdict
from tasks.database.clock import estimated_time
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Project
from tasks.models.event import record

RUNS_MAX = 3  # runs without an opinion, after which nobody is asked again
LOST_MAX = 5  # runs that lost their host or shim, after which the agent is to blame
UNCOUNTED = frozenset({Run.Outcome.STOPPED, Run.Outcome.LOST, Run.Outcome.PROVIDER})


# --- Who ----------------------------------------------------------------------------------------------------


@dataclass
class Sides:
    """The agents on the two sides of a conflict, by key and by name, and the vendors of their models."""

    agents: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    vendors: set[str] = field(default_factory=set)

    def hold(self, agent: Agent) -> bool:
        return agent.pk in self.agents or agent.name in self.names


def sides_of(conflict: Conflict, crew: Crew) -> Sides:
    """Return the agents that coded what is disputed or raised the point, including in later rounds."""
    of_both = Q(submission=conflict.submission_id) if conflict.submission_id else Q(pk__in=[])
    if conflict.finding_id:
        of_both |= Q(review__findings=conflict.finding_id) | Q(review__findings__first=conflict.finding_id)
    sides = Sides(names={conflict.coder_label, conflict.reviewer_label} - {""})
    rows = Run.objects.filter(of_both).select_related("agent", "submission", "review").distinct()
    for run in rows.defer(
        "submission__diff", "submission__specification", "submission__since_last_round", "review__text"
    ):
        made = run.submission or run.review
        sides.names.add(run.agent_label)
        sides.agents.add(run.agent.pk if run.agent else 0)
        sides.vendors |= {made.by_vendor if made else "", run.agent.made_by if run.agent else ""}
    sides.vendors |= {agent.made_by for agent in crew.agents if sides.hold(agent)}
    sides.vendors.discard("")
    return sides


def fitting(conflict: Conflict, role: str, crew: Crew, sides: Sides | None = None) -> list[Agent]:
    """Return the agents that may give this opinion, best first, by domain and priority (ARB-6).

    Neither of the two sides is among them. If agents of another vendor are configured, only those are
    returned, even while they are busy.
    """
    able = [agent for agent in crew.of(conflict.dispute.project_id, role) if crew.is_chosen(agent)]
    sides = sides or (sides_of(conflict, crew) if able else Sides())
    able = [agent for agent in able if not sides.hold(agent)]
    others = [agent for agent in able if agent.made_by and agent.made_by not in sides.vendors]
    return by_domain(others or able, conflict.task)[0] if able else []


def judge_for(conflict: Conflict, role: str, crew: Crew) -> Agent | None:
    """Return the agent that takes the run now, or None if no fitting agent is free."""
    return next((agent for agent in fitting(conflict, role, crew) if crew.is_free(agent)), None)


def reach_of(conflict: Conflict) -> dict[str, Reach]:
    """Return for each role whether somebody can be asked and, if not, how people can change that (ARB-5)."""
    crew, project = Crew(), conflict.dispute.project_id
    sides = sides_of(conflict, crew) if any(crew.of(project, role) for role in Run.OPINION_ROLES) else Sides()
    return {str(role): _reach(conflict, role, crew, sides) for role in Run.OPINION_ROLES}


def _reach(conflict: Conflict, role: str, crew: Crew, sides: Sides) -> Reach:
    if able := fitting(conflict, role, crew, sides):
        is_free = any(crew.is_free(agent) for agent in able)
        return Reach(True, waits="" if is_free else f"{crew.trouble(able)}.".capitalize())
    if crew.of(conflict.dispute.project_id, role):
        return Reach(False, f"The {role} of this project is one of the two sides; a superuser adds another.")
    hint = f"A superuser adds one, in the admin under Agents or with manage.py add_agent NAME --role {role}."
    return Reach(False, hint, is_assigned=False)


# --- When ---------------------------------------------------------------------------------------------------


def withdraw() -> int:
    """End the opinions, and their runs, that were asked for on conflicts that have been settled.

    Returns how many opinions were given up.
    """
    settled = Opinion.objects.asked().exclude(conflict__status=Conflict.Status.OPEN)
    given_up = 0
    for opinion in settled.select_related("conflict__dispute__project", "conflict__dispute__task"):
        live = Run.objects.live().filter(opinion=opinion).exclude(status=Run.Status.CLOSING)
        for run in live.filter(status=Run.Status.QUEUED).select_related("task", "project"):
            run_ends.end(run, Run.Outcome.STOPPED, reason=f"{opinion.conflict.ref} was settled.")
        if live.exists():
            live.update(stop_requested=True)  # its host ends it; what it hands in before that is late
        else:
            given_up += opinions.fail(opinion, f"{opinion.conflict.ref} was settled before it was given.")
    return given_up


def start(project: Project, free: int) -> int:
    """Queue runs for the project's asked opinions while seats are free, and return how many were queued.

    The status of the task does not matter: a task in dispute is held, and that is when opinions are asked
    for.
    """
    asked = Opinion.objects.wanted().filter(conflict__dispute__project=project).select_related(
        "conflict__dispute__task__project", "conflict__dispute__project", "conflict__submission",
        "conflict__finding",
    )  # fmt: skip
    started, crew = 0, Crew()
    for opinion in asked.order_by("asked_at", "pk"):
        if started >= max(free, 0):
            break
        started += _start(opinion, crew)
    return started


def _start(opinion: Opinion, crew: Crew) -> int:
    earlier = list(opinion.runs.order_by("-pk"))
    if any(run.status != Run.Status.ENDED for run in earlier):
        return 0
    if why := _given_up(earlier):
        opinions.fail(opinion, why)
        return 0
    if _rests(earlier):
        return 0
    conflict = opinion.conflict
    if spent := caps.by_task(conflict.task):
        opinions.fail(opinion, spent.line)
        return 0
    agent = judge_for(conflict, opinion.kind, crew)
    if agent is None:
        return 0
    task = conflict.task
    round_ = conflict.submission.round if conflict.submission else task.round
    try:
        with transaction.atomic():
            run = Run.objects.create(
                task=task, project=task.project, role=opinion.kind, seat=f"{opinion.kind}:{conflict.pk}",
                round=max(round_, 1), stage=conflict.stage,
                agent=agent, agent_label=agent.name, model=agent.model, opinion=opinion,
                sha=_commit(conflict), task_version=task.version,
            )  # fmt: skip
    except IntegrityError:
        return 0  # another tick was faster
    crew.busy[agent.pk] += 1
    record(task.project, "run_queued", task=task, data={"run": run.pk, "role": run.role}, note=agent.name)
    return 1


def _given_up(earlier: list[Run]) -> str:
    """Return why nobody is asked again after these runs, newest first; empty if somebody may be."""
    if earlier and earlier[0].stop_requested:
        return "Its run was stopped."
    failed = [run for run in earlier if run.outcome not in UNCOUNTED]
    lost = [run for run in earlier if run.outcome == Run.Outcome.LOST]
    for runs_without, most in ((failed, RUNS_MAX), (lost, LOST_MAX)):
        if len(runs_without) >= most:
            last = f"{runs_without[0].get_outcome_display()}. {runs_without[0].reason}".strip()
            return f"{most} runs ended without an opinion. The last one: {last}"
    return ""


def _rests(earlier: list[Run]) -> bool:
    """Whether the next run has to wait because the last one failed; the wait grows with each failure."""
    troubled = [run for run in earlier if run.outcome not in {Run.Outcome.STOPPED, Run.Outcome.LOST}]
    if not troubled or troubled[0].ended_at is None:
        return False
    return troubled[0].ended_at + run_ends.backoff(len(troubled)) > estimated_time()


def _commit(conflict: Conflict) -> str:
    """Return the commit to clone: the disputed one, or else the last one handed in; empty without any."""
    if conflict.submission and conflict.submission.sha:
        return conflict.submission.sha
    kept = conflict.task.submissions.standing().exclude(sha="").fetched()
    last = kept.newest_first().first()
    return last.sha if last else ""


def is_overtaken(run: Run) -> bool:
    """Whether the run's purpose is gone: the task moved on or, for an opinion, its conflict was settled."""
    if run.role in Run.OPINION_ROLES:
        return not Conflict.objects.open().filter(opinions=run.opinion_id).exists()
    return run.task.version != run.task_version


def has_work() -> bool:
    """Apply the policies; return whether one took effect or an opinion that was asked for could begin."""
    projects = list(Project.objects.filter(status=Project.Status.ACTIVE))
    if sum(opinions.apply_policy(project) for project in projects):
        return True
    asked = Opinion.objects.wanted().filter(conflict__dispute__project__in=projects)
    crew = Crew()
    return any(
        agent.account not in crew.pauses
        for opinion in asked.select_related("conflict__dispute__task", "conflict__dispute__project")
        for agent in fitting(opinion.conflict, opinion.kind, crew)
    )


# --- What it said -------------------------------------------------------------------------------------------


def said_by(run: Run, verdict: str, *, model: str = "", **words: str) -> Said:
    """Return the opinion that the run hands in, labelled with its agent, model and vendor."""
    vendor = run.agent.made_by if run.agent else ""
    return Said(verdict, agent=run.agent_label, model=model or run.model, vendor=vendor, **words)


def read_final_text(run: Run, text: str) -> bool:
    """Take a judge's last words as its opinion if it handed nothing in (ARB-6).

    Returns False if there is nothing to take. Words that are not plainly one verdict count as ESCALATE: a
    human decides, with the words in view.
    """
    if run.role != Run.Role.JUDGE or run.opinion is None or run.refusals or not text.strip():
        return False
    words = text.strip()[: opinions.REASONS_MAX]
    said = said_by(run, read_verdict(text).value, reasons=words, text=words)
    judge = Actor("run", run.agent_label, run_number=run.pk, model=run.model)
    try:
        opinions.give(run.opinion, said, actor=judge)
    except Refused:
        return False
    return True

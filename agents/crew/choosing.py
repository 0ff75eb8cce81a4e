"""Chooses who takes the next run of a task. Nothing else does: the tick, claims and pages ask here.

These count, in this order: the role, the stage's type of agent or the columns that an agent watches, the
project, the step of the ladder (LAD-1), the domain, the priority, a free slot, and an account without
trouble (LAD-4). A reviewer never judges its own work nor, if the policy says so, that of its vendor
(ARB-9).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from django.conf import settings
from django.db.models import Count, F, QuerySet
from django.utils.functional import cached_property

from agents.crew import attempts, pauses, tasks_in_review
from agents.models import Agent, ProviderPause, Run
from tasks.configuration.ladder import Step, step_for
from tasks.configuration.policy import ProjectSettings
from tasks.configuration.stages import Stage, stage_named
from tasks.database.clock import database_time
from tasks.database.prepared import Prepared
from tasks.models import Task
from tasks.spans import clock
from tasks.states import Status
from tasks.text.counting import some_of

ALL, IN_TURN = "all", "turn"
NAMED = 3  # agents that a sentence names


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen agent, and what its run will be."""

    agent: Agent
    role: str
    model: str
    step: Step | None = None
    note: str = ""  # why this agent, if that is not obvious

    @property
    def seat(self) -> str:
        """The seat of the run. Reviewers have one each, so that several can work on one task."""
        return f"{self.role}:{self.agent.name}" if self.role == Run.Role.REVIEWER else str(self.role)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a task needs next: runs of these agents, or why there are none."""

    choices: tuple[Choice, ...] = ()
    why: str = ""
    is_wrong: bool = False  # no agent could ever take it
    is_paused: bool = False  # all who could are in trouble with their accounts
    is_elsewhere: bool = False  # only agents that claim their work themselves could take it
    escalates: bool = False  # its ladder is at its end
    is_decided: bool = False  # every review that is needed is in
    missing: tuple[str, ...] = ()  # the reviewers whose reviews are still needed
    without: tuple[str, ...] = ()  # the reviewers that are not waited for


# --- Who there is -----------------------------------------------------------------------------------------


def _in_their_order() -> QuerySet[Agent]:
    bound = Agent.objects.filter(is_active=True).annotate(bound_to=F("projects"))
    return bound.order_by("-priority", "pk")


def _by_agent() -> QuerySet[Run]:
    seated = Run.objects.filter(status__in=Run.SEATED).order_by().values_list("agent")
    return seated.annotate(n=Count("pk"))


_active, _seated = Prepared(_in_their_order), Prepared(_by_agent)


class Crew:
    """The active agents, which of them are busy and which accounts are paused: three queries in all."""

    def __init__(self, puller: Agent | None = None, now: datetime | None = None) -> None:
        """Make no query yet. A `puller` is an agent that asks for work itself; only it is chosen (COL-3)."""
        self.puller, self.by = puller, now

    @cached_property
    def now(self) -> datetime:
        """The time for which the crew is asked: by the database's clock, unless a time was given."""
        return self.by or database_time()

    @cached_property
    def agents(self) -> list[Agent]:
        """The active agents, best first, each with the keys of its projects in `only_in`."""
        found: dict[int, Any] = {}
        for row in _active.found():  # one row for each project of an agent
            agent: Any = found.setdefault(row.pk, row)
            agent.only_in = getattr(agent, "only_in", set()) | {row.bound_to} - {None}
        return list(found.values())

    @cached_property
    def busy(self) -> Counter[int | None]:
        """The number of seats that each agent holds."""
        return Counter(dict(_seated.rows()))

    @cached_property
    def pauses(self) -> dict[str, ProviderPause]:
        """The pauses of accounts in trouble, by account."""
        return pauses.paused(self.by)

    def look_again(self) -> None:
        """Forget which agents are busy, since others may have begun something; the agents are kept."""
        self.__dict__.pop("busy", None)

    def take(self, choice: Choice) -> None:
        """Count one more seat as held by the chosen agent."""
        self.busy[choice.agent.pk] += 1

    def of(self, project: int, role: str) -> list[Agent]:
        """Return the agents of that role that may work in the project, including pulled ones, best first."""
        rows = [*self._by_place.get((role, None), ()), *self._by_place.get((role, project), ())]
        return [agent for _, agent in sorted(rows, key=itemgetter(0))]

    @cached_property
    def _by_place(self) -> dict[tuple[str, int | None], list[tuple[int, Agent]]]:
        """The agents of a role and a project, or of a role and all projects (None), each with its rank."""
        found: dict[tuple[str, int | None], list[tuple[int, Agent]]] = defaultdict(list)
        for rank, agent in enumerate(self.agents):
            for project in agent.only_in or {None}:  # type: ignore[attr-defined]
                found[agent.role, project].append((rank, agent))
        return found

    def at(self, project: int, role: str, stage: Stage) -> list[Agent]:
        """Return those of them that take work of that stage or column."""
        return [agent for agent in self.of(project, role) if watches(agent, stage)]

    def is_chosen(self, agent: Agent) -> bool:
        """Whether the agent may be chosen at all: only the puller for a claim, else all but pulled agents."""
        return agent.pk == self.puller.pk if self.puller else agent.provider != Agent.Provider.PULL

    def is_free(self, agent: Agent) -> bool:
        return self.busy[agent.pk] < agent.slots and agent.account not in self.pauses

    def is_idle(self, project: int, role: str, stage: Stage | None = None) -> bool:
        """Whether an agent could begin at once, at this stage or at any."""
        able = self.of(project, role) if stage is None else self.at(project, role, stage)
        return any(self.is_chosen(agent) and self.is_free(agent) for agent in able)

    def is_away(self, agent: Agent) -> bool:
        """Whether the agent's account is in trouble for so long that the agent is not waited for."""
        pause, patience = self.pauses.get(agent.account), timedelta(seconds=settings.DURATIONS["away"])
        return pause is not None and (self.now - pause.since > patience or pause.until - self.now > patience)

    def trouble(self, agents: Iterable[Agent]) -> str:
        """Say in words why none of these agents can begin."""
        rows = list(agents)
        paused = [agent for agent in rows if agent.account in self.pauses]
        if len(paused) == len(rows):
            first = min((self.pauses[agent.account] for agent in paused), key=lambda pause: pause.until)
            reason = " ".join(first.reason.split()).rstrip(".")
            return f"{_names(paused)} paused until {clock(first.until, self.now)}: {reason}"
        held = [agent for agent in rows if agent.account not in self.pauses]
        told = [f"{agent.name} {self.busy[agent.pk]} of {agent.slots}" for agent in held[:NAMED]]
        return f"every {rows[0].role} agent is busy: {', '.join(told)}"


def _names(agents: Iterable[Agent]) -> str:
    names = [agent.name for agent in agents]
    return f"{some_of(names, NAMED)} {'is' if len(names) == 1 else 'are'}"


def watches(agent: Agent, stage: Stage) -> bool:
    """Whether the agent takes work of that stage or column.

    Its own columns decide, or else its type. A coder without either works at every stage but is no
    specialist; a reviewer without columns reviews work from everywhere.
    """
    if agent.watches:
        return stage.name in agent.watches
    if agent.role == Agent.Role.REVIEWER:
        return True
    if agent.kind:
        return not stage.agent_type or agent.kind == stage.agent_type
    return not stage.is_escalation


def stage_of(task: Task, config: ProjectSettings) -> Stage:
    """Return the stage or column that the task is in; one missing from the settings takes any agent."""
    return stage_named(config, task.stage) or Stage(task.stage)


# --- Whose turn it is -------------------------------------------------------------------------------------


class Roster:
    """Says whose turn it is on tasks (ARB-8), in a constant number of queries for any number of tasks."""

    def __init__(self, crew: Crew, tasks: Iterable[Task], seats: tasks_in_review.Seats | None = None) -> None:
        """Take tasks whose `project` is loaded, and the reviewers' seats if the caller has read them."""
        self.crew, self.tasks, self.seats = crew, list(tasks), seats
        self.configs: dict[int, ProjectSettings] = {}

    def config(self, task: Task) -> ProjectSettings:
        """Return the settings of the task's project, read once for all its tasks."""
        if task.project_id not in self.configs:
            self.configs[task.project_id] = task.project.config
        return self.configs[task.project_id]

    @cached_property
    def failures(self) -> dict[int, int]:
        """The number of failures at its stage of each task that has a ladder there."""
        return attempts.failures_of(
            [task for task in self.tasks if attempts.ladder_of(task, self.config(task))]
        )

    @cached_property
    def reviews(self) -> dict[int, tasks_in_review.UnderReview]:
        """What is under review in each task in review, who made it, and whose reviews are in."""
        in_review = [task for task in self.tasks if task.status == Status.REVIEW]
        return tasks_in_review.facts_of(in_review, self.seats)

    def turn_of(self, task: Task) -> Turn:
        """Return whose turn it is. A task in review must have a verified submission."""
        return self._reviewers(task) if task.status == Status.REVIEW else self._coder(task)

    # --- Coders ---

    def step_of(self, task: Task) -> Step | None:
        """Return the step of the ladder that the task is on, or None if its stage has no ladder."""
        ladder = attempts.ladder_of(task, self.config(task))
        return step_for(ladder, self.failures.get(task.pk, 0)) if ladder else None

    def _coder(self, task: Task) -> Turn:
        crew, stage, step = self.crew, stage_of(task, self.config(task)), self.step_of(task)
        if step is not None and step.escalates:
            return Turn(
                escalates=True, why="the ladder of models has come to its end; it goes to a specialist"
            )
        able = crew.at(task.project_id, Run.Role.CODER, stage)
        if not able:
            where = f"nobody watches {stage.name}" if stage.is_escalation or crew.of(
                task.project_id, Run.Role.CODER
            ) else f"no coder agent works in {task.project.name}"  # fmt: skip
            return Turn(why=where, is_wrong=True)
        named = [agent for agent in able if step and step.word in {agent.model, agent.tier}]
        pool, note = by_domain(named or able, task)
        if step and not named:  # the first one is told which model to take; its provider knows such names
            pool = [agent for agent in pool if agent.provider == pool[0].provider]
        chosen = [
            Choice(agent, Run.Role.CODER, step.word if step and not named else agent.model, step, note)
            for agent in pool
        ]
        return self._first(chosen, able, task)

    def _first(self, wanted: list[Choice], able: list[Agent], task: Task) -> Turn:
        """Choose the first that can begin or, if all are paused, another agent of the same tier (LAD-4)."""
        crew = self.crew
        if crew.puller and wanted and not fits(crew.puller, task):
            return Turn(why=f"no domain of {crew.puller.name} fits")
        mine = [choice for choice in wanted if crew.is_chosen(choice.agent)]
        if not mine:
            return Turn(why=f"{_names(choice.agent for choice in wanted)} to claim it", is_elsewhere=True)
        if found := next((choice for choice in mine if crew.is_free(choice.agent)), None):
            return Turn((found,))
        is_paused = all(choice.agent.account in crew.pauses for choice in mine)
        if is_paused and (instead := self._of_same_tier(mine, able)):
            return Turn((instead,))
        return Turn(why=crew.trouble(choice.agent for choice in mine), is_paused=is_paused)

    def _of_same_tier(self, paused: list[Choice], able: list[Agent]) -> Choice | None:
        """Return a free agent to stand in for the paused ones, or None if nobody of their tier is free."""
        tiers = {choice.agent.tier for choice in paused if choice.agent.tier}
        for agent in able:
            if agent.tier in tiers and self.crew.is_chosen(agent) and self.crew.is_free(agent):
                away = f"{_names(choice.agent for choice in paused)} paused; {agent.name} of the same tier."
                return replace(paused[0], agent=agent, model=agent.model, note=away)
        return None

    # --- Reviewers ---

    def _reviewers(self, task: Task) -> Turn:
        crew, config, facts = self.crew, self.config(task), self.reviews[task.pk]
        able = crew.at(task.project_id, Run.Role.REVIEWER, stage_of(task, config))
        if not able and facts.is_in:
            return Turn(is_decided=True)
        others, why = self._impartial(able, task, facts)
        if why:
            return Turn(why=why, is_wrong=True)
        pool, note = by_domain(others, task, and_any=config.reviewers == ALL)
        chosen = [Choice(agent, Run.Role.REVIEWER, agent.model, None, note) for agent in pool]
        if config.reviewers == ALL:
            return self._all(chosen, facts)
        if facts.is_in:
            return Turn(is_decided=True)
        if facts.seats:
            return Turn(why="a reviewer is at it")
        if config.reviewers == IN_TURN:
            begin = max(task.round - 1, 0) % len(chosen)
            return self._in_turn(chosen[begin:] + chosen[:begin], others, task)
        return self._first(chosen, others, task)

    def _impartial(
        self, able: list[Agent], task: Task, facts: tasks_in_review.UnderReview
    ) -> tuple[list[Agent], str]:
        """Return the agents that may review this work or, if none may, an empty list and the reason."""
        if not able:
            return [], f"no reviewer agent works in {task.project.name}"
        others = [agent for agent in able if not facts.is_by(agent)]
        if not others:
            return [], f"only {able[0].name} reviews here, and the work is its own"
        config = self.config(task)
        if config.other_vendor_reviews and facts.vendor:
            others = [agent for agent in others if agent.made_by != facts.vendor]
            if not others:
                return [], f"every reviewer's model is made by {facts.vendor}, as the coder's is"
        if facts.is_disputed:  # no new reviewer joins in (ARB-8)
            others = [agent for agent in others if agent.name in facts.earlier] or others
        return others, ""

    def _in_turn(self, chosen: list[Choice], others: list[Agent], task: Task) -> Turn:
        """Choose the agent whose turn it is, even if it is busy, or the next one if its account is paused."""
        here = [choice for choice in chosen if choice.agent.account not in self.crew.pauses]
        return self._first(here[:1] or chosen, others, task)

    def _all(self, chosen: list[Choice], facts: tasks_in_review.UnderReview) -> Turn:
        """Have each of them review; those that are away for long are not waited for."""
        crew = self.crew
        needed = [choice for choice in chosen if not crew.is_away(choice.agent)]
        away = tuple(choice.agent.name for choice in chosen if choice not in needed)
        missing = [choice for choice in needed if choice.agent.name not in facts.names]
        if not missing and facts.is_in:
            return Turn(is_decided=True, without=tuple(name for name in away if name not in facts.names))
        missing = missing or chosen
        names = tuple(choice.agent.name for choice in missing)
        idle = [
            choice
            for choice in missing
            if crew.is_chosen(choice.agent) and choice.seat not in facts.seats and crew.is_free(choice.agent)
        ]
        if idle:
            return Turn(tuple(idle), missing=names, without=away)
        waits = f"waits for {', '.join(names)}"
        if not any(choice.seat in facts.seats for choice in missing):
            waits += f"; {crew.trouble(choice.agent for choice in missing)}"
        return Turn(why=waits, missing=names, without=away)


def fits(agent: Agent, task: Task) -> bool:
    """Whether a domain of the agent is a tag of the task, or the agent has no domains."""
    return not agent.domains or bool(set(agent.domains) & set(task.tags))


def by_domain(agents: list[Agent], task: Task, *, and_any: bool = False) -> tuple[list[Agent], str]:
    """Return the agents with a domain among the task's tags, else those without domains, else all (ARB-9).

    The second value is a note for the run if none fits. With `and_any`, agents without a domain are added
    to those that fit.
    """
    fitting = [agent for agent in agents if set(agent.domains) & set(task.tags)]
    plain = [agent for agent in agents if not agent.domains]
    if fitting:
        return [agent for agent in agents if agent in fitting or (and_any and agent in plain)], ""
    if len(plain) == len(agents):
        return agents, ""
    tags = f"tags {', '.join(task.tags)}" if task.tags else "task, which has no tag"
    note = f"No domain of a {agents[0].role} fits the {tags}."[:250]
    return plain or agents, note if not plain or task.tags else ""

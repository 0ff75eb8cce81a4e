"""Whether there is an agent for every kind of work, for system checks and the dashboard (COL-2, ARB-9)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from agents.crew.choosing import Crew
from agents.models import Agent, Run
from tasks.configuration.ladder import read
from tasks.configuration.policy import ProjectSettings
from tasks.configuration.stages import UNKNOWN, Stage, escalations_of, stages_of
from tasks.models import Project, Task
from tasks.states import UNFINISHED


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A column of a project that no active coder takes work from."""

    project: Project
    stage: Stage
    has_coder: bool = True  # some coder works at other columns of the project

    @property
    def column(self) -> str:
        return self.stage.name

    @property
    def line(self) -> str:
        if not self.has_coder:
            return f"No coder works in {self.project.name}."
        return f"Nobody watches the column {self.column} of {self.project.name}."

    @property
    def hint(self) -> str:
        """What people can do about it."""
        if not self.has_coder:
            return "Add one, or add the project to those of a coder that is there."
        return (
            f'Add a coder {fitting_types(self.stage)}, or have one watch it: watches ["{self.stage.name}"].'
        )


def fitting_types(stage: Stage) -> str:
    """Say which coders take work of the stage by their type, in line with `choosing.watches`."""
    if stage.is_escalation:
        return f"of the type {stage.agent_type}" if stage.agent_type else "of any type"
    return f"without a type or of the type {stage.agent_type}" if stage.agent_type else "of any type or none"


def escalated() -> QuerySet[Task]:
    """Return the tasks that are in a column of specialists."""
    return Task.objects.filter(status__in=UNFINISHED).exclude(escalation="")


def unwatched(projects: Iterable[Project], crew: Crew, *, is_escalated: bool = True) -> list[Unwatched]:
    """Return the columns that need an agent and have none: two queries for any number of projects.

    Every stage needs one. A column of specialists does if the project names it, a ladder sends tasks to it,
    or a task is in it. `is_escalated` says whether any task may be in one.
    """
    rows = list(projects)
    coders: list[Any] = [agent for agent in crew.agents if agent.role == Run.Role.CODER]
    if not coders:
        return []  # nothing is set up yet, and the pages say so
    standing = escalated().filter(project__in=rows) if is_escalated else Task.objects.none()
    waiting = set(standing.order_by().values_list("project", "stage").distinct())
    found = []
    for project in rows:
        entered = {column for key, column in waiting if key == project.pk}
        needed = _needed(project.config, entered)
        alone = [stage for stage in needed if not crew.at(project.pk, Run.Role.CODER, stage)]
        if any(not agent.only_in or project.pk in agent.only_in for agent in coders):
            found += [Unwatched(project, stage) for stage in alone]
        else:
            found += [Unwatched(project, stage, has_coder=False) for stage in alone[:1]]
    return found


def _needed(config: ProjectSettings, entered: set[str]) -> list[Stage]:
    """Return the stages, and those columns of specialists that a task may come to."""
    named = {stage.name for stage in config.stages}
    climbs = any(read(steps)[-1].escalates for steps in config.model_ladder.values())
    specialists = [
        column
        for column in escalations_of(config)
        if column.name in named or (climbs and column.reason == UNKNOWN) or column.name in entered
    ]
    return [*stages_of(config), *specialists]


def without_domain(crew: Crew) -> list[Agent]:
    """Return the coders without domains beside others of their sort that have some: no catch-alls (ARB-9)."""
    coders = [agent for agent in crew.agents if agent.role == Run.Role.CODER]
    return [
        agent
        for agent in coders
        if not agent.domains and any(other.domains and _side_by_side(agent, other) for other in coders)
    ]


def _side_by_side(one: Agent, other: Agent) -> bool:
    """Whether both take the same work in some project."""
    mine, others = one.only_in, other.only_in  # type: ignore[attr-defined]
    shares = not mine or not others or bool(mine & others)
    return shares and (one.kind, sorted(one.watches)) == (other.kind, sorted(other.watches))

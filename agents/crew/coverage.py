"""Whether somebody is there for every kind of work; system checks and the dashboard tell (COL-2, ARB-9)."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents.crew.choosing import Crew
from agents.models import Agent, Run
from tasks.configuration.ladder import read
from tasks.configuration.schema import SettingsError
from tasks.configuration.stages import UNKNOWN, Stage, escalations_of, stages_of
from tasks.models import Project, Task
from tasks.states import UNFINISHED


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A column of a project that no active coder takes work from."""

    project: Project
    stage: Stage

    @property
    def column(self) -> str:
        return self.stage.name

    @property
    def line(self) -> str:
        return f"Nobody watches the column {self.column} of {self.project.name}."

    @property
    def hint(self) -> str:
        """What to do about it."""
        return (
            f'Add a coder {fitting_types(self.stage)}, or have one watch it: watches ["{self.stage.name}"].'
        )


def fitting_types(stage: Stage) -> str:
    """The coders that take work of the stage by their type, as `choosing.watches` says it."""
    if stage.is_escalation:
        return f"of the type {stage.agent_type}" if stage.agent_type else "of any type"
    return f"without a type or of the type {stage.agent_type}" if stage.agent_type else "of any type or none"


def unwatched(projects: Iterable[Project], crew: Crew | None = None) -> list[Unwatched]:
    """The columns that need somebody and have nobody: two queries, however many projects there are.

    Every stage needs somebody; a column of specialists does where the project names it, where a ladder sends
    tasks to it, or where a task stands in it.
    """
    rows, crew = list(projects), crew or Crew()
    if not any(agent.role == Run.Role.CODER for agent in crew.agents):
        return []  # nothing is set up yet, and the pages say so
    standing = Task.objects.filter(project__in=rows, status__in=UNFINISHED).exclude(escalation="")
    waiting = set(standing.order_by().values_list("project", "stage").distinct())
    found = []
    for project in rows:
        try:
            config = project.config
        except SettingsError:
            continue  # another page tells
        named = {stage.name for stage in config.stages}
        climbs = any(read(steps)[-1].escalates for steps in config.model_ladder.values())
        needed = [*stages_of(config)]
        needed += [
            column
            for column in escalations_of(config)
            if column.name in named
            or (climbs and column.reason == UNKNOWN)
            or (project.pk, column.name) in waiting
        ]
        found += [
            Unwatched(project, stage) for stage in needed if not crew.at(project.pk, Run.Role.CODER, stage)
        ]
    return found


def without_domain(crew: Crew | None = None) -> list[Agent]:
    """Coders without a domain beside others of their sort that have one: they are no catch-all (ARB-9)."""
    coders = [agent for agent in (crew or Crew()).agents if agent.role == Run.Role.CODER]
    return [
        agent
        for agent in coders
        if not agent.domains and any(other.domains and _side_by_side(agent, other) for other in coders)
    ]


def _side_by_side(one: Agent, other: Agent) -> bool:
    """Whether both work at the same columns of some project."""
    mine, others = one.only_in, other.only_in  # type: ignore[attr-defined]
    shares = not mine or not others or bool(mine & others)
    return shares and (one.kind, sorted(one.watches)) == (other.kind, sorted(other.watches))

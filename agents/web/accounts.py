"""Accounts in trouble, as people see them: until when, why, and which agents they hold up (LAD-4)."""

from dataclasses import dataclass

from django.http import HttpRequest

from agents.crew.choosing import Crew
from agents.models import Agent, ProviderPause
from tasks.access import MAINTAIN, is_superuser, my_roles
from tasks.database.clock import estimated_time
from tasks.spans import clock
from tasks.text.counting import some_of

NAMED = 4  # agents named in a line


@dataclass(frozen=True, slots=True)
class PausedAccount:
    """An account whose agents take no work for a while."""

    pause: ProviderPause
    agents: list[str]
    may_end: bool

    @property
    def until(self) -> str:
        """The time when the pause ends, with the day if that is not today."""
        return clock(self.pause.until, estimated_time())

    @property
    def who(self) -> str:
        """The agents that wait: the first few names, and how many more there are."""
        return some_of(self.agents, NAMED)


def paused_accounts(request: HttpRequest, crew: Crew | None = None) -> list[PausedAccount]:
    """Return the pauses that hold up work in the person's projects, the first to end first."""
    crew = crew or Crew()
    rows = sorted(crew.pauses.values(), key=lambda row: (row.until, row.name))
    if not rows:
        return []
    roles = my_roles(request)
    agents: dict[str, list[Agent]] = {}
    for agent in sorted(crew.agents, key=lambda agent: agent.name):
        agents.setdefault(agent.account, []).append(agent)
    shown = []
    for row in rows:
        held = agents.get(row.name, [])
        mine = {role for agent in held for role in _roles_at(agent, roles)}
        if mine or is_superuser(request):
            may_end = bool(mine & MAINTAIN) or is_superuser(request)
            shown.append(PausedAccount(row, [agent.name for agent in held], may_end))
    return shown


def _roles_at(agent: Agent, roles: dict[int, str]) -> set[str]:
    """Return the person's roles where the agent works; an agent without projects works everywhere."""
    projects: set[int] = agent.only_in  # type: ignore[attr-defined]
    return {roles[pk] for pk in projects if pk in roles} if projects else set(roles.values())

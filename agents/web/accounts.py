"""Accounts in trouble, as people see them: until when, why, and whom it holds up (LAD-4)."""

from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from agents.crew import pauses
from agents.models import Agent, ProviderPause
from tasks.access import MAINTAIN, roles_of
from tasks.spans import clock

NAMED = 4  # agents in a line


@dataclass(frozen=True, slots=True)
class PausedAccount:
    """An account whose agents take nothing for a while."""

    pause: ProviderPause
    agents: list[str]
    may_end: bool

    @property
    def until(self) -> str:
        """The time of day, with the day where that is not today."""
        return clock(self.pause.until, timezone.now())

    @property
    def who(self) -> str:
        """The agents that wait: three names and how many more."""
        shown, more = self.agents[:NAMED], len(self.agents) - NAMED
        return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def paused_accounts(user: Any) -> list[PausedAccount]:
    """The pauses that hold up work in the person's projects, the first to end first."""
    rows = sorted(pauses.paused().values(), key=lambda row: (row.until, row.name))
    if not rows:
        return []
    roles = roles_of(user)
    agents: dict[str, list[Agent]] = {}
    for agent in Agent.objects.filter(is_active=True).prefetch_related("projects").order_by("name"):
        agents.setdefault(agent.account, []).append(agent)
    shown = []
    for row in rows:
        held = agents.get(row.name, [])
        mine = {role for agent in held for role in _roles_at(agent, roles)}
        if mine or user.is_superuser:
            may_end = bool(mine & MAINTAIN) or user.is_superuser
            shown.append(PausedAccount(row, [agent.name for agent in held], may_end))
    return shown


def _roles_at(agent: Agent, roles: dict[int, str]) -> set[str]:
    """The person's roles where the agent works; one without projects works everywhere."""
    projects = [project.pk for project in agent.projects.all()]
    return {roles[pk] for pk in projects if pk in roles} if projects else set(roles.values())

"""Accounts in trouble: until when, why, which agents they hold up, and ending a pause by hand (LAD-4)."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents.crew import pauses
from agents.crew.choosing import Crew
from agents.loop.bell import ring
from agents.models import Agent, ProviderPause
from disputes.web.view_helpers import next_url, refuses, staff_only
from tasks.access import MAINTAIN, is_superuser, my_roles
from tasks.errors import Refused
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
        return clock(self.pause.until, timezone.now())

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


@staff_only
@require_POST
@refuses
def try_again(request: HttpRequest, pk: int) -> HttpResponse:
    """End the pause of an account; the next run of its agents shows whether the trouble is over."""
    paused = next((each for each in paused_accounts(request) if each.pause.pk == pk), None)
    if paused is None:
        raise Http404("No such account is paused.")
    name = paused.pause.name
    if not paused.may_end:
        raise Refused("no_right", f"You may not end the pause of {name}.", "Ask a maintainer.", status=403)
    pauses.end(name)
    ring(0)
    messages.success(request, f"{name} is tried again by the next run of its agents.")
    return redirect(next_url(request, reverse("admin:index")))

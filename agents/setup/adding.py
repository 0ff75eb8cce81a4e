"""Adds an agent from the command line."""

import os
from collections.abc import Iterable

from django.core.management.base import CommandError
from django.db import transaction

from agents.models import Agent
from agents.providers.base import ProviderError, find_program
from agents.providers.registry import CLIS, provider_for
from agents.verification import commands
from tasks.management.program_command import as_command_error, project_named

ELSEWHERE = "Where another host starts it, say --elsewhere."


def missing_program(agent: Agent) -> str:
    """Return what this host lacks to start the agent and where it looked; empty if it lacks nothing."""
    name, path = provider_for(agent).program(agent.settings), commands.system_path()
    if not name:
        return ""
    try:
        find_program(name, path)
    except ProviderError as error:
        if not os.path.dirname(name):
            return f"{error} It was looked for in {path.replace(os.pathsep, ', ')}."
        place = os.path.abspath(name)
        if os.path.isfile(place):
            return f"{error} {place} is not executable."
        return f"{error} There is no file {place}."
    return ""


def agent_from(
    name: str, role: str, argv: list[str], *, model: str = "", slots: int = 1, **said: object
) -> Agent:
    """Return an unsaved agent that runs this command.

    The bare name of a known CLI becomes that provider. `said` holds further settings; empty ones are left
    out.
    """
    if "{" not in argv[0] and os.path.dirname(argv[0]) and os.path.exists(argv[0]):
        argv = [os.path.abspath(argv[0]), *argv[1:]]  # the host may be started in another folder
    is_known = argv in [[command] for command in CLIS]
    wanted = {"argv": [] if is_known else argv, **said}
    return Agent(
        name=name, role=role, model=model, slots=slots,
        provider=argv[0] if is_known else Agent.Provider.COMMAND,
        settings={key: value for key, value in wanted.items() if value},
    )  # fmt: skip


def add(agent: Agent, slugs: Iterable[str], *, elsewhere: bool = False) -> str:
    """Save a new agent for these projects, or for all if there are none, and return where it works, in words.

    With `elsewhere` it is accepted even if this host lacks its program. Raises CommandError, and then saves
    nothing.
    """
    if (namesake := Agent.objects.filter(name=agent.name).first()) is not None:
        is_retired = "" if namesake.is_active else ", which is retired"
        change = "change that one" if namesake.is_active else "make that one active again"
        raise CommandError(
            f"There is an agent {agent.name} already{is_retired}."
            f" Choose another name, or {change} in the admin."
        )
    with as_command_error():
        agent.full_clean()
    if not elsewhere and (missing := missing_program(agent)):
        raise CommandError(f"{missing} {ELSEWHERE}")
    projects = [project_named(slug) for slug in dict.fromkeys(slugs)]
    with transaction.atomic():
        agent.save()
        agent.projects.set(projects)
    return ", ".join(project.slug for project in projects) or "every project"

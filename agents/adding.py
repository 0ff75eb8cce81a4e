"""Adding an agent from the command line."""

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import transaction

from agents.models import Agent
from tasks.models import Project


def add(agent: Agent, slugs: Iterable[str]) -> str:
    """Keep a new agent that works in these projects, or everywhere; in words where that is.

    Raises CommandError, and then nothing is kept.
    """
    try:
        agent.full_clean()
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    wanted = set(slugs)
    projects = list(Project.objects.filter(slug__in=wanted))
    if missing := wanted - {project.slug for project in projects}:
        raise CommandError(f"There is no project {', '.join(sorted(missing))}.")
    with transaction.atomic():
        agent.save()
        agent.projects.set(projects)
    return ", ".join(project.slug for project in projects) or "every project"

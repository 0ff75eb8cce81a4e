"""Remove an agent from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from agents.models import Agent, Run
from tasks.locking import locked
from tasks.management.program_command import ProgramCommand


class Command(ProgramCommand):
    help = (
        "Remove an agent: delete one that never ran, retire one that did, so that its runs keep their name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        with transaction.atomic():
            agent = locked(Agent.objects).filter(name=name).first()
            if agent is None:
                known = ", ".join(Agent.objects.values_list("name", flat=True)) or "none"
                raise CommandError(f"There is no agent {name}. There are: {known}.")
            live = Run.objects.live().filter(agent=agent).count()
            if Run.objects.filter(agent=agent).exists():
                Agent.objects.filter(pk=agent.pk).update(is_active=False)
                said = f"{name} is retired: it takes no more work. Its runs keep its name."
            else:
                agent.delete()
                said = f"{name} is deleted; it never ran."
        self.stdout.write(said)
        if live:
            self.stdout.write(f"{live} of its runs are under way and go on to their end.")

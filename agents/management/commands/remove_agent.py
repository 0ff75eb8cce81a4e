"""Remove an agent from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction

from agents.models import Agent, Run
from tasks.database.locking import locked
from tasks.management.program_command import ProgramCommand, row_named


class Command(ProgramCommand):
    help = (
        "Remove an agent: delete one that never ran, retire one that did, so that its runs keep their name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        with transaction.atomic():
            agent = row_named(locked(Agent.objects), "name", name)
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

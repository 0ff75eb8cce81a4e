"""Check an agent from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from agents.models import Agent
from agents.setup import checking
from tasks.management.program_command import ProgramCommand, row_named


class Command(ProgramCommand):
    help = (
        "Start the agent's command once in an empty folder with a tiny prompt, under the limits of a run, "
        "and say in a sentence what is wrong and what to do. Exit code 0: it answered; 1: it did not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        agent = row_named(Agent.objects, "name", options["name"])
        checked = checking.check(agent)
        if not checked.is_fine:
            raise CommandError(f"{agent.name}: {checked.says}", returncode=1)
        self.stdout.write(f"{agent.name}: {checked.says}")

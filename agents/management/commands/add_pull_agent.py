"""Add a pulled agent, which runs elsewhere and claims its own work."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction

from agents.models import Agent, Token
from agents.setup import adding
from tasks.management.program_command import ProgramCommand


class Command(ProgramCommand):
    help = (
        "Add an agent that runs elsewhere and claims its own work over REST, for example: "
        "add_pull_agent far-coder --role coder --project ledger. Its token is printed once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--role", choices=[Agent.Role.CODER.value, Agent.Role.REVIEWER.value], required=True
        )
        parser.add_argument("--type", default="", help="what sort of agent it is, such as dev-agent")
        parser.add_argument("--model", default="", help="shown on pages")
        parser.add_argument("--vendor", default="", help="who makes its model")
        parser.add_argument("--watches", action="append", default=[], metavar="COLUMN", help="what it takes")
        parser.add_argument("--project", action="append", default=[], help="only there (default: everywhere)")
        parser.add_argument("--slots", type=int, default=1, help="runs at a time (default: 1)")

    def handle(self, *args: Any, **options: Any) -> None:
        agent = Agent(
            name=options["name"], role=options["role"], kind=options["type"], model=options["model"],
            vendor=options["vendor"], watches=options["watches"], slots=options["slots"],
            provider=Agent.Provider.PULL,
        )  # fmt: skip
        with transaction.atomic():
            where = adding.add(agent, options["project"])
            secret = Token.mint_for(agent, "made by add_pull_agent")[1]
        self.stdout.write(f"{agent.name} is a {agent.role} on {where} and claims its own work.")
        self.stdout.write("Its token, which is not shown again:")
        self.stdout.write(secret)

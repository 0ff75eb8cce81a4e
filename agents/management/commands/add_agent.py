"""Add an agent from the command line."""

from argparse import ArgumentParser
from typing import Any

from agents.models import Agent
from agents.providers.registry import CLIS
from agents.setup import adding
from tasks.management.program_command import ProgramCommand


class Command(ProgramCommand):
    help = (
        "Add an agent that is any command, for example: "
        "add_agent my-coder --role coder -- my-agent --file {prompt}. "
        f"Of {', '.join(CLIS)} the name alone will do: the program knows how to start them. "
        "{prompt} is the path of the prompt, which is also on standard input; "
        "{clone} and {model} may stand there too."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--role", choices=Agent.Role.values, required=True)
        parser.add_argument(
            "--model", default="", help="shown on pages, told to the command, put for {model}"
        )
        parser.add_argument("--project", action="append", default=[], help="only there (default: everywhere)")
        parser.add_argument("--slots", type=int, default=1, help="runs at a time (default: 1)")
        parser.add_argument(
            "--pass", dest="names", action="append", default=[], metavar="NAME",
            help="a variable of this host's environment that the agent needs to sign in",
        )  # fmt: skip
        parser.add_argument(
            "--key", default="", metavar="NAME",
            help="the variable that holds the key of a known command, where it is not the usual one",
        )  # fmt: skip
        parser.add_argument(
            "--reach", dest="hosts", action="append", default=[], metavar="HOST",
            help="a host that the command talks to: a sandbox lets nothing else through but a known "
            "command's vendor; * for everything public",
        )  # fmt: skip
        parser.add_argument(
            "--again", action="append", default=[], metavar="TEXT",
            help="a text among the last lines of your command that means: try again later; so does ending "
            "with 75",
        )  # fmt: skip
        parser.add_argument(
            "--elsewhere", action="store_true",
            help="take it though this machine lacks the program: another host starts it",
        )  # fmt: skip
        parser.add_argument("argv", nargs="+", help="the command, after --")

    def handle(self, *args: Any, **options: Any) -> None:
        argv = options["argv"]
        agent = adding.agent_from(
            options["name"], options["role"], argv, model=options["model"], slots=options["slots"],
            key=options["key"], hosts=options["hosts"], again=options["again"], **{"pass": options["names"]},
        )  # fmt: skip
        where = adding.add(agent, options["project"], elsewhere=options["elsewhere"])
        started = agent.settings.get("argv", argv)
        self.stdout.write(f"{agent.name} is a {agent.role} on {where}: {' '.join(started)}")
        if agent.provider != Agent.Provider.COMMAND:
            self.stdout.write(f"Try it: manage.py check_agent {agent.name}")

"""Set up the first project by asking on the terminal."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError

from agents.providers.registry import CLIS
from agents.setup import first_hour
from agents.setup.asking import Asker
from tasks import base
from tasks.management.program_command import ProgramCommand, check_database

START = ".venv/bin/python manage.py run_orchestrator"
ANSWERS = {
    "username": "name of the first account (default: your login name)",
    "repository": "URL or path of the repository, or the short name of a project that is there",
    "slug": "short name of the project; tasks are called SLUG-1, SLUG-2, ... (default: from the repository)",
    "branch": "target branch (default: the remote's own default)",
    "coder": f"{', '.join(CLIS)}, or any command in quotes; {{prompt}} is the path of its prompt",
    "coder-model": "its model",
    "reviewer": "likewise",
    "reviewer-model": "its model",
    "todo": "path of a TODO.md, or one task in a line (default: TODO.md, where this folder has one)",
}


class Command(ProgramCommand):
    help = (
        "Set up the first project: account, repository, agents and tasks. Asks, with defaults; what is done "
        "already is left alone, so that it can be run again at any time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name, text in ANSWERS.items():
            parser.add_argument(f"--{name}", dest=name, default="", help=text)
        parser.add_argument("--yes", action="store_true", help="never ask; take the defaults")
        parser.add_argument("--no-check", action="store_true", help="do not try the agents")
        parser.add_argument("--run", action="store_true", help="start run_orchestrator afterwards")

    def handle(self, *args: Any, **options: Any) -> None:
        check_database()
        asker = Asker({name: options[name] for name in ANSWERS}, self.say, never=options["yes"])
        walked = first_hour.walk(asker, check_agents=not options["no_check"])
        why = base.keeps_waiting(walked.project).rstrip(".")
        waits = f"No coder begins in {walked.project.slug}: {why}." if why else ""
        if walked.problems:
            raise CommandError("\n".join(["Not ready yet.", *walked.problems, *([waits] if waits else [])]))
        if options["run"]:
            call_command("run_orchestrator", stdout=self.stdout, stderr=self.stderr)
        elif waits:
            self.say(f"Not ready yet. {waits} Once it is started, the set-up page offers what to do: {START}")
        else:
            self.say(f"Ready. Start it: {START}")

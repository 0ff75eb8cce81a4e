from datetime import date
from typing import Any

from django.core.management.base import CommandParser

from disputes import tallies
from tasks.management.program_command import ProgramCommand, project_named
from tasks.text.counting import counted


class Command(ProgramCommand):
    help = "Count the daily sums of the insights page again from the start. It may be run at any time."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="only this one")
        parser.add_argument(
            "--since",
            metavar="YYYY-MM-DD",
            type=date.fromisoformat,
            help="from this day on; else everything",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        projects = [project_named(options["project"])] if options["project"] else None
        written = tallies.rebuild(projects, since=options["since"])
        self.stdout.write(f"{counted(written, 'sum')} written.")

from typing import Any

from django.core.management.base import CommandError, CommandParser

from agents.setup.configuration import export_config
from tasks.configuration.writing import write_reference
from tasks.management.program_command import ProgramCommand, project_named


class Command(ProgramCommand):
    help = "Write a project's settings and agents as YAML, with help; import_config reads it back."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--project", metavar="SLUG")
        what.add_argument("--reference", action="store_true", help="the tables of docs/settings.md instead")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["reference"]:
            self.stdout.write(write_reference(), ending="")
            return
        project = project_named(options["project"])
        if faults := project.setting_faults:
            raise CommandError(f"The stored settings of {project.slug} are not valid: {faults[0]}")
        self.stdout.write(export_config(project), ending="")

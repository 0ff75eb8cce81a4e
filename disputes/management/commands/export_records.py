from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from disputes.records import write_records
from tasks.management.program_command import ProgramCommand, project_named


class Command(ProgramCommand):
    help = "Write a project's dispute.md (what is in dispute) and decisions.md (what was ruled)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", metavar="SLUG", required=True)
        parser.add_argument(
            "--to",
            metavar="DIR",
            help="the folder to write to; records/SLUG in the data folder, if not given",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug, to = options["project"], options["to"]
        project = project_named(slug)
        folder = Path(to) if to else settings.HOME / "records" / slug
        try:
            written = write_records(project, folder)
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error.strerror}.") from error
        for path in written:
            self.stdout.write(f"{path} written.")

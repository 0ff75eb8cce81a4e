from typing import Any

from django.core.management.base import CommandError, CommandParser

from tasks.configuration.reading import FaultyFile
from tasks.events import Actor
from tasks.management.commands.export_comments import find_task
from tasks.management.program_command import ProgramCommand, text_of
from tasks.remarks.files import import_comments
from tasks.remarks.meta_yaml import SUFFIX, artifact_in, artifact_of


class Command(ProgramCommand):
    help = "Read comments from a .meta.yaml file; a second time it changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("task", metavar="TASK", help="such as ledger-214")
        parser.add_argument("file", metavar="FILE", help="such as tests/trading.md.meta.yaml")
        parser.add_argument(
            "--artifact", metavar="PATH", help="what the file is about, if it does not say so"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        task, file = find_task(options["task"]), options["file"]
        text = text_of(file)
        try:
            named = artifact_in(text) or artifact_of(file.removesuffix(SUFFIX))
            artifact = options["artifact"] if options["artifact"] is not None else named
            said = import_comments(task, text, artifact=artifact, actor=Actor("system", "import_comments"))
        except FaultyFile as error:
            raise CommandError("\n".join([*error.lines(file), "Nothing was imported."])) from error
        for line in said or ["Nothing changes."]:
            self.stdout.write(line)

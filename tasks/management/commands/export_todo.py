from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from tasks.management.program_command import ProgramCommand, project_named
from tasks.todo.exporting import export_todo
from tasks.todo.format import TodoError


class Command(ProgramCommand):
    help = "Write a project's sections and tasks as TODO.md, to a file or to standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", nargs="?", help="standard output, if none is given")
        parser.add_argument("--project", metavar="SLUG", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        file = options["file"]
        try:
            text = export_todo(project_named(options["project"]))
            if file:
                Path(file).write_text(text, encoding="utf-8", newline="\n")
            else:
                self.stdout.write(text, ending="")
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
        except TodoError as error:
            raise CommandError("\n".join([*error.lines("TODO.md"), "Nothing was exported."])) from error

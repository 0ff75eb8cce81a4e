from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from tasks.events import Actor
from tasks.management.program_command import ProgramCommand, list_of, project_named
from tasks.text.counting import counted
from tasks.todo.format import TodoError
from tasks.todo.importing import import_todo
from tasks.todo.lists import count_boxes, with_boxes


class Command(ProgramCommand):
    help = "Import a list of tasks, such as a TODO.md, into a project. Known tasks keep their status."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", help="the file to read, or a folder with a file for each task"
        )
        parser.add_argument("--project", metavar="SLUG", required=True)
        parser.add_argument(
            "--strict", action="store_true", help="refuse whatever `export_todo` would not have written so"
        )
        parser.add_argument(
            "--guess",
            action="store_true",
            help="in a file without boxes, take numbered headings for tasks, or else rows of tables or items "
            "of lists; in another one, headings such as “Task 1.2”, with the boxes below as their criteria.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would come of it, and write nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        file = options["file"]
        project, text = project_named(options["project"]), list_of(file)
        boxes = count_boxes(text)
        if options["guess"]:
            text = with_boxes(text)
        try:
            with transaction.atomic():
                report = import_todo(
                    project, text, actor=Actor("system", "import_todo"), strict=options["strict"]
                )
                transaction.set_rollback(options["dry_run"])
        except TodoError as error:
            hint = []
            if boxes and not options["guess"]:
                hint = [f"With --guess, {counted(boxes, 'task')} would be read out of it."]
            raise CommandError("\n".join([*error.lines(file), "Nothing was imported.", *hint])) from error
        if boxes and not options["guess"]:
            tasks = counted(boxes, "heading")
            self.stdout.write(f"With --guess, {tasks} would be tasks, and the boxes below them criteria.")
        for note in report.notes:
            self.stdout.write(f"{file}: {note}" if note.startswith("Line ") else note)
        if options["dry_run"]:
            for number, line in enumerate(report.lines(), start=1):
                self.stdout.write(f"{number}. {line}")
        for task in report.missing:
            self.stdout.write(f"Not in the file, left alone: {task}")
        self.stdout.write(
            f"{len(report.created)} created, {len(report.updated)} updated, "
            f"{len(report.unchanged)} unchanged, {len(report.missing)} not in the file."
        )
        if options["dry_run"]:
            self.stdout.write("Nothing was written.")

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from tasks.management.program_command import ProgramCommand
from tasks.models import Task
from tasks.remarks.files import export_comments


class Command(ProgramCommand):
    help = "Write the comments of tasks as .meta.yaml files, one beside each artifact."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tasks", metavar="TASK", nargs="+", help="such as ledger-214")
        parser.add_argument("--out", metavar="FOLDER", required=True, help="where the artifacts lie")

    def handle(self, *args: Any, **options: Any) -> None:
        out = Path(options["out"])
        for ref in options["tasks"]:
            for name, text in export_comments(find_task(ref)).items():
                path = out / name
                if not path.resolve().is_relative_to(out.resolve()):
                    raise CommandError(f"{name} leads out of {out}; nothing is written there.")
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
                except OSError as error:
                    raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
                self.stdout.write(str(path))


def find_task(ref: str) -> Task:
    """Return the task of that name. Raises CommandError if there is none."""
    task = Task.objects.select_related("project").named(ref).first()
    if task is None:
        raise CommandError(f"There is no task {ref}.")
    return task

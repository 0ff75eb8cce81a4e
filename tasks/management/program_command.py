"""What all of this program's `manage.py` commands have in common."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Manager, Model, QuerySet

from tasks.errors import Refused
from tasks.models import Project
from tasks.text.regex import regex
from tasks.todo.format import TodoError
from tasks.todo.notations import FOLDER, entry_of

Row = TypeVar("Row", bound=Model)

NAMED_MAX = 20
DIGITS = regex(r"([0-9]+)")
INTERRUPTED = 130  # the exit status after Ctrl+C


class ProgramCommand(BaseCommand):
    """A command that first runs the program's own checks, because Django's would load every page."""

    requires_system_checks = ("steroids",)

    def __init__(self, stdout: Any = None, *args: Any, **options: Any) -> None:
        super().__init__(stdout, *args, **options)
        self.stdout = _Output(stdout or sys.stdout)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; if the database refuses something, report any missing migration first.

        A reader that has gone away, as that of `| head`, is no fault of the command, and neither is Ctrl+C.
        """
        try:
            done = super().execute(*args, **options)
            self.stdout.flush()
        except DatabaseError:
            check_database()
            raise
        except KeyboardInterrupt:
            self.stderr.write("\nStopped. What was done stays; run it again to go on.")
            raise SystemExit(INTERRUPTED) from None
        except _Unwritable as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error.__cause__, BrokenPipeError):
                return None
            raise CommandError(f"The output cannot be written: {error}.") from error
        return done

    def say(self, text: str) -> None:
        """Write the text at once, for whoever waits for it."""
        self.stdout.write(text)
        self.stdout.flush()


class _Unwritable(Exception):
    """What a command says cannot be written. The text says why."""


class _Output(OutputWrapper):
    """Where a command writes. Raises _Unwritable, so that this is no fault of the command's own work."""

    def write(self, *args: Any, **options: Any) -> None:
        try:
            super().write(*args, **options)
        except OSError as error:
            raise _Unwritable(error.strerror) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise _Unwritable(error.strerror) from error


def check_database() -> None:
    """Raise CommandError if a migration has not been applied."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError("The database is not up to date. Run `make setup` or `manage.py migrate`.")


@contextmanager
def as_command_error() -> Iterator[None]:
    """Turn a refusal, or a model's ValidationError, into a CommandError of the same words."""
    try:
        yield
    except Refused as error:
        raise CommandError(f"{error.message} {error.hint}".strip()) from error
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error


def row_named(rows: QuerySet[Row] | Manager[Row], field: str, name: str) -> Row:
    """Return the row of that name. Raises CommandError, which lists the names that there are."""
    found = rows.filter(**{field: name}).first()
    if found is None:
        known = ", ".join(rows.order_by(field).values_list(field, flat=True)[:NAMED_MAX]) or "none yet"
        raise CommandError(f"There is no {rows.model._meta.verbose_name} {name}. There are: {known}.")
    return found


def project_named(slug: str) -> Project:
    """Return the project with this slug. Raises CommandError if there is none."""
    return row_named(Project.objects, "slug", slug)


def list_of(path: str | Path) -> str:
    """Return the text of a list of tasks; a folder with a file for each task as JSON. Raises CommandError."""
    if not Path(path).is_dir():
        return text_of(path)
    entries = {}
    for file in sorted(Path(path).glob("*.md"), key=_by_number):
        try:
            entries[file.name] = entry_of(file.stem, text_of(file))
        except TodoError as error:
            raise CommandError("\n".join([*error.lines(str(file)), "Nothing was imported."])) from error
    if not any(entries.values()):
        raise CommandError(f"{path} is a folder without a task: no *.md file in it begins with front matter.")
    return json.dumps({FOLDER: entries})


def _by_number(file: Path) -> list[tuple[int, str]]:
    """Return what sorts files by the numbers in their names, so that task-2 comes before task-10."""
    parts = DIGITS.split(file.name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def text_of(file: str | Path) -> str:
    """Return the text of a file. Raises CommandError if it cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{file} is not UTF-8: {error.reason} at byte {error.start}. Save it as UTF-8."
        ) from error

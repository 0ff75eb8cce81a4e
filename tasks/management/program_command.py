"""What all of this program's `manage.py` commands have in common."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from tasks.models import Project


class ProgramCommand(BaseCommand):
    """A command that first runs the program's own checks, because Django's would load every page."""

    requires_system_checks = ("steroids",)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; if the database refuses something, report any missing migration first."""
        try:
            return super().execute(*args, **options)
        except DatabaseError:
            check_database()
            raise


def check_database() -> None:
    """Raise CommandError if a migration has not been applied."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError("The database is not up to date. Run `make setup` or `manage.py migrate`.")


def project_named(slug: str) -> Project:
    """Return the project with this slug. Raises CommandError if there is none."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise CommandError(f"There is no project {slug}.")
    return project


def text_of(file: str | Path) -> str:
    """Return the text of a file. Raises CommandError if it cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8: {error.reason} at byte {error.start}.") from error

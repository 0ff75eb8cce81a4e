"""What all commands of `manage.py` of ours have in common."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor


class ProgramCommand(BaseCommand):
    """Before it begins, the program's own checks are asked; Django's would load every page first."""

    requires_system_checks = ("steroids",)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Where the database refuses something, a missing migration is told rather than a missing table."""
        try:
            return super().execute(*args, **options)
        except DatabaseError:
            check_database()
            raise


def check_database() -> None:
    """Raise CommandError where a migration is missing."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError("The database is not up to date. Run `make setup` or `manage.py migrate`.")

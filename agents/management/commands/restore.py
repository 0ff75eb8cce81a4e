"""Restore an installation from a backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from agents.backups import restoring
from agents.backups.databases import NoCopy
from agents.hosts.git.commands import GitError
from tasks.management.program_command import ProgramCommand


class Command(ProgramCommand):
    help = (
        "Restore what `manage.py backup` wrote to FILE, into an empty installation. What was live then has "
        "ended: runs begin again, people sign in again. Never over an installation that has projects or "
        "accounts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            restoring.restore(options["file"], self.stdout.write)
        except restoring.NotRestored as error:
            raise CommandError(f"Nothing was restored. {error}") from error
        except (NoCopy, GitError, OSError) as error:
            raise CommandError(
                f"It could not be restored. {error} Empty the data folder and the database, then try again."
            ) from error
        self.stdout.write("Now run `manage.py doctor`, then `manage.py run_orchestrator`.")

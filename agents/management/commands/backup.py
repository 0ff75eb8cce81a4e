"""Back up everything that an installation needs to go on elsewhere into one file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from agents.backups import making
from agents.backups.databases import NoCopy
from agents.hosts.git.commands import GitError
from tasks.management.program_command import ProgramCommand
from tasks.text.counting import counted


class Command(ProgramCommand):
    help = (
        "Write database, mirrors, keys and prices into FILE, which only its owner can read. The program may "
        "run meanwhile. `manage.py restore FILE` brings it back, into an empty installation."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            about = making.make(options["file"])
        except (NoCopy, GitError, OSError) as error:
            raise CommandError(f"No backup was made. {error}") from error
        self.stdout.write(
            f"{options['file']}: {counted(about['projects'], 'project')}, {counted(about['tasks'], 'task')}, "
            f"{counted(len(about['mirrors']), 'mirror')}, {about['bytes']:,} bytes. "
            "It holds secrets: keep it as such."
        )
        if not about["key_is_in_it"]:
            self.stdout.write("SECRET_KEY comes from the environment and is not in it: keep that, too.")

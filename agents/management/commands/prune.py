"""Delete what the retention settings no longer keep."""

from argparse import ArgumentParser
from typing import Any

from agents import retention
from agents.hosts import tidying
from tasks.management.program_command import ProgramCommand
from tasks.text.counting import counted

AS_LONG_AS_IT_TAKES = float("inf")


class Command(ProgramCommand):
    help = (
        "Remove old logs, prompts, bundles, run folders and caches as the retention settings say, pack the "
        "mirrors of this host and cut its logs. The program does the same by itself once a day."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")

    def handle(self, *args: Any, **options: Any) -> None:
        is_trial = options["dry_run"]
        word = "Would go" if is_trial else "Gone"
        for name, count in retention.prune_rows(AS_LONG_AS_IT_TAKES, is_trial=is_trial).items():
            self.stdout.write(f"{word}: {counted(count, name)}.")
        if is_trial:
            self.stdout.write(f"{word}: {counted(len(tidying.old_run_folders()), 'run folder')}.")
            self.stdout.write(f"{word}: {counted(len(tidying.old_caches()), 'cache')}.")
            return
        for line in retention.prune_host():
            self.stdout.write(line)

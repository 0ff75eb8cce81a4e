"""Remove a project from the command line."""

import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from agents.loop import run_ends
from agents.models import Run
from agents.setup import removing
from tasks.errors import Refused
from tasks.events import Actor
from tasks.management.program_command import ProgramCommand, project_named
from tasks.models import Project
from tasks.text.counting import counted

ACTOR = Actor("system", "remove_project")


class Command(ProgramCommand):
    help = (
        "Remove a project: one without landings and rulings is deleted, any other is ended as abandoned and "
        "stays readable. Its mirror on this host goes; its remote is left alone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the project's short name")
        parser.add_argument("--yes", action="store_true", help="do not ask for the short name again")
        parser.add_argument("--force", action="store_true", help="stop the runs that are under way")

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        project = project_named(slug)
        live = Run.objects.live().filter(project=project)
        if live.exists() and not options["force"]:
            raise CommandError(
                f"{slug} has {counted(live.count(), 'run')} under way. "
                "Wait until they end, or add --force, which stops them."
            )
        self._confirm(project, asked=not options["yes"])
        if live.exists():
            self._stop(project)
        try:
            self.stdout.write(removing.remove(project, actor=ACTOR))
        except Refused as error:
            raise CommandError(f"{error} {error.hint} Nothing was removed.") from error

    def _confirm(self, project: Project, *, asked: bool) -> None:
        history = removing.history_of(project)
        will = f"It is kept as abandoned, for it has {history}." if history else "All its rows are deleted."
        self.stdout.write(f"{project.slug}: {counted(project.tasks.count(), 'task')}. {will}")
        if not asked:
            return
        try:
            typed = input(f"Type {project.slug} to go on: ")
        except EOFError:
            raise CommandError("Nobody answers here; say --yes if it is meant.") from None
        if typed.strip() != project.slug:
            raise CommandError("That is another name. Nothing was removed.")

    def _stop(self, project: Project) -> None:
        """Pause the project and wait until its runs have been stopped by their hosts.

        Raises CommandError if they do not end in time.
        """
        active = Project.objects.filter(pk=project.pk, status=Project.Status.ACTIVE)
        active.update(status=Project.Status.PAUSED)
        live = Run.objects.live().filter(project=project)
        for run in live.filter(stop_requested=False):
            try:
                run_ends.ask_to_stop(run, actor=ACTOR)
            except Refused:
                continue  # it ended by itself
        deadline = time.monotonic() + settings.DURATIONS["grace"] + settings.DURATIONS["lease"]
        while live.exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        if live.exists():
            raise CommandError(
                f"{project.slug} has {counted(live.count(), 'run')} that will not end; "
                "does run_orchestrator run? The project is paused; try again once they have ended."
            )

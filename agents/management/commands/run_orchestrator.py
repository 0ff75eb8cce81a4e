"""Run the resident processes of a host: loop, background jobs, agents and web server."""

import io
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError

from agents.hosts import paths
from agents.hosts.api_server import NoApiServer
from agents.hosts.reconciler import HostBusy
from agents.hosts.resident import Resident, once
from agents.hosts.sandbox import HostUnfit
from agents.hosts.supervisor import AlreadyRunning, Supervisor
from agents.setup import demo, first_hour
from agents.setup.event_lines import EventLines
from disputes.models import Conflict
from tasks.management.program_command import ProgramCommand, check_database
from tasks.models import Task
from tasks.states import Status

EXIT_FAILED_TASK = 3


class Command(ProgramCommand):
    help = "Run the loop, the background jobs, this host's agents and the web server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="one turn of the loop, then exit")
        parser.add_argument(
            "--until-idle", action="store_true", help="exit when nothing is left to do; 3 if a task failed"
        )
        parser.add_argument("--demo", action="store_true", help="create the demo project first")
        parser.add_argument("--quiet", action="store_true", help="no line for each thing that happens")
        parser.add_argument("--no-web", action="store_true", help="without the web server")

    def handle(self, *args: Any, **options: Any) -> None:
        paths.folder()
        if isinstance(sys.stdout, io.TextIOWrapper):  # no character of a title may end the loop
            sys.stdout.reconfigure(errors="backslashreplace")
        if options["demo"]:
            call_command("migrate", verbosity=0, interactive=False)
        check_database()
        if options["demo"] or not (options["once"] or options["no_web"]):
            self._open_the_first_account()
        if options["demo"]:
            demo.create()
        if options["once"]:
            self._once()
            return
        is_served = not options["no_web"]
        resident = Resident(
            web=is_served, until_idle=options["until_idle"], say=self.say,
            each_turn=(lambda: None) if options["quiet"] else EventLines(self.say),
        )  # fmt: skip
        try:
            status = Supervisor(loop=lambda: self._loop(resident), web=is_served).run()
        except AlreadyRunning as error:
            self.say(f"{error} {f'Steroids Web answers on {error.url}' if error.url else ''}".strip())
            return
        except NoApiServer as error:
            raise CommandError(str(error)) from error
        if status:
            raise SystemExit(status)
        if options["until_idle"]:
            self._report()

    def _loop(self, resident: Resident) -> int:
        """Run the loop, in a process of its own, and return the exit status."""
        try:
            resident.run()
            resident.each_turn()  # what the last turn did
        except HostBusy as error:
            self.stderr.write(self.style.ERROR(f"{error} End that process, or wait until it lets go."))
            return 1
        except HostUnfit as error:
            self.stderr.write(self.style.ERROR(str(error)))
            return 1
        return 0

    def _once(self) -> None:
        try:
            once()
        except HostBusy as error:
            raise CommandError(f"{error} Nothing was done.") from error
        except HostUnfit as error:
            raise CommandError(str(error)) from error

    def _open_the_first_account(self) -> None:
        password = first_hour.first_admin()
        if password is None:
            return
        if self.stdout.isatty():
            self.say(f"Sign in as admin with the password {password} (shown only now).")
            return
        self.say(f"Sign in as admin; the password is in {first_hour.keep_password(password)}.")

    def _report(self) -> None:
        """Print a table of the tasks, then the disputes that wait for a person.

        Raises SystemExit if a task has failed.
        """
        rows = [("TASK", "STATUS", "ROUNDS", "LANDED", "TITLE")]
        tasks = Task.objects.select_related("project").order_by("project__slug", "rank")
        rows += [
            (task.ref, task.status, str(task.round), task.landed_sha[:12] or "-", task.title)
            for task in tasks
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for row in rows:
            self.say(
                "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]])
            )
        waiting = Conflict.objects.open().select_related("dispute__task__project", "finding")
        self.say("\nOpen disputes:" if waiting else "\nNo open disputes.")
        for conflict in waiting:
            task = conflict.dispute.task
            self.say(
                f"  {conflict.dispute.ref}  {task.ref if task else '-'}  {conflict.severity.upper()}  "
                f"{conflict.question}"
            )
        if tasks.filter(status=Status.FAILED).exists():
            raise SystemExit(EXIT_FAILED_TASK)

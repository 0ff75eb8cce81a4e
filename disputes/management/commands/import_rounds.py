from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from disputes.importing.folder import FolderError, SessionFolder, read_folder
from disputes.importing.rows import RoundsReport, import_session, read_session
from tasks.events import Actor
from tasks.management.program_command import ProgramCommand, project_named
from tasks.models import Project
from tasks.text.counting import counted

ACTOR = Actor("system", "import_rounds")


class Command(ProgramCommand):
    help = (
        "Import rounds that were written elsewhere: a folder of round_NNN/{engineer,reviewer}.md, or of "
        "several such folders. Each gap becomes a task that nothing starts by itself. Importing again is "
        "harmless."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="DIR", help="the folder to read")
        parser.add_argument("--project", metavar="SLUG", required=True)
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="print how the documents are understood, and write nothing",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = project_named(options["project"])
        try:
            sessions = read_folder(Path(options["folder"]))
        except FolderError as error:
            raise CommandError(f"{error} Nothing was imported.") from error
        if options["dry_run"]:
            self._show(project, sessions)
            return
        refused = [session for session in sessions if not self._imported(project, session)]
        if refused:
            names = ", ".join(session.name for session in refused)
            raise CommandError(
                f"Not imported: {names}. Nothing of it was written; mend the files named above."
            )

    def _show(self, project: Project, sessions: list[SessionFolder]) -> None:
        for session in sessions:
            self.stdout.write(f"{session.name}:")
            for line in read_session(project, session).lines():
                self.stdout.write(f"  {line}")
        self.stdout.write("Nothing was imported.")

    def _imported(self, project: Project, session: SessionFolder) -> bool:
        """Import one session and report on it. Return False if it has unreadable files."""
        number = len(session.documents)
        self.stdout.write(f"{session.name}: {counted(number, 'document')}")
        for trouble in session.passed_over:
            self.stdout.write(f"  {trouble.path}: passed over, {trouble.reason}.")
        for trouble in session.unreadable:
            self.stdout.write(f"  {trouble.path}: cannot be read, {trouble.reason}.")
        if session.unreadable or not session.documents:
            return not session.unreadable
        self._tell(import_session(project, session, actor=ACTOR))
        return True

    def _tell(self, report: RoundsReport) -> None:
        for trouble in report.notes:
            self.stdout.write(f"  {trouble.path}: {trouble.reason}.")
        for change in report.changes:
            self.stdout.write(f"  {change}")
        self.stdout.write(f"  New: {report.summary}." if report.counts else "  Nothing is new.")
        if report.never_answered:
            self.stdout.write(f"  Never answered, {len(report.never_answered)}:")
            for line in report.never_answered:
                self.stdout.write(f"    {line}")

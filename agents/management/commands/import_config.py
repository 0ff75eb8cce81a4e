from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from agents.setup.configuration import import_config
from tasks.access import MAINTAIN, may, who_may_enter
from tasks.configuration.reading import FaultyFile
from tasks.events import Actor
from tasks.management.program_command import ProgramCommand, project_named, text_of
from tasks.models import Project


class Command(ProgramCommand):
    help = "Set a project's settings and agents from a YAML file. What it does not name stays as it is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the file to read")
        parser.add_argument("--project", metavar="SLUG", required=True)
        parser.add_argument("--dry-run", action="store_true", help="only say what would change")
        parser.add_argument(
            "--user", metavar="NAME", default="",
            help="who sets this: a policy that rules by itself does so in the name of this person",
        )  # fmt: skip
        parser.add_argument(
            "--elsewhere", action="store_true",
            help="take agents though this machine lacks their program: another host starts them",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        file, dry_run = options["file"], options["dry_run"]
        project, text = project_named(options["project"]), text_of(file)
        try:
            said = import_config(
                project, text, actor=self._actor(project, options["user"]), dry_run=dry_run,
                elsewhere=options["elsewhere"],
            )  # fmt: skip
        except FaultyFile as error:
            raise CommandError("\n".join([*error.lines(file), "Nothing was imported."])) from error
        for line in said or ["Nothing changes."]:
            self.stdout.write(line)
        if dry_run:
            self.stdout.write("This was a dry run: nothing was changed.")

    def _actor(self, project: Project, name: str) -> Actor:
        if not name:
            return Actor("system", "import_config")
        user = get_user_model().objects.filter(who_may_enter(), username=name).first()
        if user is None or not may(user, project, MAINTAIN):
            raise CommandError(f"{name} does not maintain {project.slug}.")
        return Actor.person(user)

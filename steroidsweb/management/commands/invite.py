"""The command `manage.py invite --role ledger:triager`, which prints a link that makes one account."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from steroidsweb.accounts import invitations
from tasks.management.program_command import ProgramCommand, project_named
from tasks.models import Membership, Project

LONGEST = 90


class Command(ProgramCommand):
    help = "Print a link with which one person makes an account. It works once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--by", help="the superuser who invites (default: the only one there is)")
        parser.add_argument("--for", dest="whom", default="", help="whom, for your own memory")
        parser.add_argument(
            "--role", dest="roles", action="append", default=[], metavar="PROJECT:ROLE",
            help="a role in a project, such as ledger:triager; may be given several times",
        )  # fmt: skip
        parser.add_argument("--days", type=int, default=invitations.DAYS, help="how long the link works")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["days"] <= LONGEST:
            raise CommandError(f"--days is between 1 and {LONGEST}.")
        roles = dict(self._role(word) for word in options["roles"])
        made = invitations.invite(self._by(options["by"]), roles, whom=options["whom"], days=options["days"])
        base = settings.URL or settings.API_URL or "http://127.0.0.1:8000"
        self.stdout.write(invitations.link(made, base))
        if not settings.URL:
            self.stderr.write(
                "STEROIDS_URL is not set: put the address at which people reach the pages in front."
            )

    def _by(self, name: str | None) -> Any:
        admins = get_user_model().objects.filter(is_superuser=True, is_active=True)
        found = list(admins.filter(username=name) if name else admins[:2])
        if len(found) != 1:
            what = (
                f"There is no superuser named {name}." if name else "Say with --by which superuser invites."
            )
            raise CommandError(what)
        return found[0]

    def _role(self, word: str) -> tuple[Project, str]:
        slug, _, role = word.partition(":")
        project = project_named(slug)
        if role not in Membership.Role.values:
            raise CommandError(f"{role or 'Nothing'} is no role: {', '.join(Membership.Role.values)}.")
        return project, role

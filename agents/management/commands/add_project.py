"""Add a git project from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.utils.text import slugify

from agents.hosts.git.commands import GitError
from agents.hosts.git.remotes import NoBranch, NoDefaultBranch
from agents.setup import projects
from tasks.management.program_command import ProgramCommand, as_command_error, text_of
from tasks.models import Project

BRIEF_MAX = 100_000  # characters


class Command(ProgramCommand):
    help = (
        "Add a git project: fetch its repository, find the commands that build and test it by trying them on "
        "the untouched target branch, and make every admin a maintainer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="short name; tasks are called SLUG-1, SLUG-2, ...")
        parser.add_argument("repository", help="URL or path that git can fetch from and push to")
        parser.add_argument("--name", default="", help="the name on pages (default: the short name)")
        parser.add_argument("--branch", default="", help="target branch (default: the remote's own default)")
        parser.add_argument(
            "--kind", choices=Project.Kind.values, default=Project.Kind.CODE.value,
            help="code (default), or documents: its tasks are gaps, which agents close in rounds",
        )  # fmt: skip
        parser.add_argument(
            "--brief", default="", metavar="FILE", help="what the documents are for: a Markdown file"
        )
        parser.add_argument("--prepare", default="", help="command that brings what build and tests need")
        parser.add_argument("--build", default="", help="build command; none is looked for then")
        parser.add_argument("--test", default="", help="test command; none is looked for then")
        parser.add_argument("--member", action="append", default=[], help="user name of a further maintainer")
        parser.add_argument(
            "--later", action="store_true", help="leave the trying to run_orchestrator, and return at once"
        )

    @as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        if slug != slugify(slug):
            raise CommandError(f"{slug!r} is no short name; small letters, digits and hyphens are.")
        if Project.objects.filter(slug=slug).exists():
            raise CommandError(f"There is a project {slug} already.")
        commands = {
            f"{name}_command": options[name] for name in ("prepare", "build", "test") if options[name]
        }
        url = projects.address(options["repository"])
        kind = options["kind"]
        brief = text_of(options["brief"])[:BRIEF_MAX] if options["brief"] else ""
        if kind == Project.Kind.DOCUMENTS and not commands:
            commands = {"detect_commands": False}
        try:
            Project(slug=slug, name=options["name"] or slug, repo_url=url, settings=commands).full_clean(
                exclude=["target_branch"]
            )
            project = projects.add_project(
                slug, url, name=options["name"], branch=options["branch"],
                settings=commands, kind=kind, brief=brief, leads=self._leads(options["member"]),
            )  # fmt: skip
        except NoDefaultBranch as error:  # its sentence begins with the repository
            raise CommandError(str(error)) from error
        except NoBranch as error:
            raise CommandError(
                f"{options['repository']} has no branch {options['branch']}. "
                "Name another one, or leave out --branch for its default branch."
            ) from error
        except GitError as error:
            raise CommandError(f"{options['repository']} cannot be used: {error}") from error
        self.say(f"{project.name} is added, with the branch {project.target_branch}.")
        if not project.memberships.exists():
            self.say("It has no members yet: `manage.py start` makes the first account.")
        if options["later"]:
            self.say("run_orchestrator tries it first.")
            return
        projects.follow(project, self.say)

    def _leads(self, names: list[str]) -> list[Any]:
        users = get_user_model().objects
        leads = list(users.filter(is_superuser=True))
        for name in names:
            found = users.filter(username=name).first()
            if found is None:
                raise CommandError(f"There is no user {name}. Add them in the admin first.")
            leads.append(found)
        return leads

"""Add a git project from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils.text import slugify

from agents.runtime import paths
from agents.runtime.commands import commands_of
from agents.runtime.git import GitError
from tasks.events import SYSTEM, record
from tasks.models import Membership, Project, Section
from tasks.models.project import validate_repository


class Command(BaseCommand):
    help = "Add a git project: look at its remote, detect its commands, make every admin a maintainer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="short name; tasks are called SLUG-1, SLUG-2, ...")
        parser.add_argument("repository", help="URL or absolute path that git can fetch from and push to")
        parser.add_argument("--name", default="", help="the name on pages (default: the short name)")
        parser.add_argument("--branch", default="main", help="target branch (default: main)")
        parser.add_argument("--build", default="", help="build command, where detection is wrong")
        parser.add_argument("--test", default="", help="test command, where detection is wrong")
        parser.add_argument("--member", action="append", default=[], help="user name of a further maintainer")

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        if slug != slugify(slug):
            raise CommandError(f"{slug!r} is no short name; small letters, digits and hyphens are.")
        if Project.objects.filter(slug=slug).exists():
            raise CommandError(f"There is a project {slug} already.")
        try:
            validate_repository(options["repository"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        users = get_user_model().objects
        members = list(users.filter(is_superuser=True))
        for name in options["member"]:
            found = users.filter(username=name).first()
            if found is None:
                raise CommandError(f"There is no user {name}. Add them in the admin first.")
            members.append(found)
        commands = {"build_command": options["build"], "test_command": options["test"]}
        try:
            with transaction.atomic():
                project = Project.objects.create(
                    slug=slug, name=options["name"] or slug, repo_url=options["repository"],
                    target_branch=options["branch"], settings={k: v for k, v in commands.items() if v},
                )  # fmt: skip
                mirror = paths.mirror(project)
                head = mirror.fetch_target()
                found_commands = commands_of(project, mirror, head)
                Section.objects.create(project=project, title="Tasks")
                for user in {user.pk: user for user in members}.values():
                    Membership.objects.create(
                        project=project, user=user, role=Membership.Role.MAINTAINER, is_lead=user.is_superuser
                    )
                record(project, "project_added", actor=SYSTEM)
        except GitError as error:
            raise CommandError(f"{options['repository']} cannot be used: {error}") from error
        self.stdout.write(f"{project.name} is added; {options['branch']} is at {head[:12]}.")
        self.stdout.write(f"build: {found_commands.build or 'none'}")
        self.stdout.write(f"tests: {found_commands.test or 'none'}")

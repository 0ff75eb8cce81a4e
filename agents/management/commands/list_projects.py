"""List the projects of this installation."""

from typing import Any

from agents.web.log import plain
from tasks import base
from tasks.management.program_command import ProgramCommand
from tasks.models import Project
from tasks.projects import counts_line, counts_of


class Command(ProgramCommand):
    help = (
        "List the projects: short name, status, tasks, branch and repository; below, what keeps one waiting."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        projects = list(Project.objects.order_by("slug"))
        if not projects:
            self.stdout.write("There are no projects. Add one: manage.py add_project SLUG REPOSITORY")
        counts = counts_of(projects)
        for project in projects:
            where = f"{project.target_branch} of {project.address}"
            self.stdout.write(f"{project.slug}  {project.status}  {counts_line(counts[project.pk])}  {where}")
            if waits := base.keeps_waiting(project):
                self.stdout.write(f"    waits: {' '.join(plain(waits).split())}")

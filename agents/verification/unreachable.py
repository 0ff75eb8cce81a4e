"""A project whose remote cannot be reached or used: it rests, and the pages say why."""

from django.utils import timezone

from agents.loop import run_ends
from tasks.models import Project
from tasks.models.event import record


def trouble(project: Project, problem: str) -> None:
    """Nothing of this project is started for a while; the pages say why."""
    project.refresh_from_db()
    count = project.trouble_count + 1
    until = timezone.now() + run_ends.backoff(count + 1)
    Project.objects.filter(pk=project.pk).update(
        trouble=problem[:500], trouble_until=until, trouble_count=count
    )
    if count == 1:
        record(project, "trouble", note=problem)

"""A project whose remote cannot be reached or used: it rests, and the pages say why."""

from datetime import timedelta

from django.conf import settings

from tasks.database.clock import database_time
from tasks.models import Project
from tasks.models.event import record


def pause_after(failures: int) -> float:
    """Return the seconds until a remote is asked again: about a third of how long it has failed, bounded."""
    growing = settings.DURATIONS["remote_retry"] * 1.33 ** min(failures, 100)
    return float(min(growing, settings.DURATIONS["backoff_max"]))


def trouble(project: Project, problem: str) -> None:
    """Let the project rest for a while, so that nothing of it is started, and store why for the pages."""
    project.refresh_from_db()
    now = database_time()
    rests_already = bool(project.trouble_until and project.trouble_until > now)  # another run failed too
    count = max(project.trouble_count + (not rests_already), 1)
    until = now + timedelta(seconds=pause_after(count))
    Project.objects.filter(pk=project.pk).update(
        trouble=problem[:500], trouble_until=until, trouble_count=count
    )
    if count == 1 and not rests_already:
        record(project, "trouble", note=problem)

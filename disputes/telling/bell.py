"""Ringing the job that tells people: after each event with a notice, at most one waits in the queue."""

from django.core.cache import caches
from django_q.tasks import async_task

WAITING = "steroids-tell-waiting"


def ring(project_pk: int = 0) -> None:
    """One job in the queue unless one waits already."""
    if caches["q2"].add(WAITING, True, timeout=60):
        async_task("disputes.telling.jobs.tell", group="tell")


def answered() -> None:
    """The job begins: whatever is noted from here on needs another."""
    caches["q2"].delete(WAITING)

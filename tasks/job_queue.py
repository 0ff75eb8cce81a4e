"""The queue of background jobs in the database: django-q2's own, but cheaper to ask when it is empty."""

import time

from django.db import close_old_connections, connections
from django_q.brokers.orm import ORM
from django_q.conf import Conf

ANY = "SELECT 1 FROM django_q_ormq LIMIT 1"


class JobQueue(ORM):  # type: ignore[misc]
    """A queue that is polled four times a second, which is much of what an idle installation costs."""

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Return the next job with its key; None, after a pause, if no job is waiting."""
        if self._is_empty():
            time.sleep(Conf.POLL)
            return None
        found: list[tuple[int, str]] | None = super().dequeue()
        return found

    def _is_empty(self) -> bool:
        """Whether the queue has no jobs at all, neither scheduled nor under way, by one fixed query."""
        close_old_connections()
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(ANY)
            return cursor.fetchone() is None

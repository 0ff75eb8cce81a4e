"""The queue of background jobs in the database: django-q2's own, but for how it asks whether one waits."""

import time

from django.db import close_old_connections, connections
from django_q.brokers.orm import ORM
from django_q.conf import Conf

ANY = "SELECT 1 FROM django_q_ormq LIMIT 1"


class JobQueue(ORM):  # type: ignore[misc]
    """Asked four times a second: a large part of what an installation with nothing to do costs."""

    def dequeue(self) -> list[tuple[int, str]] | None:
        """The next job with its key; None after a pause, where none waits."""
        if self._is_empty():
            time.sleep(Conf.POLL)
            return None
        found: list[tuple[int, str]] | None = super().dequeue()
        return found

    def _is_empty(self) -> bool:
        """Whether there is none at all, neither for later nor under way: that needs no query to be built."""
        close_old_connections()
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(ANY)
            return cursor.fetchone() is None

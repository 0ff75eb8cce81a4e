"""What all processes share beside the database: a few marks, and the queue of background jobs.

It may be away. Rows decide what is to be done, so nothing is lost then but time: whatever could not be said
is found by the next turn of the loop. That it is away is logged once, and once that it is back.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.cache import caches
from django.db import DatabaseError
from django_q.brokers import get_broker
from django_q.tasks import async_task

log = logging.getLogger(__name__)

AWAY: tuple[type[Exception], ...] = (DatabaseError, OSError)
if settings.REDIS_URL:  # its package takes its time to load
    from redis.exceptions import RedisError

    AWAY = (RedisError, *AWAY)

_known = {"is_away": False}  # of this process


@contextmanager
def _maybe_away() -> Iterator[None]:
    try:
        yield
    except AWAY as error:
        if not _known["is_away"]:
            log.warning("The broker is away, background jobs wait until it is back: %s", error)
        _known["is_away"] = True
    else:
        if _known["is_away"]:
            log.warning("The broker is back.")
        _known["is_away"] = False


def is_away() -> bool:
    """Whether it was, when this process last asked."""
    return _known["is_away"]


def waiting_jobs() -> int:
    """How many jobs nobody has begun yet; 0 where nobody knows."""
    with _maybe_away():
        return int(get_broker().queue_size())
    return 0


def ask_once(mark: str, job: str, *, group: str, timeout: float | None = None) -> None:
    """Put the job into the queue unless one waits there already, as the mark says.

    `timeout` is what it may take, in seconds, where that is longer than other jobs may. (A worker that is
    given None for it dies of that.)
    """
    with _maybe_away():
        if not caches["q2"].add(mark, True, timeout=60):
            return
        longer = {} if timeout is None else {"timeout": timeout}
        try:
            async_task(job, group=group, **longer)
        except AWAY:
            caches["q2"].delete(mark)
            raise


def begin(mark: str) -> None:
    """The job that the mark stands for begins: whatever changes from here on needs another."""
    with _maybe_away():
        caches["q2"].delete(mark)

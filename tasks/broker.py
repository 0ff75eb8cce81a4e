"""What all processes share besides the database: a few marks, and the queue of background jobs.

The broker may be away. Rows decide what is to be done, so this costs only time: the next turn of the loop
finds whatever could not be queued. It is logged once when the broker goes away, and once when it comes back.
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
if settings.REDIS_URL:  # imported only if needed: the package loads slowly
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
    """Whether the broker was away when this process last used it."""
    return _known["is_away"]


def waiting_jobs() -> int:
    """Return how many jobs in the queue have not begun; 0 if the broker is away."""
    with _maybe_away():
        return int(get_broker().queue_size())
    return 0


def ask_once(mark: str, job: str, *, group: str, timeout: float | None = None) -> None:
    """Put the job into the queue, unless its mark says that one is waiting there already.

    `timeout` is how many seconds the job may take, if that is longer than other jobs may. (It must not be
    passed on as None: the worker would die of it.)
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
    """Remove the mark as the job begins, so that any change from here on queues another job."""
    with _maybe_away():
        caches["q2"].delete(mark)

"""The time by which everything rests: that of the database, because the clocks of hosts differ."""

import time
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from django.utils import timezone

AHEAD_MIN = timedelta(seconds=2)  # of which less is how long the question takes


def database_time(of: Any = connection) -> datetime:
    """Return the time by the database's clock, by which everything rests: the clocks of hosts differ."""
    if of.vendor == "postgresql":
        text = "SELECT statement_timestamp()"
    else:
        text = "SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')"
    with of.cursor() as cursor:
        cursor.execute(text)
        (found,) = cursor.fetchone()
    return datetime.fromisoformat(found) if isinstance(found, str) else found


@receiver(connection_created)
def compare_clocks(connection: Any, **kwargs: Any) -> None:
    """Note how far the database's clock is ahead of ours, as each connection to a server begins.

    The clock of a machine is also set while it runs, and once it goes on after a pause.
    """
    connection.clock_ahead, connection.booted_at = timedelta(), None
    if connection.vendor == "postgresql":
        now = timezone.now()
        ahead = database_time(connection) - now
        connection.clock_ahead = ahead if abs(ahead) >= AHEAD_MIN else timedelta()
        connection.booted_at = _booted_at(now)


def estimated_time() -> datetime:
    """Return the time by the database's clock as far as it was known when this connection began.

    Unless our clock has been set since, it asks nothing, so it is for pages and for limits of minutes. What
    the loop compares with Now() needs `database_time()`.
    """
    now = timezone.now()
    booted_at = getattr(connection, "booted_at", None)
    if booted_at is not None and abs(_booted_at(now) - booted_at) >= AHEAD_MIN:
        compare_clocks(connection)
    return now + getattr(connection, "clock_ahead", timedelta())


def _booted_at(now: datetime) -> datetime:
    """Return when this machine booted by its present clock, which says otherwise once somebody has set it."""
    return now - timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))

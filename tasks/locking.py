"""Locking rows: the one way to do it. docs/architecture.md names the order, which holds everywhere.

And what the database breaks off for the sake of others, or cannot do at the moment.
"""

import logging
import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection
from django.db.models import Manager, Model, QuerySet

log = logging.getLogger(__name__)

Row = TypeVar("Row", bound=Model)
Given = ParamSpec("Given")
Made = TypeVar("Made")

BROKEN_OFF = frozenset({"40001", "40P01"})  # serialization failure, deadlock
# Locks not free in time, connections, resources, shut down, the machine; by PostgreSQL's classes of errors.
PASSING = ("40", "55P03", "08", "53", "57P", "58")
PASSING_SQLITE = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
    }
)  # fmt: skip


def locked(rows: QuerySet[Row] | Manager[Row]) -> QuerySet[Row]:
    """These rows, and nothing that is joined to them, held until the transaction ends.

    Held against other writers only. A row that merely points at one of these, such as an event of a
    project, wants its key, which stays free; with the key locked as well two transactions would wait for
    each other.
    """
    return rows.select_for_update(no_key=True, of=("self",))


def repeated(work: Callable[Given, Made]) -> Callable[Given, Made]:
    """Do one whole transaction, and once more where the database broke it off for another one.

    Inside a transaction of the caller only the caller can begin anew.
    """

    @wraps(work)
    def twice(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        is_whole = not connection.in_atomic_block
        try:
            return work(*args, **kwargs)
        except OperationalError as error:
            if not is_whole or getattr(error.__cause__, "sqlstate", None) not in BROKEN_OFF:
                raise
            log.info("%s begins anew: %s", work.__qualname__, str(error).partition("\n")[0])
        return work(*args, **kwargs)

    return twice


def is_passing(error: BaseException) -> bool:
    """Whether the database could not do it at this moment: the same may well work a little later."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in PASSING_SQLITE
    state = getattr(cause, "sqlstate", None)  # none where there is no connection
    return state is None or state.startswith(PASSING)

"""Locking rows: the one way to do it. docs/architecture.md names the order, which holds everywhere.

And what the database breaks off for the sake of others, or cannot do at the moment.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.db.models import Manager, Model, QuerySet

log = logging.getLogger(__name__)

Row = TypeVar("Row", bound=Model)
Given = ParamSpec("Given")
Made = TypeVar("Made")

BROKEN_OFF = frozenset({"40001", "40P01"})  # serialization failure, deadlock
# Locks not free in time, connections, resources, shut down, the machine; by PostgreSQL's classes of errors.
REASONS = {
    "40": "others were writing the same rows", "55P03": "others are writing", "25006": "it takes no writes",
    "53100": "its disk is full", "53200": "it is out of memory", "53300": "it has too many connections",
    "53": "it lacks resources", "57P": "it is being restarted", "58": "its machine is in trouble",
    "08": "it cannot be reached",
}  # fmt: skip
PASSING = tuple(REASONS)
REASONS_SQLITE = {
    sqlite3.SQLITE_BUSY: "others are writing", sqlite3.SQLITE_LOCKED: "others are writing",
    sqlite3.SQLITE_FULL: "its disk is full", sqlite3.SQLITE_IOERR: "its disk is in trouble",
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened", sqlite3.SQLITE_READONLY: "it takes no writes",
}  # fmt: skip


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
            log.info("%s begins again: %s", work.__qualname__, str(error).partition("\n")[0])
        return work(*args, **kwargs)

    return twice


def attempted(write: Callable[[], object], patience: float = 0.2) -> bool:
    """Write what may as well be left out, and wait for others no longer than so many seconds.

    Whether it was written. What the database cannot do at the moment is no error.
    """
    try:
        with _waiting_at_most(patience), transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = {patience * 1000:.0f}")
            write()
    except (DatabaseError, InterfaceError) as error:
        if not is_passing(error):
            raise
        log.info("Left out: %s", str(error).partition("\n")[0])
        return False
    return True


@contextmanager
def _waiting_at_most(seconds: float) -> Iterator[None]:
    """On SQLite the wait is the connection's; a transaction of the caller's has waited already."""
    connection.ensure_connection()
    usual = getattr(connection, "patience", None)
    if usual is None:
        yield
        return
    connection.patience = seconds
    try:
        yield
    finally:
        connection.patience = usual


def why_not(error: BaseException) -> str:
    """Why the database cannot do it at the moment, as a half-sentence."""
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return REASONS_SQLITE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF, "it cannot be reached")
    state = getattr(cause, "sqlstate", None) or ""
    return next((why for begins, why in REASONS.items() if state.startswith(begins)), "it cannot be reached")


def is_passing(error: BaseException) -> bool:
    """Whether the database could not do it at this moment: the same may well work a little later."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in REASONS_SQLITE
    state = getattr(cause, "sqlstate", None)
    if state is None:  # there is no connection
        return isinstance(error, OperationalError | InterfaceError)
    return str(state).startswith(PASSING)

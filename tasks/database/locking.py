"""Locking rows, which is done here and nowhere else, and telling passing trouble of the database from errors.

docs/architecture.md names the order of locks, which holds everywhere.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models import Manager, Model, QuerySet

log = logging.getLogger(__name__)

Row = TypeVar("Row", bound=Model)
Given = ParamSpec("Given")
Made = TypeVar("Made")

PATIENCE = 0.2  # seconds that a write which may be left out waits for others
BROKEN_OFF = frozenset({"40001", "40P01"})  # serialization failure, deadlock
# By PostgreSQL's error codes and classes: conflicts, lack of resources, shutdown, machine, connection.
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
FOREIGN_KEY = "23503"  # a row refers to one that is not there
DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def locked(rows: QuerySet[Row] | Manager[Row]) -> QuerySet[Row]:
    """Return these rows locked until the transaction ends, without locking the rows that are joined to them.

    They are locked against other writers only, and their keys stay free. A row that merely refers to one of
    them, such as an event of a project, needs only its key; if the key were locked too, two transactions
    would wait for each other.
    """
    return rows.select_for_update(no_key=True, of=("self",))


def repeated(work: Callable[Given, Made]) -> Callable[Given, Made]:
    """Decorate a function that is one whole transaction, to repeat it once if the database aborted it.

    The database aborts one of two transactions that stand in each other's way. Inside a transaction of the
    caller's, nothing is repeated, because only the caller can begin again.
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


def attempted(write: Callable[[], object]) -> bool:
    """Write something that may be left out, waiting at most PATIENCE seconds for other writers.

    Returns whether it was written. An error that will pass, such as a busy database, is logged and not
    raised.
    """
    try:
        with _waiting_at_most(PATIENCE), transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = {PATIENCE * 1000:.0f}")
            write()
    except (DatabaseError, InterfaceError) as error:
        if not is_passing(error):
            raise
        log.info("Left out: %s", str(error).partition("\n")[0])
        return False
    return True


@contextmanager
def _waiting_at_most(seconds: float) -> Iterator[None]:
    """Limit how long the connection waits; on PostgreSQL this does nothing.

    SQLite waits as the connection is set to, when a transaction begins; a transaction of the caller's has
    waited already.
    """
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
    """Return as a half-sentence why the database cannot do its work at the moment."""
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return REASONS_SQLITE.get(_sqlite_code(cause), "it cannot be reached")
    state = getattr(cause, "sqlstate", None) or ""
    return next((why for begins, why in REASONS.items() if state.startswith(begins)), "it cannot be reached")


def is_passing(error: BaseException) -> bool:
    """Whether the error is passing trouble of the database: the same work may succeed a little later."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return _sqlite_code(cause) in REASONS_SQLITE
    state = getattr(cause, "sqlstate", None)
    if state is None:  # there is no connection
        return isinstance(error, OperationalError | InterfaceError)
    return str(state).startswith(PASSING)


def is_gone(error: BaseException) -> bool:
    """Whether a row is missing that the work reads or refers to, as those of a removed project are."""
    if isinstance(error, IntegrityError):
        state = getattr(error.__cause__, "sqlstate", None)  # SQLite has none
        return state == FOREIGN_KEY or (state is None and "FOREIGN KEY" in str(error))
    return isinstance(error, ObjectDoesNotExist)


def is_damaged(error: BaseException) -> bool:
    """Whether the file of the database is damaged, or is none."""
    return isinstance(error.__cause__, sqlite3.Error) and _sqlite_code(error.__cause__) in DAMAGE


def _sqlite_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF

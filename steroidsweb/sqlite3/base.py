"""Django's backend for SQLite, except for how a connection waits for another one's write.

While a connection waits inside SQLite, it holds a lock of its own. Python's garbage collector may need
exactly that lock, in whichever thread it happens to run, to close a cursor that was left behind. If that
thread is the one that writes, the two would wait for each other until their time is up, and all other writers
with them. So no wait inside SQLite is longer than a moment, and the rest of the waiting is done in Python.
"""

import random
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.backends.sqlite3.features import DatabaseFeatures

MOMENT = 0.02  # seconds for which SQLite itself waits
PAUSE = 0.005
TEXTS = 1024  # of queries that are remembered in SQLite's own notation
TEXT_MAX = 20_000  # characters of one of them; a statement for many rows is not likely to be repeated


class Features(DatabaseFeatures):
    """Features that allow more parameters per statement, which SQLite does since 3.32."""

    max_query_params = 32_766 if base.Database.sqlite_version_info >= (3, 32) else 999


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection. `patience` is how many seconds it waits for others before it reports a lock."""

    features_class = Features
    patience = 5.0

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        made = super().get_new_connection(conn_params)  # which may have to wait until the log is recovered
        self.patience = float(conn_params.get("timeout", self.patience))
        made.execute(f"PRAGMA busy_timeout = {MOMENT * 1000:.0f}")
        return made

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = self.connection.cursor(factory=Cursor)
        cursor.wrapper = self
        return cursor


class Cursor(base.SQLiteCursorWrapper):
    """A cursor that waits until others have written, unless it holds a transaction they could wait for."""

    wrapper: DatabaseWrapper

    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        if param_names is None and len(query) <= TEXT_MAX:
            return _with_question_marks(query)
        return str(super().convert_query(query, param_names=param_names))

    def execute(self, query: str, params: Any = None) -> Any:
        return self._patiently(super().execute, query, params)

    def executemany(self, query: str, param_list: Any) -> Any:
        return self._patiently(super().executemany, query, list(param_list))

    def _patiently(self, work: Callable[..., Any], *given: Any) -> Any:
        until = None
        while True:
            try:
                return work(*given)
            except base.Database.OperationalError as error:
                is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == base.Database.SQLITE_BUSY
                until = until or time.monotonic() + self.wrapper.patience
                if not is_busy or self.connection.in_transaction or time.monotonic() >= until:
                    raise
            time.sleep(PAUSE * (0.5 + random.random()))  # noqa: S311 - so that two do not keep meeting


@lru_cache(maxsize=TEXTS)  # the large ones of the loop take longer to convert than to run
def _with_question_marks(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")

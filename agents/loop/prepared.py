"""Questions that are asked every second: their SQL is built once, and holds its values itself.

Building a large query takes several times as long as running it. And a partial index serves only where the
database reads the values of its condition in the query's text.
"""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.db.models import QuerySet


class Prepared:
    """A query whose values never change; for the present moment it has to say Now()."""

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._texts: dict[str, str] = {}

    def rows(self) -> list[tuple[Any, ...]]:
        """What it finds, as the database gives it."""
        text = self._texts.get(connection.vendor) or self._texts.setdefault(connection.vendor, self._text())
        with connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall()

    def _text(self) -> str:
        text, values = self._build().query.sql_with_params()
        return text % tuple(map(_literal, values))


def _literal(value: Any) -> str:
    """The value as it stands in SQL. Raises TypeError for one that is no constant of the program."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(int(value))
        case str():
            return "'" + str(value).replace("'", "''") + "'"
    raise TypeError(f"{value!r} is no constant")

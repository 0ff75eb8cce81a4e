"""Queries that are asked again and again, whose SQL is built once and contains its constants as literals.

Building a query takes several times as long as running it. Besides, the database uses a partial index only if
it finds the values of the index's condition in the text of the query.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache, cached_property
from inspect import signature
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Field, Model, QuerySet, Value, prefetch_related_objects
from django.db.models.sql import InsertQuery, UpdateQuery

GIVEN = "\0"  # marks in the text where a value is given with each call


@dataclass(frozen=True, slots=True)
class _Given:
    """A placeholder in a query for the value with that number."""

    number: int


@dataclass(frozen=True, slots=True)
class _Built:
    """A query's text, and what turns its result into rows."""

    text: str
    given: tuple[int, ...]  # the number of the value at each placeholder
    compiler: Any
    rows: QuerySet[Any, Any]


@dataclass(frozen=True, slots=True)
class _BuiltUpdate:
    """An update's text, and the fields that it writes."""

    text: str
    given: tuple[int, ...]
    fields: "tuple[Field[Any, Any], ...]"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A stand-in for a query set, offering what Django's iterables ask of one, with SQL built in advance."""

    rows: QuerySet[Any, Any]
    compiler: Any
    db: str
    _known_related_objects: dict[Any, Any] = field(default_factory=dict)

    @property
    def query(self) -> "_Asked":
        return self

    def get_compiler(self, using: str) -> Any:
        return self.compiler


class Prepared:
    """A query whose SQL is built once, and in which only the values that `build` takes vary.

    `build` gets an expression for each value; if it takes any number of them, `takes` says how many. Its
    query set yields model instances or tuples. For the current time it must use Now(), because a fixed time
    would become part of the SQL.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], takes: int | None = None) -> None:
        self._build = build
        self._takes = len(signature(build).parameters) if takes is None else takes

    def rows(self, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows for these values as the database returns them."""
        with _here().cursor() as cursor:
            cursor.execute(*_asked(self._built, values))
            return cursor.fetchall()

    def found(self, *values: Any) -> list[Any]:
        """Return what the query set yields for these values."""
        built = self._built
        compiler = copy(built.compiler)
        compiler.connection = _here()
        compiler.as_sql = lambda *_, **__: _asked(built, values)
        iterable = built.rows._iterable_class
        found = list(iterable(_Asked(built.rows, compiler, DEFAULT_DB_ALIAS)))
        if built.rows._prefetch_related_lookups:
            prefetch_related_objects(found, *built.rows._prefetch_related_lookups)
        return found

    def first(self, *values: Any) -> Any:
        """Return the first item that the query set yields for these values, or None if there is none."""
        return next(iter(self.found(*values)), None)

    @cached_property
    def _built(self) -> _Built:
        rows = self._build(*(Value(_Given(number)) for number in range(self._takes)))
        compiler: Any = rows.query.get_compiler(connection=connection)
        text, given = _text_of(compiler)
        columns = [column for column, _, _ in compiler.select]
        converters, is_composite = compiler.get_converters(columns), compiler.has_composite_fields(columns)
        compiler.get_converters = lambda _: converters  # else both are found out anew for each result
        compiler.has_composite_fields = lambda _: is_composite
        return _Built(text, given, compiler, rows)


class PreparedForKeys:
    """A query for the rows of some keys, whose SQL is built once for one key and once for up to `most`.

    `build` gets the keys, and an expression for each further value that `found` takes. The key 0, which no
    row has, stands where there are fewer than `most`; for more keys, the SQL is built each time.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], most: int) -> None:
        self._build, self._most = build, most
        others = len(signature(build).parameters) - 1
        self._one, self._many = (
            Prepared(lambda *values: build(values[others:], *values[:others]), others + keys)
            for keys in (1, most)
        )

    def found(self, keys: Iterable[int], *values: Any) -> list[Any]:
        """Return what the query finds for these keys and values; without a key, nothing is asked."""
        keys = tuple(keys)
        if not keys:
            return []
        if len(keys) == 1:
            return self._one.found(*values, *keys)
        if len(keys) > self._most:
            return list(self._build(keys, *values))
        return self._many.found(*values, *keys, *[0] * (self._most - len(keys)))


@cache  # there are only so many models
def _by_key(model: type[Model]) -> Prepared:
    return Prepared(lambda pk: model._base_manager.filter(pk=pk))


def refresh(row: Model) -> None:
    """Read the row's columns anew, as `refresh_from_db()` does; rows that it still refers to stay loaded.

    Raises ObjectDoesNotExist if the row is gone.
    """
    fresh = _by_key(type(row)).first(row.pk)
    if fresh is None:
        raise ObjectDoesNotExist(f"{row!r} is gone.")
    for column in row._meta.concrete_fields:
        setattr(row, column.attname, getattr(fresh, column.attname))


class PreparedUpdate:
    """An update whose SQL is built once; only the values that select the rows and the written values vary.

    `rows` gets an expression for each value that it takes. `changed` names the fields that are written with a
    new value each time, and `always` holds what is written the same way each time.
    """

    def __init__(self, rows: Callable[..., QuerySet[Any, Any]], *changed: str, **always: Any) -> None:
        self._rows, self._changed, self._always = rows, changed, always
        self._takes = len(signature(rows).parameters)

    def write(self, *values: Any, **changes: Any) -> int:
        """Write the changes to the rows that these values select, and return how many rows that were."""
        built = self._built
        named = zip(self._changed, built.fields, strict=True)
        here = _here()
        written = [_as_kept(changes[name], field, here) for name, field in named]
        with here.cursor() as cursor:
            cursor.execute(*_asked(built, (*values, *written)))
            return int(cursor.rowcount)

    @cached_property
    def _built(self) -> _BuiltUpdate:
        rows = self._rows(*(Value(_Given(number)) for number in range(self._takes)))
        written = {name: Value(_Given(number)) for number, name in enumerate(self._changed, self._takes)}
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(self._always | written)
        fields = tuple(rows.model._meta.get_field(name) for name in self._changed)
        text, given = _text_of(query.get_compiler(connection=connection))
        return _BuiltUpdate(text, given, fields)


class PreparedInsert:
    """An INSERT of one row, written as `save(force_insert=True)` writes it but without sending signals."""

    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self._fields = [field for field in model._meta.concrete_fields if not field.primary_key]
        self._text = ""

    def insert(self, row: Model) -> None:
        """Write the row and set its primary key. Raises IntegrityError."""
        here = _here()
        values = [field.get_db_prep_save(field.pre_save(row, add=True), here) for field in self._fields]
        with here.cursor() as cursor:
            self._text = self._text or self._built(row)
            cursor.execute(self._text, values)
            row.pk = cursor.fetchone()[0]
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS

    def _built(self, row: Model) -> str:
        query = InsertQuery(self._model)
        query.insert_values(self._fields, [row])
        compiler: Any = query.get_compiler(connection=connection)
        compiler.returning_fields = [self._model._meta.pk]
        [(text, _)] = compiler.as_sql()
        return str(text)


def _text_of(compiler: Any) -> tuple[str, tuple[int, ...]]:
    """Return the query's text, and the number of the value at each of its placeholders."""
    text, values = compiler.as_sql()
    given = tuple(value.number for value in values if isinstance(value, _Given))
    return (text % tuple(map(_literal, values))).replace("%", "%%").replace(GIVEN, "%s"), given


def _asked(built: _Built | _BuiltUpdate, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the text, and the value at each of its placeholders."""
    return built.text, [_adapted(values[number]) for number in built.given]


def _here() -> Any:
    """Return this thread's connection, which `connection` would look up anew for each of its attributes."""
    return connections[DEFAULT_DB_ALIAS]


def _as_kept(value: Any, field: "Field[Any, Any]", here: Any) -> Any:
    """Return the value as the field stores it; for a related row, its key."""
    return field.get_db_prep_save(value.pk if isinstance(value, Model) else value, here)


def _adapted(value: Any) -> Any:
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return connection.ops.adapt_datefield_value(value) if isinstance(value, date) else value


def _literal(value: Any) -> str:
    """Return the value as an SQL literal. Raises TypeError for a type that is not allowed as a constant."""
    match value:
        case _Given():
            return GIVEN
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(int(value))
        case str():
            return "'" + str(value).replace("'", "''") + "'"
    raise TypeError(f"{value!r} is no constant")

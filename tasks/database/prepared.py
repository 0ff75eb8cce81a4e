"""Queries that are asked again and again, whose SQL is built once and contains its constants as literals.

Building a query takes several times as long as running it. Besides, the database uses a partial index only if
it finds the values of the index's condition in the text of the query.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, cached_property
from inspect import signature
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import CharField, Field, Model, QuerySet, TextField, Value, prefetch_related_objects
from django.db.models.base import ModelState
from django.db.models.query import FlatValuesListIterable, ModelIterable, ValuesListIterable
from django.db.models.sql import InsertQuery, UpdateQuery

AS_THEY_ARE = frozenset({CharField, TextField})  # fields that store texts without a change
GIVEN = "\0"  # marks in the text where a value is given with each call


@dataclass(frozen=True, slots=True)
class _Given:
    """A placeholder in a query for the value with that number."""

    number: int


@dataclass(frozen=True, slots=True)
class _Built:
    """A query's text, and what turns its result into what the query set yields."""

    text: str
    given: tuple[int, ...]  # the number of the value at each placeholder
    converters: list[tuple[int, Any, Any]]  # place in a row, functions, and the expression at this place
    made: Callable[[list[Any]], Any]
    lookups: tuple[Any, ...]  # what is loaded for all of them afterwards


@dataclass(frozen=True, slots=True)
class _BuiltUpdate:
    """An update's text, and the fields that it writes."""

    text: str
    given: tuple[int, ...]
    fields: "tuple[Field[Any, Any], ...]"


class _Instances:
    """Makes model instances of rows, as the query set's own iterable does, with what is selected with them.

    Columns become attributes directly, unless the model has a constructor of its own: Django's sets them one
    by one.
    """

    def __init__(self, info: dict[str, Any], select: Sequence[Any], annotations: dict[str, int]) -> None:
        self._model, self._annotations = info["model"], annotations.items()
        places = info["select_fields"]
        self._columns = slice(places[0], places[-1] + 1)
        self._names = [column.target.attname for column, _, _ in select[self._columns]]
        self._key = places[0] + self._names.index(self._model._meta.pk.attname)
        self._is_plain = self._model.__init__ is Model.__init__ and not self._model._meta.parents
        self._related = [
            (_Instances(each, select, {}), each["local_setter"], each["remote_setter"])
            for each in info.get("related_klass_infos", [])
        ]

    def __call__(self, row: list[Any]) -> Any:
        """Return the instance that the row holds, or None if its key is NULL."""
        if row[self._key] is None:
            return None
        made = self._new(row[self._columns])
        for related, set_here, set_there in self._related:
            other = related(row)
            set_here(made, other)
            if other is not None:
                set_there(other, made)
        for name, place in self._annotations:
            setattr(made, name, row[place])
        return made

    def _new(self, values: list[Any]) -> Any:
        if not self._is_plain:
            return self._model.from_db(DEFAULT_DB_ALIAS, self._names, values)
        made = self._model.__new__(self._model)
        made.__dict__.update(zip(self._names, values, strict=True), _state=ModelState())
        made._state.adding, made._state.db = False, DEFAULT_DB_ALIAS
        return made


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
        rows = self.rows(*values)
        if not rows:
            return []
        built, here = self._built, _here()
        found = []
        for each in rows:
            row = list(each)
            for place, functions, expression in built.converters:
                for convert in functions:
                    row[place] = convert(row[place], expression, here)
            found.append(built.made(row))
        if built.lookups:
            prefetch_related_objects(found, *built.lookups)
        return found

    def first(self, *values: Any) -> Any:
        """Return the first item that the query set yields for these values, or None if there is none."""
        return next(iter(self.found(*values)), None)

    @cached_property
    def _built(self) -> _Built:
        rows = self._build(*(Value(_Given(number)) for number in range(self._takes)))
        compiler: Any = rows.query.get_compiler(connection=connection)
        text, given = _text_of(compiler)
        converters = compiler.get_converters([column for column, _, _ in compiler.select])
        return _Built(
            text, given, [(place, *each) for place, each in converters.items()], _maker(rows, compiler),
            rows._prefetch_related_lookups,
        )  # fmt: skip


def _maker(rows: QuerySet[Any, Any], compiler: Any) -> Callable[[list[Any]], Any]:
    """Return what makes an item of the query set of a row. Raises TypeError for items of other kinds."""
    kind = rows._iterable_class
    if issubclass(kind, ModelIterable):
        return _Instances(compiler.klass_info, compiler.select, compiler.annotation_col_map)
    makers: dict[Any, Callable[[list[Any]], Any]] = {
        ValuesListIterable: tuple,
        FlatValuesListIterable: itemgetter(0),
    }
    if kind not in makers:
        raise TypeError(f"A prepared query yields no items of {kind.__name__}.")
    return makers[kind]


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
        self._stamped = [field for field in self._fields if type(field).pre_save is not Field.pre_save]
        self._read = attrgetter(*(field.attname for field in self._fields))
        self._text = ""

    def insert(self, row: Model) -> None:
        """Write the row and set its primary key. Raises IntegrityError."""
        here = _here()
        for field in self._stamped:
            field.pre_save(row, add=True)  # which sets, for example, when it was created
        values = list(map(_as_kept, self._read(row), self._fields, repeat(here)))
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
    if value is None or (type(value) is str and type(field) in AS_THEY_ARE):
        return value
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
        case timedelta():  # PostgreSQL only: Django gives SQLite microseconds
            return f"INTERVAL '{value.total_seconds():f} seconds'"
    raise TypeError(f"{value!r} is no constant")

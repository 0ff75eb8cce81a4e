"""One test over a table of cases: it goes through all of them and names every one that failed."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection, transaction
from django.db.models import Model

Test = Callable[..., None]
Case = list[tuple[str, dict[str, Any]]]  # of each table the row's name, if it was given one, and the row

SHOWN = 80  # characters of each value of a case that failed


def for_each(
    names: str | tuple[str, ...],
    table: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], str] | None = None,
) -> Callable[[Test], Test]:
    """Call a test with every row of a table: what `pytest.mark.parametrize` does, but as one test.

    Where several stand above one another, every combination of their rows is a case. Each begins with the
    same rows in the database, as fixtures made them, and with nothing in the cache. All share whatever else
    fixtures made: where a case changes that, or commits, the test is to be parametrised.
    """
    if isinstance(names, str):
        names, table = (names,), ((row,) for row in table)
    rows = [tuple(row) for row in table]
    assert rows, f"no case of {names}"
    if ids is None:
        ids = [""] * len(rows)
    elif callable(ids):
        ids = [", ".join(map(str, map(ids, row))) for row in rows]
    cases: list[Case] = [
        [(str(name), dict(zip(names, row, strict=True)))] for name, row in zip(ids, rows, strict=True)
    ]

    def decorated(test: Test) -> Test:
        alone, others = getattr(test, "cases", (test, [[]]))
        return one_test(alone, [case + other for case in cases for other in others])

    return decorated


def one_test(alone: Test, cases: list[Case]) -> Test:
    @functools.wraps(alone, updated=())
    def test(**fixtures: Any) -> None:
        failed: dict[str, BaseException] = {}
        for number, case in enumerate(cases, start=1):
            try:
                with rows_put_back():
                    alone(**as_made(fixtures), **values_of(case))
            except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 (named below)
                name = f"case {number}: {', '.join(name or shown(row) for name, row in case)}"
                failure.add_note(f"This was {name}")
                failed[name] = failure
        if failed:
            listed = "".join(f"\n    {name}" for name in failed)
            title = f"{len(failed)} of {len(cases)} cases failed:{listed}\n"
            raise BaseExceptionGroup(title, list(failed.values()))

    given = values_of(cases[0])
    signature = inspect.signature(alone)
    fixtures = [parameter for name, parameter in signature.parameters.items() if name not in given]
    test.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
    test.pytestmark = getattr(alone, "pytestmark", [])  # type: ignore[attr-defined]
    test.cases = alone, cases  # type: ignore[attr-defined]
    return test


def as_made(fixtures: dict[str, Any]) -> dict[str, Any]:
    """The fixtures; the rows among them are copies, in which a case changes what it likes."""
    rows = {name: value for name, value in fixtures.items() if isinstance(value, Model)}
    return fixtures | deepcopy(rows)


def values_of(case: Case) -> dict[str, Any]:
    return {name: value for _, row in case for name, value in row.items()}


def shown(row: dict[str, Any]) -> str:
    texts = {name: repr(value) for name, value in row.items()}
    return ", ".join(
        f"{name}={text if len(text) <= SHOWN else text[:SHOWN] + '…'}" for name, text in texts.items()
    )


@contextmanager
def rows_put_back() -> Iterator[None]:
    """Where a test has a database, whatever is written or remembered inside is gone at the end."""
    if not connection.in_atomic_block:
        yield
        return
    try:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)
    finally:
        cache.clear()

"""One test over a table of cases: it goes through all of them and names every one that failed."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection, transaction

Test = Callable[..., None]
Case = tuple[list[str], dict[str, Any]]  # its names, if it was given any, and what the test is called with

SHOWN = 80  # characters of each value of a case that failed


def for_each(
    names: str | tuple[str, ...],
    table: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], str] | None = None,
) -> Callable[[Test], Test]:
    """Call a test with every row of a table: what `pytest.mark.parametrize` does, but as one test.

    Where several stand above one another, every combination of their rows is a case. All cases share what
    fixtures made, and each begins with the same rows in the database and with nothing in the cache. Where a
    case changes anything else that another would see, or commits, the test is to be parametrised.
    """
    if isinstance(names, str):
        names, table = (names,), ((row,) for row in table)
    rows = [tuple(row) for row in table]
    assert rows, f"no case of {names}"
    if ids is None:
        ids = [""] * len(rows)
    elif callable(ids):
        ids = [", ".join(map(str, map(ids, row))) for row in rows]
    cases = [
        ([str(name)] if name else [], dict(zip(names, row, strict=True)))
        for name, row in zip(ids, rows, strict=True)
    ]

    def decorated(test: Test) -> Test:
        alone, others = getattr(test, "cases", (test, [([], {})]))
        return one_test(alone, [(a + b, x | y) for a, x in cases for b, y in others])

    return decorated


def one_test(alone: Test, cases: list[Case]) -> Test:
    @functools.wraps(alone, updated=())
    def test(**fixtures: Any) -> None:
        failed: dict[str, BaseException] = {}
        for number, (names, values) in enumerate(cases, start=1):
            try:
                with rows_put_back():
                    alone(**fixtures, **values)
            except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 (named below)
                case = ", ".join([f"case {number}", *names, *map(shown, values.items())])
                failure.add_note(f"This was {case}")
                failed[case] = failure
        if failed:
            listed = "".join(f"\n    {case}" for case in failed)
            title = f"{len(failed)} of {len(cases)} cases failed:{listed}\n"
            raise BaseExceptionGroup(title, list(failed.values()))

    signature = inspect.signature(alone)
    fixtures = [parameter for name, parameter in signature.parameters.items() if name not in cases[0][1]]
    test.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
    test.pytestmark = getattr(alone, "pytestmark", [])  # type: ignore[attr-defined]
    test.cases = alone, cases  # type: ignore[attr-defined]
    return test


def shown(item: tuple[str, Any]) -> str:
    name, value = item
    text = repr(value)
    return f"{name}={text if len(text) <= SHOWN else text[:SHOWN] + '…'}"


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

"""A test over a table goes through all of it, names what failed, and each case begins alike."""

import pytest
from django.core.cache import cache
from django.test import TransactionTestCase
from django_q.models import Schedule

from tasks.models import Project
from tests.cases import for_each
from tests.conftest import empty_tables
from tests.factories import create_project


def test_every_case_that_fails_is_named_and_all_the_others_are_tried_too() -> None:
    tried = []

    @for_each("word", ["a", "b", "c"], ids=["first", "second", "third"])
    @for_each(("number", "text"), [(1, "x"), (2, "y" * 500)])
    def test(number: int, text: str, word: str) -> None:
        tried.append((word, number, text[0]))
        if word == "b":
            pytest.fail("never b")
        assert number == 1

    with pytest.raises(BaseExceptionGroup) as failed:
        test()

    assert tried == [(word, number, "xy"[number - 1]) for word in "abc" for number in (1, 2)]
    first, *cases, _ = str(failed.value).splitlines()
    assert first == "4 of 6 cases failed:"
    assert [case.strip()[:35] for case in cases] == [
        "case 2: first, number=2, text='yyyy",
        "case 3: second, number=1, text='x'",
        "case 4: second, number=2, text='yyy",
        "case 6: third, number=2, text='yyyy",
    ]


def test_a_table_has_a_case() -> None:
    with pytest.raises(AssertionError, match="no case of"):
        for_each("word", [])


@for_each("time", range(3))
def test_each_case_begins_with_the_rows_as_fixtures_made_them_and_an_empty_cache(
    ledger: Project, time: int
) -> None:
    assert list(Project.objects.all()) == [ledger]
    assert (ledger.name, cache.get("seen")) == ("Ledger", None)
    create_project("another")
    ledger.name = "Changed in memory"
    cache.set("seen", time)


@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_numbers_that_begin_anew_leave_those_alone_that_migrations_have_given() -> None:
    empty_tables(TransactionTestCase())
    Schedule.objects.create(name="again", func="agents.jobs.tick")
    Schedule.objects.get(name="again").delete()

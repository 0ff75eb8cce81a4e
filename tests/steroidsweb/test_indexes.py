"""An index costs time with every row that is written, so it has to serve queries that no other one serves."""

import pytest
from django.apps import apps
from django.db import connection

OWN = {"tasks", "disputes", "agents", "steroidsweb"}
FOR_BEGINNINGS = "_like"  # what Django adds on PostgreSQL for searches of what a text begins with


@pytest.mark.django_db
def test_no_index_is_the_beginning_of_another() -> None:
    own = [
        model._meta for model in apps.get_models() if model._meta.app_label in OWN and not model._meta.proxy
    ]
    needless = []
    for table in own:
        partial = {
            each.name for each in (*table.indexes, *table.constraints) if getattr(each, "condition", None)
        }
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, table.db_table)
        columns = {
            name: each["columns"]
            for name, each in found.items()
            if (each["index"] or each["unique"]) and all(each["columns"])
            and not (name in partial or name.endswith(FOR_BEGINNINGS))
        }  # fmt: skip
        needless += [
            f"{name} of {table.db_table}, because of {other}"
            for name, mine in columns.items()
            for other, longer in columns.items()
            if mine and not found[name]["unique"] and other != name and longer[: len(mine)] == mine
        ]
    assert len(own) > 40
    assert not needless

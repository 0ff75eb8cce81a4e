"""What an address in the environment becomes."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from steroidsweb.env import GONE, database
from tasks.models import Task


def test_a_connection_whose_packets_vanish_has_an_end_on_both_sides() -> None:
    """As they ship, the locks of a host that lost power are held for two hours."""
    here: Any = database("postgres://ann:pw@db.example.org/steroids")["OPTIONS"]
    there = dict(word.split("=") for word in here["options"].split() if word != "-c")
    for side, prefix in ((here, ""), (there, "tcp_")):
        idle, interval, count = (int(side[f"{prefix}keepalives_{word}"]) for word in
                                 ("idle", "interval", "count"))  # fmt: skip
        assert idle + interval * count == GONE
        assert int(side["tcp_user_timeout"]) == GONE * 1000
    assert int(here["connect_timeout"]) < GONE


def test_what_the_address_says_comes_first() -> None:
    asked: Any = database("postgres://ann@/steroids?host=/run/pg&tcp_user_timeout=0&options=&sslmode=require")
    assert asked["HOST"] == "/run/pg"
    assert {name: asked["OPTIONS"][name] for name in ("tcp_user_timeout", "options", "sslmode")} == {
        "tcp_user_timeout": "0", "options": "", "sslmode": "require",
    }  # fmt: skip


def test_a_pooler_that_knows_no_prepared_statements_is_given_none() -> None:
    asked: Any = database("postgres://ann@/steroids?prepare_threshold=")["OPTIONS"]
    assert not {"prepare_threshold", "server_side_binding"} & set(asked)
    with pytest.raises(ImproperlyConfigured, match="prepare_threshold=often"):
        database("postgres://ann@/steroids?prepare_threshold=often")


@pytest.mark.django_db
def test_what_a_connection_asks_often_postgresql_plans_no_more() -> None:
    for number in range(6):
        assert not Task.objects.filter(number=number).exists()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement FROM pg_prepared_statements")
            assert any('"tasks_task"."number" = $' in statement for (statement,) in cursor.fetchall())

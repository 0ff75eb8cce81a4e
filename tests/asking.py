"""Who asks, how many queries it takes, and what came of it."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from disputes.models import Conflict
from tasks.database.prepared import Prepared
from tasks.models import Event, Task
from tests.factories import create_token


def as_user(client: Client, user: User) -> Client:
    """The same browser, signed in."""
    client.force_login(user)
    return client


def page(conflict: Conflict, what: str = "") -> str:
    """The address of the page of the conflict's dispute, or of what is below it."""
    return f"/queue/{conflict.dispute.ref}/{what}"


def client_with(secret: str) -> APIClient:
    """A caller of the REST API with this token; without one where it is empty."""
    client = APIClient()
    if secret:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def client_of(user: User) -> APIClient:
    """A script with the person's token."""
    return client_with(create_token(user, "script")[1])


def queries(call: Callable[[], Any]) -> int:
    """How many queries this takes."""
    with CaptureQueriesContext(connection) as captured:
        call()
    return len(captured)


# Tables that grow with the work: no page reads one through.
LARGE = {"tasks_task", "tasks_submission", "tasks_review", "tasks_event", "agents_run", "disputes_dispute"}


def by_index(call: Callable[[], Any], serving: set[str]) -> None:
    """No large table is read through for what this asks.

    PostgreSQL reads a table of a few rows through unless it is told not to. SQLite's plans know aliases
    instead of tables, so that the indexes are named that have to serve there.
    """
    asked: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, *rest: Any) -> Any:
        if sql.startswith("SELECT"):
            asked.append((sql, params))
        return execute(sql, params, *rest)

    with connection.execute_wrapper(note):
        call()
    is_sqlite, plan = connection.vendor == "sqlite", ""
    with connection.cursor() as cursor:
        if not is_sqlite:
            cursor.execute("SET LOCAL enable_seqscan = off")
        for sql, params in asked:
            cursor.execute(f"EXPLAIN {'QUERY PLAN ' if is_sqlite else ''}{sql}", params)
            plan += "".join(f"{row[-1]}\n" for row in cursor.fetchall())
    if is_sqlite:
        assert set(re.findall(r"INDEX (\w+)", plan)) >= serving, plan
    else:
        assert not set(re.findall(r"Seq Scan on (\w+)", plan)) & LARGE, plan


@cache
def _select(model: type[Model], without: str) -> str:
    columns = [
        field.column for field in model._meta.concrete_fields if not without or without not in field.name
    ]
    quote = connection.ops.quote_name
    names, key = ", ".join(map(quote, columns)), quote(model._meta.pk.column)
    return f"SELECT {names} FROM {quote(model._meta.db_table)} ORDER BY {key}"


def every_row(*labels: str, without: str = "") -> dict[str, list[Any]]:
    """All that the tables of these apps hold, by model, but the columns whose name has `without`.

    Asked in plain SQL, for it stands before and after each of hundreds of cases.
    """
    found = {}
    with connection.cursor() as cursor:
        for label in labels:
            for model in apps.get_app_config(label).get_models():
                if not model._meta.proxy:
                    cursor.execute(_select(model, without))
                    found[model.__name__] = cursor.fetchall()
    return found


def fresh(task: Task) -> Task:
    """The task as it is in the database now."""
    [found] = _again.found(task.pk)
    return found


_again = Prepared(lambda pk: Task.objects.select_related("project").filter(pk=pk).order_by())


def kinds(task: Task) -> list[str]:
    """What happened to the task, in order."""
    return list(Event.objects.filter(task=task).order_by("pk").values_list("kind", flat=True))

"""Events are append-only, by the database."""

import pytest
from django.db import DatabaseError, connection, transaction

from tasks.database.triggers import no_deletion
from tasks.events import SYSTEM
from tasks.models import Event
from tasks.models.event import record
from tests.factories import create_project

pytestmark = pytest.mark.django_db


def test_it_refuses_to_change_an_event() -> None:
    event = record(create_project(), "created", actor=SYSTEM)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Event.objects.filter(pk=event.pk).update(kind="forged")
    event.refresh_from_db()
    assert event.kind == "created"


def test_it_refuses_to_delete_an_event() -> None:
    event = record(create_project(), "created")
    if connection.vendor == "sqlite":  # see conftest: taken away for the tests that empty every table
        no_deletion("tasks_event").install(connection)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        event.delete()
    assert Event.objects.filter(pk=event.pk).exists()

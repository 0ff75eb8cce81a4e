"""The triggers that a model lists are those of the database, after any migration."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from tasks.database.triggers import no_deletion, remove_triggers

DELETION = no_deletion("tasks_event")
LISTED = {
    "tasks_event_no_update", DELETION.name, "disputes_decision_no_change", "disputes_decision_policy",
    "tasks_seal_no_update", "tasks_seal_no_delete", "steroidsweb_auditentry_no_update",
    "steroidsweb_auditentry_no_delete", "disputes_decision_cites_no_update",
    "disputes_decision_cites_no_delete",
}  # fmt: skip
PRESENT = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
}


pytestmark = pytest.mark.usefixtures("as_migrated")


def present() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(PRESENT[connection.vendor])
        return {name for (name,) in cursor.fetchall()}


def test_what_a_table_lost_when_it_was_rebuilt_is_back_after_migrate() -> None:
    with connection.cursor() as cursor:
        on_table = " ON disputes_decision" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER disputes_decision_policy{on_table}")
    call_command("migrate", verbosity=0)

    assert present() == LISTED


def test_none_stands_in_the_way_of_migrations_and_without_any_all_stay() -> None:
    for app in ("tasks", "disputes", "steroidsweb"):
        remove_triggers(apps.get_app_config(app), "default", plan=[])
    without_migrations = present()
    for app in ("tasks", "disputes", "steroidsweb"):
        remove_triggers(apps.get_app_config(app), "default", plan=[("a migration", False)])

    assert (without_migrations, present()) == (LISTED, set())
    call_command("migrate", verbosity=0)
    assert present() == LISTED

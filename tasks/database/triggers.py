"""Database triggers that refuse changes to, and deletions of, rows that are written once and for all.

A model lists its own as `triggers`. They are removed before migrations and installed again after each
`migrate`, because SQLite drops the triggers of a table that a migration rebuilds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.apps import AppConfig
from django.db import connections, router

SQLITE = """
CREATE TRIGGER {name} BEFORE {verb} ON {table} WHEN {condition}
BEGIN SELECT RAISE(ABORT, '{message}'); END
"""
# PostgreSQL does not let WHEN read other tables, so the condition is part of the function.
POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION steroids_{name}() RETURNS trigger AS $$
BEGIN
    IF {condition} THEN
        RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$ LANGUAGE plpgsql
"""
POSTGRES = "CREATE TRIGGER {name} BEFORE {verb} ON {table} FOR EACH ROW EXECUTE FUNCTION steroids_{name}()"


@dataclass(frozen=True)
class Trigger:
    """A trigger that refuses `verb` on `table` with `message` if `condition`, on OLD and NEW, is true."""

    name: str
    table: str
    verb: str
    message: str
    condition: str = "1 = 1"

    def install(self, connection: Any) -> None:
        """Install the trigger on SQLite or PostgreSQL, replacing an older definition."""
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(self._sql(POSTGRES_FUNCTION, "IS DISTINCT FROM"))
                cursor.execute(
                    "SELECT 1 FROM pg_trigger WHERE tgname = %s AND tgrelid = %s::regclass",
                    [self.name, self.table],
                )
                if cursor.fetchone() is None:  # creating one locks the table
                    cursor.execute(self._sql(POSTGRES, ""))
            else:
                self.remove(connection)
                cursor.execute(self._sql(SQLITE, "IS NOT"))

    def remove(self, connection: Any) -> None:
        """Drop the trigger if it exists."""
        on_table = f" ON {self.table}" if connection.vendor == "postgresql" else ""
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER IF EXISTS {self.name}{on_table}")

    def _sql(self, template: str, differs: str) -> str:
        condition = self.condition.format(differs=differs)
        return template.format(
            name=self.name, table=self.table, verb=self.verb, message=self.message, condition=condition
        )

    @contextmanager
    def lifted(self, connection: Any) -> Iterator[None]:
        """Allow what the trigger refuses until the block ends; must be called inside a transaction.

        Other connections see nothing of it.
        """
        _check_references(connection)
        self.remove(connection)
        yield
        _check_references(connection)
        self.install(connection)


def _check_references(connection: Any) -> None:
    """Check deferred references: PostgreSQL drops no trigger of a table while checks of its rows are due."""
    if connection.vendor == "postgresql":
        connection.check_constraints()


def no_change(table: str) -> Trigger:
    """Return a trigger by which no row of the table can ever be changed (C17)."""
    return Trigger(f"{table}_no_update", table, "UPDATE", f"{table} is append-only")


def no_deletion(table: str) -> Trigger:
    """Return a trigger by which no row of the table can ever be deleted (C17)."""
    return Trigger(f"{table}_no_delete", table, "DELETE", f"{table} is append-only")


def no_change_of(table: str, fixed: tuple[str, ...], one_way: tuple[str, ...]) -> Trigger:
    """Return a trigger by which fixed columns never change, and one-way columns never once they are set."""
    changes = [f"OLD.{column} {{differs}} NEW.{column}" for column in fixed]
    changes += [f"(OLD.{column} IS NOT NULL AND OLD.{column} {{differs}} NEW.{column})" for column in one_way]
    return Trigger(
        f"{table}_no_change", table, "UPDATE", f"{table} is append-only", condition=" OR ".join(changes)
    )


def remove_triggers(app_config: AppConfig, using: str, plan: list[Any], **kwargs: Any) -> None:
    """Drop the app's triggers before migrations, if there are any to run, so that none is in the way."""
    if plan:
        for trigger in _triggers(app_config, using):
            trigger.remove(connections[using])


def install_triggers(app_config: AppConfig, using: str, **kwargs: Any) -> None:
    """Install the app's triggers after migrations."""
    tables = connections[using].introspection.table_names()
    for trigger in _triggers(app_config, using):
        if trigger.table in tables:
            trigger.install(connections[using])


def _triggers(app_config: AppConfig, using: str) -> Iterator[Trigger]:
    for model in app_config.get_models():
        if router.allow_migrate_model(using, model):
            yield from getattr(model, "triggers", ())

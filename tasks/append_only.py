"""Rows that nobody changes or deletes once written: the database itself refuses (C17)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

SQLITE_CREATE = """
CREATE TRIGGER {table}_no_{verb_lower} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END
"""
POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION steroids_append_only() RETURNS trigger AS $$
BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$ LANGUAGE plpgsql
"""
POSTGRES_CREATE = """
CREATE TRIGGER {table}_no_{verb_lower} BEFORE {verb} ON {table}
FOR EACH ROW EXECUTE FUNCTION steroids_append_only()
"""


def install(schema_editor: Any, table: str, verbs: tuple[str, ...] = ("UPDATE", "DELETE")) -> None:
    """Make the table append-only on SQLite and PostgreSQL."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRES_FUNCTION, params=None)
    for verb in verbs:
        schema_editor.execute(_create(schema_editor.connection.vendor, table, verb), params=None)


def remove(schema_editor: Any, table: str, verbs: tuple[str, ...] = ("UPDATE", "DELETE")) -> None:
    """Take the triggers away again."""
    for verb in verbs:
        schema_editor.execute(_drop(schema_editor.connection.vendor, table, verb), params=None)


def _create(vendor: str, table: str, verb: str) -> str:
    template = POSTGRES_CREATE if vendor == "postgresql" else SQLITE_CREATE
    return template.format(table=table, verb=verb, verb_lower=verb.lower())


def _drop(vendor: str, table: str, verb: str) -> str:
    on_table = f" ON {table}" if vendor == "postgresql" else ""
    return f"DROP TRIGGER IF EXISTS {table}_no_{verb.lower()}{on_table}"


@contextmanager
def lifted(table: str) -> Iterator[None]:
    """Within a transaction, and seen by nobody else: rows may be deleted until the end of the block."""
    with connection.cursor() as cursor:
        _settle()
        cursor.execute(_drop(connection.vendor, table, "DELETE"))
        yield
        _settle()
        cursor.execute(_create(connection.vendor, table, "DELETE"))


def _settle() -> None:
    """PostgreSQL drops no trigger of a table while references of its rows are still to be checked."""
    if connection.vendor == "postgresql":
        connection.check_constraints()


def install_fixed(schema_editor: Any, table: str, fixed: tuple[str, ...], one_way: tuple[str, ...]) -> None:
    """Refuse changes of the fixed columns, and of a one-way column that holds a value already."""
    postgres = schema_editor.connection.vendor == "postgresql"
    differs = "IS DISTINCT FROM" if postgres else "IS NOT"
    changed = [f"OLD.{name} {differs} NEW.{name}" for name in fixed]
    changed += [f"(OLD.{name} IS NOT NULL AND OLD.{name} {differs} NEW.{name})" for name in one_way]
    body = (
        "EXECUTE FUNCTION steroids_append_only()"
        if postgres
        else f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )
    schema_editor.execute(
        f"CREATE TRIGGER {table}_no_change BEFORE UPDATE ON {table} "
        f"FOR EACH ROW WHEN ({' OR '.join(changed)}) {body}",
        params=None,
    )

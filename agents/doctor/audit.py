"""Checks of the rows that nobody may change."""

from collections.abc import Iterator

from django.apps import apps
from django.db import connection

from agents.doctor.checks import Finding
from agents.doctor.runs import REPAIR
from tasks import sealing
from tasks.database.triggers import Trigger
from tasks.text.regex import regex

TRIGGERS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A')",
}
# Names of indexes, and of constraints or texts that name them.
CONSTRAINTS = {
    "sqlite": "SELECT coalesce(sql, name) FROM sqlite_master WHERE type IN ('table', 'index')",
    "postgresql": "SELECT conname FROM pg_constraint WHERE convalidated UNION "
    "SELECT relname FROM pg_class JOIN pg_index ON indexrelid = oid WHERE indisvalid",
}
WORD = regex(r"\w+")


def guards() -> Iterator[Finding]:
    """Check that the database itself refuses to change the record and what the program's rules forbid."""
    for trigger in _missing():
        yield Finding(f"The database does not hold {trigger.table} by {trigger.name} any more.", REPAIR)
    there = {word for text in _column(CONSTRAINTS) for word in WORD.findall(text)}
    for model in apps.get_models():
        for constraint in model._meta.constraints:
            if constraint.name not in there:
                yield Finding(
                    f"The table {model._meta.db_table} lacks the constraint {constraint.name}.",
                    "Somebody changed the database by hand: restore a backup, or put it back as "
                    "`manage.py sqlmigrate` prints it.",
                )


def record() -> Iterator[Finding]:
    """Check that the database guards its rows, and that they are those that were sealed."""
    yield from guards()
    for says in sealing.broken():
        yield Finding(says, "Somebody changed the record past the program. Compare it with a backup.")


def put_guards_back() -> Iterator[str]:
    """Install the triggers that are missing."""
    for trigger in list(_missing()):
        trigger.install(connection)
        yield f"{trigger.name} holds {trigger.table} again."


def _missing() -> Iterator[Trigger]:
    there = _column(TRIGGERS)
    for model in apps.get_models():
        yield from (trigger for trigger in getattr(model, "triggers", ()) if trigger.name not in there)


def _column(by_vendor: dict[str, str]) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(by_vendor[connection.vendor])
        return {str(value) for (value,) in cursor.fetchall()}

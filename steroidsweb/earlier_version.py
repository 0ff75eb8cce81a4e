"""What to do with a database that was made by a version before the first release, or by another program."""

from collections.abc import Collection
from importlib import import_module
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection

from tasks.text.counting import some_of

NAMED_MAX = 3  # migrations or tables that the message names
BASE = Path(settings.BASE_DIR)
MIGRATIONS = "django_migrations"


def refusal() -> str:
    """Return why this version cannot use the database, and how to begin afresh; empty if it can use it.

    Migrations that were applied but are not on disk belong to another version, unless one that is on disk
    replaces them and all were applied. Tables of which none is ours belong to another program, whose own a
    migration would change. A database that cannot be read is not reported here, because the command that
    needs it reports it.
    """
    tables, applied = _read()
    ours = {app: base / "migrations" for app in settings.INSTALLED_APPS if (base := BASE / app).is_dir()}
    known = [(app, name) for app, name in applied if app in ours]
    strangers = sorted({*tables} - {*connection.introspection.django_table_names(), MIGRATIONS})
    if strangers and not known:
        return (
            f"The database {connection.settings_dict['NAME']} belongs to another program: it holds "
            f"{some_of(strangers, NAMED_MAX)}. Name another one in DATABASE_URL. Nothing was changed."
        )
    gone = [(app, name) for app, name in known if not (ours[app] / f"{name}.py").exists()]
    replaced = _replaced(ours, known) if gone else set()
    strange = [f"{app}.{name}" for app, name in gone if (app, name) not in replaced]
    if not strange:
        return ""
    return (
        f"The database {connection.settings_dict['NAME']} was made by an earlier version of Steroids Web, "
        f"before its first release: this version has no migration {some_of(strange, NAMED_MAX)}. "
        f"It cannot be upgraded. To begin afresh, end what still runs on it and move {settings.HOME} out of "
        "the way, and the database, too, if it lies elsewhere; then give the same command once more."
    )


def _replaced(ours: dict[str, Path], applied: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the migrations of which one on disk takes the place, if all that it replaces were applied."""
    found: set[tuple[str, str]] = set()
    for app, folder in ours.items():
        for path in folder.glob("0*.py"):
            replaces = {*import_module(f"{app}.migrations.{path.stem}").Migration.replaces}
            if replaces <= {*applied}:
                found |= replaces
    return found


def _read() -> tuple[list[str], list[tuple[str, str]]]:
    """Return the names of the database's tables, and the app and name of each migration that was applied."""
    if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).exists():
        return [], []  # connecting to it would create it
    try:
        with connection.cursor() as cursor:
            tables = connection.introspection.table_names(cursor)
            if MIGRATIONS not in tables:
                return tables, []
            cursor.execute("SELECT app, name FROM django_migrations ORDER BY id")
            return tables, cursor.fetchall()
    except DatabaseError:
        return [], []
    finally:
        connection.close()

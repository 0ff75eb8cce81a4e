"""What to do with a database that was made by a version before the first release."""

from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection

from tasks.text.counting import some_of

NAMED_MAX = 3  # migrations that the message names


def refusal() -> str:
    """Return why this version cannot use the database, and how to begin afresh; empty if it can use it.

    Migrations that were applied but are not on disk belong to another version. A database that cannot be read
    is not reported here, because the command that needs it reports it.
    """
    strange = _strange_migrations()
    if not strange:
        return ""
    return (
        f"The database {connection.settings_dict['NAME']} was made by an earlier version of Steroids Web, "
        f"before its first release: this version has no migration {some_of(strange, NAMED_MAX)}. "
        f"It cannot be upgraded. To begin afresh, end what still runs on it and move {settings.HOME} out of "
        "the way, and the database, too, if it lies elsewhere; then give the same command once more."
    )


def _strange_migrations() -> list[str]:
    """Return the applied migrations of this program's apps that this version does not have."""
    base = Path(settings.BASE_DIR)
    ours = {app: base / app / "migrations" for app in settings.INSTALLED_APPS if (base / app).is_dir()}
    if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).exists():
        return []  # connecting to it would create it
    try:
        with connection.cursor() as cursor:
            if "django_migrations" not in connection.introspection.table_names(cursor):
                return []
            cursor.execute("SELECT app, name FROM django_migrations ORDER BY id")
            applied = cursor.fetchall()
    except DatabaseError:
        return []
    finally:
        connection.close()
    return [
        f"{app}.{name}" for app, name in applied if app in ours and not (ours[app] / f"{name}.py").exists()
    ]

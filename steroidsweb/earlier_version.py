"""A database that an earlier version made, before the first release: what to do with it, in a sentence."""

import shlex
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection

NAMED_MAX = 3  # migrations


def refusal() -> str:
    """Why this version does not work with the database, and how to begin afresh; empty where it does.

    Migrations that were applied and are not on the disk are another version's. A database that cannot be
    read says nothing here: whichever command wants it says so itself.
    """
    strange = _strange_migrations()
    if not strange:
        return ""
    named = ", ".join(strange[:NAMED_MAX])
    if len(strange) > NAMED_MAX:
        named += f" and {len(strange) - NAMED_MAX} more"
    commands = "\n".join(f"    {command}" for command in _commands())
    return (
        f"The database {connection.settings_dict['NAME']} was made by an earlier version of Steroids Web, "
        f"before its first release: this version has no migration {named}. It cannot be upgraded. "
        "To begin afresh, end what still runs on it and move it away; nothing is deleted:\n\n"
        f"{commands}\n\nThen give the same command once more."
    )


def _strange_migrations() -> list[str]:
    """Migrations of our own apps that were applied to the database, and that this version does not have."""
    base = Path(settings.BASE_DIR)
    ours = {app: base / app / "migrations" for app in settings.INSTALLED_APPS if (base / app).is_dir()}
    if _is_file() and not Path(connection.settings_dict["NAME"]).exists():
        return []  # to look for it would make it
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


def _is_file() -> bool:
    return bool(connection.vendor == "sqlite")


def _commands() -> list[str]:
    """What moves the data folder away, and the database where it does not lie in there."""
    home, database = Path(settings.HOME), connection.settings_dict
    name, commands = str(database["NAME"]), [_move(home)]
    if not _is_file():
        flags = (("-h", "HOST"), ("-p", "PORT"), ("-U", "USER"))
        where = "".join(f" {flag} {shlex.quote(database[key])}" for flag, key in flags if database[key])
        rename = f'ALTER DATABASE "{name}" RENAME TO "{name}-earlier"'
        commands += [f"psql{where} -c {shlex.quote(rename)} postgres", f"createdb{where} {shlex.quote(name)}"]
    elif not (file := Path(name).resolve()).is_relative_to(home):
        commands.append(_move(file))
    return commands


def _move(path: Path) -> str:
    """`mv` to a name beside it that nothing has yet."""
    free = path.with_name(f"{path.name}-earlier")
    number = 2
    while free.exists():
        free, number = path.with_name(f"{path.name}-earlier-{number}"), number + 1
    return f"mv {shlex.quote(str(path))} {shlex.quote(str(free))}"

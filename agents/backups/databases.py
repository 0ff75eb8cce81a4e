"""Copies the whole database into a file while it is in use, and back into an empty one."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from django.db import connection

FILES = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


class NoCopy(Exception):
    """Raised if the database cannot be copied; the text says why and what to do."""


def dump(folder: Path) -> Path:
    """Copy the database as it is at one moment, without making anybody wait. Raises NoCopy."""
    file = folder / FILES[connection.vendor]
    if connection.vendor == "postgresql":
        _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={file}")
        return file
    connection.ensure_connection()
    with closing(sqlite3.connect(file)) as copy:
        connection.connection.backup(copy)
    return file


def load(file: Path) -> None:
    """Replace the content of the database by that of the copy. Raises NoCopy."""
    if connection.vendor == "postgresql":
        connection.close()
        _run("pg_restore", "--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction",
             "--exit-on-error", str(file))  # fmt: skip
        return
    connection.ensure_connection()
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as copy:
            copy.backup(connection.connection)
    except sqlite3.Error as error:
        raise NoCopy(f"The database in this backup cannot be read: {error}") from error
    connection.close()


def _run(program: str, *arguments: str) -> None:
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import Conninfo

    if shutil.which(program) is None:
        raise NoCopy(f"{program} is not in the PATH. On Debian: apt-get install postgresql-client")
    known = connection.settings_dict
    server = {
        "host": known["HOST"], "port": known["PORT"], "user": known["USER"], "dbname": known["NAME"],
    }  # fmt: skip
    of_server = {option.keyword.decode() for option in Conninfo.get_defaults()}  # the others are Django's own
    options = {name: value for name, value in known["OPTIONS"].items() if name in of_server}
    where = make_conninfo(**options | {name: value for name, value in server.items() if value})
    password = {"PGPASSWORD": known["PASSWORD"]} if known["PASSWORD"] else {}
    done = subprocess.run(
        [program, f"--dbname={where}", *arguments], env=os.environ | password, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode:
        raise NoCopy(f"{program} failed: {done.stderr.strip()[-600:]}")

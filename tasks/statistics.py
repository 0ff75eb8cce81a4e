"""What SQLite knows of the sizes of its tables, so that it takes the right index. PostgreSQL sees to itself.

Without it a query for what was not rolled back begins with the index of that column, which has every row.
"""

from django.db import connection

EVERY_TABLE = 0x10002  # where it helps, and of each a sample only: milliseconds, however large it is


def refresh() -> str:
    """The job: look again at the tables that have grown since the last time."""
    if connection.vendor != "sqlite":
        return "not needed"
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA optimize({EVERY_TABLE})")
    return "looked"

"""Statistics about the sizes of SQLite's tables, so that it picks the right index. PostgreSQL keeps its own.

Without them, a query for rows that were not rolled back would start with the index on that column, which
covers every row.
"""

from django.db import connection

EVERY_TABLE = 0x10002  # analyses each table where that helps, by a sample: milliseconds, however large it is


def refresh() -> str:
    """Refresh the statistics of tables that have grown since the last time, as a background job."""
    if connection.vendor != "sqlite":
        return "not needed"
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA optimize({EVERY_TABLE})")
    return "looked"

"""Add up time sheets."""

import csv
from collections.abc import Iterable

from .parse import parse_span


def sum_column(lines: Iterable[str], column: str) -> int:
    """Return the seconds in all spans of one ``column`` of a CSV time sheet with a line of headings."""
    rows = csv.DictReader(lines)
    if column not in (rows.fieldnames or ()):
        raise ValueError(f"line 1: there is no column {column!r}")
    seconds = 0
    for row in rows:
        span = (row[column] or "").strip()
        try:
            seconds += parse_span(span) if span else 0
        except ValueError as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error
    return seconds

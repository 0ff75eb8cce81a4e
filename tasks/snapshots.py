"""The state of a task before a ruling moved it, stored so that it can be put back.

It is stored as JSON under names of its own, because a column may be renamed after a snapshot is taken.
"""

from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

# What a ruling may change: the name under which it is stored, which never changes, and the column's name.
STORED = {
    "status": "status",
    "round": "round",
    "rejections": "rejections",
    "accepted_submission": "accepted_id",
    "landed_commit": "landed_sha",
    "landed_at": "landed_at",
    "finished_by": "finished_by",
    "counts_since": "counts_since",
    "not_before": "not_before",
    "stage": "stage",
    "home_stage": "home_stage",
    "escalation": "escalation",
}
TIMES = frozenset({"landed_at", "counts_since", "not_before"})


def take(task: Any) -> dict[str, Any]:
    """Return the task's values as JSON, to be stored."""
    return {name: _plain(getattr(task, column)) for name, column in STORED.items()}


def columns_of(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the stored values of a task by the names of its columns."""
    return {column: _read(name, stored[name]) for name, column in STORED.items()}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _read(name: str, value: Any) -> Any:
    return parse_datetime(value) if value and name in TIMES else value

"""Where a task stood before a ruling moved it, so that it can be put back.

Stored as JSON under names of its own: a snapshot may be older than a column's present name.
"""

from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

# What a ruling may change: the name under which it is stored for good, and the column as it is called now.
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
    """What is stored of a task, as JSON."""
    return {name: _plain(getattr(task, column)) for name, column in STORED.items()}


def columns_of(stored: dict[str, Any]) -> dict[str, Any]:
    """The columns of a task as they were, by their present names."""
    return {column: _read(name, stored[name]) for name, column in STORED.items()}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _read(name: str, value: Any) -> Any:
    return parse_datetime(value) if value and name in TIMES else value

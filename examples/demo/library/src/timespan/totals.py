"""Add spans up."""

from collections.abc import Iterable

from .parse import parse_span


def total_seconds(spans: Iterable[str]) -> int:
    """Return the seconds in all ``spans`` together."""
    return sum(parse_span(span) for span in spans)

"""Read and write spans of time the way people do."""

from .format import format_span
from .parse import parse_span
from .totals import total_seconds

__all__ = ["format_span", "parse_span", "total_seconds"]

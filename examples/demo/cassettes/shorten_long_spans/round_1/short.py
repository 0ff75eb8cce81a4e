"""Write spans in short."""

from .format import format_span


def shorten(seconds: int, parts: int = 2) -> str:
    """Return the largest ``parts`` of a span and drop the others: ``2d 3h 5m`` becomes ``2d 3h``."""
    return " ".join(format_span(seconds).split()[:parts])

"""Write spans in short."""

from .format import format_span


def shorten(seconds: int, parts: int = 2) -> str:
    """Return the largest ``parts`` of a span and drop the others: ``2d 3h 5m`` becomes ``2d 3h``.

    Fewer than one part is a ``ValueError``.
    """
    if parts < 1:
        raise ValueError(f"a short span keeps at least one part, not {parts}")
    return " ".join(format_span(seconds).split()[:parts])

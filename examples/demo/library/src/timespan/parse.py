"""Read spans."""

import re

from .units import seconds_in

PART = re.compile(r"(\d+)\s*([a-z]+)")


def parse_span(text: str) -> int:
    """Return the seconds in a span such as ``1h 30m``. Anything else is a ``ValueError``."""
    written = text.strip().lower()
    parts = PART.findall(written)
    if not parts or PART.sub("", written).strip():
        raise ValueError(f"not a span: {written!r}")
    return sum(int(count) * seconds_in(unit) for count, unit in parts)

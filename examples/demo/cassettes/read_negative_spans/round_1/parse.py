"""Read spans."""

import re

from .units import seconds_in

PART = re.compile(r"(\d+)\s*([a-z]+)")


def parse_span(text: str) -> int:
    """Return the seconds in a span such as ``1h 30m`` or ``-2h``. Anything else is a ``ValueError``."""
    written = text.strip().lower()
    negative = written.startswith("-")
    if negative:
        written = written[1:]
    parts = PART.findall(written)
    if not parts or PART.sub("", written).strip():
        raise ValueError(f"not a span: {written!r}")
    seconds = [int(count) * seconds_in(unit) for count, unit in parts]
    if negative:
        seconds[0] = -seconds[0]
    return sum(seconds)

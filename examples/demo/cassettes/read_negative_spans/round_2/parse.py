"""Read spans."""

import re

from .units import seconds_in

PART = re.compile(r"(\d+)\s*([a-z]+)")


def parse_span(text: str) -> int:
    """Return the seconds in a span such as ``1h 30m`` or ``-2h``. Anything else is a ``ValueError``."""
    written = text.strip().lower()
    unsigned = written.removeprefix("-")
    parts = PART.findall(unsigned)
    if not parts or PART.sub("", unsigned).strip():
        raise ValueError(f"not a span: {text!r}")
    seconds = sum(int(count) * seconds_in(unit) for count, unit in parts)
    return -seconds if written.startswith("-") else seconds

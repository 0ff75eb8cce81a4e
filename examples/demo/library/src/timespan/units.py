"""The units of a span."""

SECONDS = {
    "s": 1,
    "m": 60,
    "h": 60 * 60,
    "d": 24 * 60 * 60,
}


def seconds_in(unit: str) -> int:
    """Return the seconds in one ``unit``. An unknown unit is a ``ValueError``."""
    if unit not in SECONDS:
        raise ValueError(f"unknown unit: {unit!r}")
    return SECONDS[unit]

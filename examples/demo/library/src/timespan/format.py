"""Write spans."""

from .units import seconds_in

WRITTEN_UNITS = ("d", "h", "m", "s")


def format_span(seconds: int) -> str:
    """Return ``seconds`` the way people write them, such as ``1h 30m``. Nothing is ``0s``."""
    parts = []
    rest = abs(seconds)
    for unit in WRITTEN_UNITS:
        count, rest = divmod(rest, seconds_in(unit))
        if count:
            parts.append(f"{count}{unit}")
    sign = "-" if seconds < 0 else ""
    return sign + (" ".join(parts) or "0s")

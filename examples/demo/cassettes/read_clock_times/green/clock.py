"""Read times written as on a clock."""


def parse_clock(text: str) -> int:
    """Return the seconds in a time such as ``1:30`` or ``1:30:05``. Anything else is a ``ValueError``."""
    fields = text.strip().split(":")
    if len(fields) not in (2, 3) or not all(field.isdecimal() for field in fields):
        raise ValueError(f"not a clock time: {text!r}")
    hours, *smaller = (int(field) for field in fields)
    if max(smaller) > 59:
        raise ValueError(f"minutes and seconds end at 59: {text!r}")
    minutes, seconds = (*smaller, 0)[:2]
    return (hours * 60 + minutes) * 60 + seconds

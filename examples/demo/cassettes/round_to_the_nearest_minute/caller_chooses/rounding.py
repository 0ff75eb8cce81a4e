"""Round spans for reports.

What was decided about half minutes is written in docs/decisions/rounding.md.
"""

from typing import Literal


def round_to_minute(seconds: int, half: Literal["up", "even"] = "up") -> int:
    """Return ``seconds`` rounded to whole minutes, still in seconds.

    With ``half="up"`` half a minute goes away from zero, as readers expect. With ``half="even"`` it goes to
    the even minute, so that long reports do not drift. Any other ``half`` is a ``ValueError``.
    """
    if half not in ("up", "even"):
        raise ValueError(f"half must be 'up' or 'even': {half!r}")
    minutes, rest = divmod(abs(seconds), 60)
    if rest > 30 or (rest == 30 and (half == "up" or minutes % 2 == 1)):
        minutes += 1
    return -minutes * 60 if seconds < 0 else minutes * 60

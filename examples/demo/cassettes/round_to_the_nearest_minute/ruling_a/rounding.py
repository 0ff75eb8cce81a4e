"""Round spans for reports."""


def round_to_minute(seconds: int) -> int:
    """Return ``seconds`` rounded to whole minutes, still in seconds.

    Half a minute goes away from zero, as readers expect: 30 becomes 60 and -30 becomes -60.
    """
    rounded = (abs(seconds) + 30) // 60 * 60
    return -rounded if seconds < 0 else rounded

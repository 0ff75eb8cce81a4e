"""Round spans for reports."""


def round_to_minute(seconds: int) -> int:
    """Return ``seconds`` rounded to whole minutes, still in seconds.

    Half a minute goes to the even minute, so 30 becomes 0 and 90 becomes 120. As many halves go down as
    go up, and a long report stays close to its exact total.
    """
    minutes, rest = divmod(seconds, 60)
    up = rest > 30 or (rest == 30 and minutes % 2 == 1)
    return (minutes + up) * 60

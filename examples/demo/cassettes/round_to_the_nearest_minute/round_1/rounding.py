"""Round spans for reports."""


def round_to_minute(seconds: int) -> int:
    """Return ``seconds`` rounded to whole minutes."""
    return round(seconds / 60) * 60

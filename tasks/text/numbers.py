"""Numbers that came from outside, as text."""

DIGITS_MAX = 18  # what the database holds, and Python reads at once


def whole_number(text: str) -> int | None:
    """Return the whole number that the text is, at most 18 digits long; None if it is anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None

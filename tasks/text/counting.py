"""Counts in words."""


def counted(count: int, noun: str) -> str:
    """Return "1 finding" or "2 findings", for a noun whose plural only takes an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

"""How many of something, as one says it."""


def counted(count: int, noun: str) -> str:
    """“1 finding”, “2 findings”: for a noun whose plural only takes an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

"""Counts and lists in words."""

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """Return "1 finding" or "2 findings", for a noun whose plural only takes an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def enumerated(names: Sequence[str], word: str = "and") -> str:
    """Return names in a row, such as "Lea, Tom and Vera"; empty if there are none."""
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))

"""Counts, lists and long texts in few words."""

from collections.abc import Collection, Sequence


def counted(count: int, noun: str) -> str:
    """Return "1 finding" or "2 findings", for a noun whose plural only takes an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def enumerated(names: Sequence[str], word: str = "and") -> str:
    """Return names in a row, such as "Lea, Tom and Vera"; empty if there are none."""
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def some_of(names: Collection[str], most: int) -> str:
    """Return the first `most` names, and how many more there are, such as "Lea, Tom and 3 more"."""
    shown = ", ".join([*names][:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters of the text; what is cut off ends in an ellipsis.

    It is cut between words, unless that would cost more than half of it.
    """
    if len(text) <= most:
        return text
    cut, at = text[: most - 1], text[:most].rfind(" ")
    return f"{(cut[:at] if at >= most // 2 else cut).rstrip()}…"

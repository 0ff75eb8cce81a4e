"""Print reports."""

from collections.abc import Iterable

from .format import format_span
from .rounding import round_to_minute


def report(entries: Iterable[tuple[str, int]]) -> str:
    """Return a line for each label and its span in whole minutes, and the exact total rounded once."""
    lines = list(entries)
    lines.append(("Total", sum(seconds for _, seconds in lines)))
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {format_span(round_to_minute(seconds))}" for label, seconds in lines)

"""Round spans for reports.

What was decided about half minutes is written in docs/decisions/rounding.md.
"""

from collections.abc import Iterable


def round_to_minute(seconds: int) -> int:
    """Return ``seconds`` rounded to whole minutes, still in seconds. Half a minute goes away from zero."""
    rounded = (abs(seconds) + 30) // 60 * 60
    return -rounded if seconds < 0 else rounded


def round_lines(spans: Iterable[int]) -> list[int]:
    """Return ``spans`` rounded to whole minutes, where each line hands on to the next what it left out.

    So the lines of a report never drift more than half a minute from the exact total.
    """
    rounded: list[int] = []
    left_out = 0
    for span in spans:
        rounded.append(round_to_minute(span + left_out))
        left_out += span - rounded[-1]
    return rounded

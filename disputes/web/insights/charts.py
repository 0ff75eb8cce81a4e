"""Charts as coordinates that the templates draw as SVG, without scripts or styles, with colours by class."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

WIDTH, HEIGHT = 360, 150
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 22  # margins for the labels at the axes
TICKS = 3
# Round durations for the axis, in seconds.
ROUND_SECONDS = [
    n * unit for unit, numbers in (
        (1, (1, 2, 5, 10, 20, 30)), (60, (1, 2, 5, 10, 20, 30)), (3600, (1, 2, 4, 6, 8, 12)),
        (86400, (1, 2, 3, 5, 7, 14, 30, 60, 90, 180, 365, 1000)),
    ) for n in numbers
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One series: unbroken pieces, each as the points of a polyline, and isolated points as dots."""

    label: str
    kind: str  # its CSS class
    pieces: list[str]
    dots: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines or bars between two axes."""

    lines: list[ChartLine]
    bars: list[tuple[str, float, float, float, float]]  # CSS class, x, y, width, height
    ticks: list[tuple[float, str]]  # y, label
    first: str
    last: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    base: int = HEIGHT - BOTTOM
    foot: int = HEIGHT - 6


def lines(series: Sequence[tuple[str, str, Sequence[float | None]]], *, first: str, last: str) -> Chart:
    """Return the chart of series of equal length over time; None in a series leaves a gap."""
    highest = max((value for _, _, values in series for value in values if value is not None), default=0)
    ticks = _ticks(highest, ROUND_SECONDS)
    drawn = [_line(label, kind, values, ticks[-1]) for label, kind, values in series]
    return Chart(drawn, [], [(_y(tick, ticks[-1]), short(tick)) for tick in ticks], first, last)


def _line(label: str, kind: str, values: Sequence[float | None], top: float) -> ChartLine:
    pieces: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((_x(place, len(values)), _y(value, top)))
    return ChartLine(
        label, kind, [" ".join(f"{x:g},{y:g}" for x, y in piece) for piece in pieces if len(piece) > 1],
        [piece[0] for piece in pieces if len(piece) == 1],
    )  # fmt: skip


def bars(series: Sequence[tuple[str, Sequence[int]]], *, first: str, last: str) -> Chart:
    """Return the chart of counts over time, side by side; each series is (CSS class, values)."""
    highest = max((value for _, values in series for value in values), default=0)
    ticks = _ticks(highest, [n * 10**power for power in range(7) for n in (1, 2, 5)])
    number = max((len(values) for _, values in series), default=0) or 1
    slot = (WIDTH - LEFT - RIGHT) / number
    wide = max(slot * 0.8 / max(len(series), 1), 0.5)
    drawn = [
        (kind, round(LEFT + slot * (place + 0.1) + wide * nth, 1), _y(value, ticks[-1]), round(wide, 1),
         round(HEIGHT - BOTTOM - _y(value, ticks[-1]), 1))
        for nth, (kind, values) in enumerate(series) for place, value in enumerate(values) if value
    ]  # fmt: skip
    return Chart([], drawn, [(_y(tick, ticks[-1]), f"{tick:g}") for tick in ticks], first, last)


def short(seconds: float) -> str:
    """Return a round duration in one unit, such as 20 m or 4 h."""
    for name, unit in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= unit:
            return f"{seconds / unit:g} {name}"
    return f"{seconds:g} s" if seconds else "0"


def _ticks(highest: float, steps: Sequence[float]) -> list[float]:
    """Return ticks from 0 to past the highest value, in the smallest round step that needs few of them."""
    step = next((step for step in steps if step * TICKS >= highest), max(ceil(highest / TICKS), 1))
    number = max(1, -(-highest // step))
    return [step * n for n in range(int(number) + 1)]


def _x(place: int, number: int) -> float:
    span = WIDTH - LEFT - RIGHT
    return round(LEFT + (span * place / (number - 1) if number > 1 else span / 2), 1)


def _y(value: float, top: float) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top if top else 1), 1)

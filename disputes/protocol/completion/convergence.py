"""Whether the work converges: what was settled, compared with what came up (CONV-1 to CONV-4)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from disputes.protocol.reviews.severity import WEIGHTS, total_weight
from tasks.states import Severity


class State(StrEnum):
    CONVERGING = "CONVERGING"
    FLAT = "FLAT"
    STALLED = "STALLED"  # turns into a warning in the same round, so no project stays in it
    DIVERGENCE_WARNING = "DIVERGENCE_WARNING"
    PAUSED = "PAUSED"
    COMPLETE = "COMPLETE"


@dataclass(frozen=True, slots=True)
class Preset:
    """The thresholds for projects that began with at most `up_to` gaps; None means any number."""

    up_to: int | None
    stall_threshold: int
    divergence_threshold: int


PRESETS: tuple[Preset, ...] = (Preset(9, 2, 8), Preset(30, 3, 12), Preset(None, 4, 16))


@dataclass(frozen=True, slots=True)
class ConvergenceSettings:
    """The thresholds of a project, and the weight of each severity."""

    stall_threshold: int = 2
    divergence_threshold: int = 8
    critical_override: bool = True
    severity_weights: Mapping[str, int] = field(default_factory=lambda: dict(WEIGHTS))


def preset(initial_gaps: int) -> Preset:
    """Return the thresholds for a project that begins with this number of gaps (CONV-5)."""
    return next(each for each in PRESETS if each.up_to is None or initial_gaps <= each.up_to)


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The state of a project after a round. `weighted_net` decides; `net` is shown to people."""

    state: State
    rule: str  # CONV-1 to CONV-4
    weighted_net: int
    net: int
    flat: int
    stalled: bool = False
    is_counted: bool = True  # False if the round says nothing about the project's course

    @property
    def disagree(self) -> bool:
        """Whether the two figures point in different directions, so that both are shown."""
        return (self.net > 0) != (self.weighted_net > 0)


def after_round(
    resolved: Collection[str | None],
    new: Collection[str | None],
    flat: int = 0,
    settings: ConvergenceSettings | None = None,
    *,
    is_counted: bool = True,
) -> RoundResult:
    """Return the state after a round that settled and brought up gaps of these severities (CONV-1 to CONV-4).

    `flat` is the number of rounds without progress before it. A divergence must exceed its threshold, while a
    stall begins at its own. A round that is not `is_counted` adds nothing to that number, because nothing
    could have been settled in it.
    """
    chosen = settings or ConvergenceSettings()
    weights = chosen.severity_weights
    weighted = total_weight(resolved, weights) - total_weight(new, weights)
    net = len(resolved) - len(new)
    if chosen.critical_override and Severity.CRITICAL in new:
        return RoundResult(State.DIVERGENCE_WARNING, "CONV-1", weighted, net, flat)
    if weighted < -chosen.divergence_threshold:
        return RoundResult(State.DIVERGENCE_WARNING, "CONV-2", weighted, net, flat)
    if weighted > 0:
        return RoundResult(State.CONVERGING, "CONV-3", weighted, net, 0)
    if not is_counted:
        return RoundResult(State.FLAT, "CONV-4", weighted, net, flat, is_counted=False)
    if flat + 1 >= chosen.stall_threshold:
        return RoundResult(State.DIVERGENCE_WARNING, "CONV-4", weighted, net, flat + 1, stalled=True)
    return RoundResult(State.FLAT, "CONV-4", weighted, net, flat + 1)


def said(result: RoundResult, settings: ConvergenceSettings | None = None) -> str:
    """Return the result in one line for people, with both figures if they point in different directions."""
    limits = settings or ConvergenceSettings()
    figures = f"weighted net {result.weighted_net:+d}"
    if result.disagree:
        figures += f", net {result.net:+d}"
    match result.state:
        case State.CONVERGING:
            return f"Progress: {figures}."
        case State.FLAT if not result.is_counted:
            return f"Nothing is settled yet: {figures}."
        case State.FLAT:
            return f"No progress, {result.flat} of {limits.stall_threshold} towards stall: {figures}."
        case _ if result.stalled:
            return f"Stalled for {result.flat} rounds: {figures}."
        case _ if result.rule == "CONV-1":
            return f"A new critical gap came up: {figures}."
        case _:
            return f"More comes up than is settled: {figures}."

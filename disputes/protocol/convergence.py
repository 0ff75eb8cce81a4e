"""Whether the work comes to an end: what was settled against what came up (§10)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from disputes.protocol.severity import WEIGHTS, total_weight
from tasks.states import Severity


class State(StrEnum):
    CONVERGING = "CONVERGING"
    FLAT = "FLAT"
    STALLED = "STALLED"  # becomes a warning in the same round; never where a project rests
    DIVERGENCE_WARNING = "DIVERGENCE_WARNING"
    PAUSED = "PAUSED"
    COMPLETE = "COMPLETE"


@dataclass(frozen=True, slots=True)
class Preset:
    """The thresholds that suit a project that began with so many gaps; `up_to` None is any number."""

    up_to: int | None
    stall_threshold: int
    divergence_threshold: int


PRESETS: tuple[Preset, ...] = (Preset(9, 2, 8), Preset(30, 3, 12), Preset(None, 4, 16))


@dataclass(frozen=True, slots=True)
class ConvergenceSettings:
    """The thresholds of a project, and what a severity weighs (§16)."""

    stall_threshold: int = 2
    divergence_threshold: int = 8
    critical_override: bool = True
    severity_weights: Mapping[str, int] = field(default_factory=lambda: dict(WEIGHTS))


def preset(initial_gaps: int) -> Preset:
    """The thresholds for a project that begins with so many gaps (§10)."""
    return next(each for each in PRESETS if each.up_to is None or initial_gaps <= each.up_to)


@dataclass(frozen=True, slots=True)
class RoundResult:
    """Where a project stands after a round. `weighted_net` decides; `net` is for people."""

    state: State
    rule: str  # C1 to C4
    weighted_net: int
    net: int
    flat: int
    stalled: bool = False
    is_counted: bool = True  # False: it says nothing of the project's course

    @property
    def disagree(self) -> bool:
        """Whether the two figures point different ways, so that both are shown."""
        return (self.net > 0) != (self.weighted_net > 0)


def after_round(
    resolved: Collection[str | None],
    new: Collection[str | None],
    flat: int = 0,
    settings: ConvergenceSettings | None = None,
    *,
    is_counted: bool = True,
) -> RoundResult:
    """The state after a round that settled and brought up gaps of these severities (C1 to C4).

    `flat` is the number of rounds without progress before it. The comparison with the threshold is strict.
    One that is not `is_counted` adds nothing to that number: nothing could have been settled in it.
    """
    chosen = settings or ConvergenceSettings()
    weights = chosen.severity_weights
    weighted = total_weight(resolved, weights) - total_weight(new, weights)
    net = len(resolved) - len(new)
    if chosen.critical_override and Severity.CRITICAL in new:
        return RoundResult(State.DIVERGENCE_WARNING, "C1", weighted, net, flat)
    if weighted < -chosen.divergence_threshold:
        return RoundResult(State.DIVERGENCE_WARNING, "C2", weighted, net, flat)
    if weighted > 0:
        return RoundResult(State.CONVERGING, "C3", weighted, net, 0)
    if not is_counted:
        return RoundResult(State.FLAT, "C4", weighted, net, flat, is_counted=False)
    if flat + 1 >= chosen.stall_threshold:
        return RoundResult(State.DIVERGENCE_WARNING, "C4", weighted, net, flat + 1, stalled=True)
    return RoundResult(State.FLAT, "C4", weighted, net, flat + 1)


def history(
    rounds: Sequence[tuple[Collection[str | None], Collection[str | None]]],
    settings: ConvergenceSettings | None = None,
) -> tuple[RoundResult, ...]:
    """The state after each of several rounds, given what each settled and brought up, oldest first."""
    results: list[RoundResult] = []
    for resolved, new in rounds:
        results.append(after_round(resolved, new, results[-1].flat if results else 0, settings))
    return tuple(results)


def said(result: RoundResult, settings: ConvergenceSettings | None = None) -> str:
    """One line for people; both figures where they point different ways."""
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
        case _ if result.rule == "C1":
            return f"A new critical gap came up: {figures}."
        case _:
            return f"More comes up than is settled: {figures}."


# --- What a person may choose -----------------------------------------------------------------------------


class Choice(StrEnum):
    NARROW_SCOPE = "narrow_scope"
    ACCEPT_COMPLEXITY = "accept_complexity"
    PRIORITISE_CRITICAL = "prioritise_critical"
    PAUSE = "pause"
    FORCE_COMPLETE = "force_complete"
    ABANDON = "abandon"


@dataclass(frozen=True, slots=True)
class Option:
    """One choice in a divergence warning: its words, what it does, and where it leads."""

    title: str
    effect: str
    next_state: State
    resets_flat: bool = False
    focuses: bool = False  # only critical gaps are assigned until they are settled
    needs_gaps: bool = False  # the person names the gaps to park, and why
    gates: bool = False  # goes through the acknowledgements of §11


OPTIONS: dict[Choice, Option] = {
    Choice.NARROW_SCOPE: Option(
        "Narrow the scope", "The gaps you choose are deferred with your reason.",
        State.CONVERGING, resets_flat=True, needs_gaps=True,
    ),
    Choice.ACCEPT_COMPLEXITY: Option(
        "Accept the complexity", "Recorded. The count of flat rounds begins anew; the history stays.",
        State.CONVERGING, resets_flat=True,
    ),
    Choice.PRIORITISE_CRITICAL: Option(
        "Critical ones first", "Only critical gaps are begun until they are settled.",
        State.CONVERGING, focuses=True,
    ),
    Choice.PAUSE: Option(
        "Pause", "Everything is kept; work goes on from the last finished phase.", State.PAUSED
    ),
    Choice.FORCE_COMPLETE: Option(
        "Force the end", "Ends as a stall exit, once what is left is acknowledged.",
        State.COMPLETE, gates=True,
    ),
    Choice.ABANDON: Option("Abandon", "Ends without output; the history is kept.", State.COMPLETE),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """What follows at once from a choice. Gates come before the next state, where the option says so."""

    state: State
    flat: int
    focus: bool


def choose(choice: Choice, flat: int, *, focus: bool = False) -> Chosen:
    """Where a choice in a divergence warning leads."""
    option = OPTIONS[choice]
    return Chosen(option.next_state, 0 if option.resets_flat else flat, option.focuses or focus)

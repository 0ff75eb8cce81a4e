"""The final review before an end, and the summary after it (END-9, END-11)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from disputes.protocol.completion.convergence import RoundResult, State
from disputes.protocol.completion.termination import Ask, Exit, Gap, Next, Result, Standing
from disputes.protocol.reviews.severity import counts_as
from disputes.protocol.rounds.gaps import SETTLED, GapState
from tasks.states import Severity
from tasks.text.counting import some_of

NAMED = 20  # how many tasks or findings the final review names

# --- The final review -------------------------------------------------------------------------------------


class Check(StrEnum):
    CRITICAL_SETTLED = "everything critical is settled"
    HIGH_SETTLED = "everything of high severity is settled"
    ALL_ADDRESSED = "every finding is addressed"
    NO_CYCLE = "nothing waits for itself"
    NO_CONFLICTING_DEFINITIONS = "no two parts contradict each other"
    EXAMPLES_VALID = "the examples work"
    CORE_UNAMBIGUOUS = "it is clear what the core features do"


# Only a person can judge these; the program checks the others itself.
JUDGED = (Check.NO_CONFLICTING_DEFINITIONS, Check.EXAMPLES_VALID, Check.CORE_UNAMBIGUOUS)


def blockers(
    gaps: Sequence[Gap],
    untreated: Collection[str],
    blocked_by: Mapping[str, Collection[str]],
    judged: Collection[str],
) -> tuple[str, ...]:
    """Return what the final review finds in the way of the end; empty if the work is ready to end (END-9).

    `untreated` are findings that are neither resolved, decided nor deferred; `judged` the names of the points
    that a person confirmed.
    """
    found = {
        check: [gap.code for gap in gaps if gap.severity is severity and gap.state not in SETTLED]
        for severity, check in (
            (Severity.CRITICAL, Check.CRITICAL_SETTLED), (Severity.HIGH, Check.HIGH_SETTLED),
        )
    }  # fmt: skip
    found[Check.ALL_ADDRESSED] = [*untreated]
    told = {check: some_of(codes, NAMED) for check, codes in found.items() if codes}
    if cycle := cycle_in(blocked_by):
        told[Check.NO_CYCLE] = " waits for ".join(cycle)
    told |= {check: "nobody confirmed it" for check in JUDGED if check.name not in judged}
    return tuple(f"{check}: {detail}" for check, detail in told.items())


def cycle_in(blocked_by: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return a cycle of gaps, each waiting for the next; empty if there is none."""
    try:
        TopologicalSorter(blocked_by).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


# --- The summary ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Durations:
    """The time from start to end and the time of work in rounds, in seconds; the rest is waiting (TIME-2)."""

    session: float
    active: float

    @property
    def waiting(self) -> float:
        return self.session - self.active


def durations(started: float, completed: float, rounds: Iterable[tuple[float, float]]) -> Durations:
    """Return the durations in seconds (TIME-2); each round is given by its start and its end."""
    return Durations(completed - started, sum(end - begin for begin, end in rounds))


TRIGGERS: dict[Ask, str] = {
    Ask.NOTHING: "everything is settled",
    Ask.STOP: "a person asked to stop",
    Ask.ACCEPT: "accepted at the limit of rounds",
    Ask.FORCE_COMPLETE: "forced in a divergence warning",
    Ask.ABANDON: "abandoned by a person",
}


class LimitationKind(StrEnum):
    """The reason why something is a known limitation."""

    DEFERRED = "deferred"
    ACKNOWLEDGED = "acknowledged"
    CONFLICT = "conflict"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Limitation:
    """One entry of Known Limitations. `by` and `at` are empty if nobody acknowledged it at the end."""

    code: str
    severity: Severity
    kind: LimitationKind
    title: str = ""
    reason: str = ""
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The final summary of a project."""

    exit: Exit
    trigger: str
    rounds: int
    durations: Durations
    state: State
    weighted_net: int
    matrix: Mapping[GapState, Mapping[Severity, int]]
    limitations: tuple[Limitation, ...]
    history: tuple[RoundResult, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain JSON values."""
        told = asdict(self)
        told["durations"]["waiting"] = self.durations.waiting
        return told


def summarise(
    result: Result, standing: Standing, spent: Durations, history: Sequence[RoundResult]
) -> Summary:
    """Return the summary of an end (END-11). Raises ValueError if the result is not an end."""
    if result.next is not Next.END or result.exit is None:
        raise ValueError(f"{result.step} is no end: {result.next}.")
    return Summary(
        exit=result.exit,
        trigger=TRIGGERS[Ask.NOTHING if result.exit is Exit.COMPLETE else standing.asked],
        rounds=standing.rounds,
        durations=spent,
        state=standing.convergence,
        weighted_net=history[-1].weighted_net if history else 0,
        matrix=matrix(standing.gaps),
        limitations=tuple(_limitations(result, standing)),
        history=tuple(history),
    )


def matrix(gaps: Iterable[Gap]) -> dict[GapState, dict[Severity, int]]:
    """Return the number of gaps by state and severity; an unstated severity counts as medium (SEV-9)."""
    counts = {state: dict.fromkeys(Severity, 0) for state in GapState}
    for gap in gaps:
        counts[gap.state][counts_as(gap.severity)] += 1
    return counts


def _limitations(result: Result, standing: Standing) -> Iterable[Limitation]:
    """Yield what is unfinished or deferred, what was acknowledged, and the conflicts that nobody ruled on."""
    typed = standing.acknowledgement
    acknowledged = {each.code for each in result.left}
    for gap in standing.gaps:
        severity, deferred = counts_as(gap.severity), gap.state is GapState.USER_DEFERRED
        if gap.code in acknowledged:
            reason = typed.rationales.get(gap.code, "").strip() or gap.reason
            kind = LimitationKind.DEFERRED if deferred else LimitationKind.ACKNOWLEDGED
            yield Limitation(gap.code, severity, kind, gap.title, reason, typed.by, typed.at)
        elif deferred:
            yield Limitation(gap.code, severity, LimitationKind.DEFERRED, gap.title, gap.reason)
        elif gap.state not in SETTLED:
            yield Limitation(gap.code, severity, LimitationKind.UNFINISHED, gap.title)
    for each in standing.conflicts:
        known = each.code in acknowledged
        yield Limitation(
            each.code,
            counts_as(each.severity),
            LimitationKind.CONFLICT,
            each.title,
            typed.rationales.get(each.code, "").strip(),
            typed.by if known else "",
            typed.at if known else "",
        )

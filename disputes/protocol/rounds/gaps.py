"""The life cycle of a gap: its states, its moves, and what counts as open. In a project, a gap is a task.

A grave finding that nobody answered keeps its gap open (RND-4).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tasks.states import Severity, Status

# --- States -----------------------------------------------------------------------------------------------


class GapState(StrEnum):
    OPEN = "OPEN"
    IN_PROGRESS = "IN_PROGRESS"
    PROPOSED = "PROPOSED"
    NEEDS_REVISION = "NEEDS_REVISION"
    ACCEPTED = "ACCEPTED"
    USER_DEFERRED = "USER_DEFERRED"
    RESOLVED = "RESOLVED"
    WONT_FIX = "WONT_FIX"
    BLOCKED_EXTERNAL = "BLOCKED_EXTERNAL"
    SUPERSEDED = "SUPERSEDED"
    BLOCKED = "BLOCKED"


# How much a gap in each state counts among the open ones.
WEIGHTS: dict[GapState, float] = {
    GapState.OPEN: 1,
    GapState.IN_PROGRESS: 1,
    GapState.PROPOSED: 1,
    GapState.NEEDS_REVISION: 1,
    GapState.ACCEPTED: 0,
    GapState.USER_DEFERRED: 0.5,
    GapState.RESOLVED: 0,
    GapState.WONT_FIX: 0,
    GapState.BLOCKED_EXTERNAL: 0.25,
    GapState.SUPERSEDED: 0,
    GapState.BLOCKED: 1,
}
SETTLED = frozenset(state for state, weight in WEIGHTS.items() if weight == 0)


# --- Moves ------------------------------------------------------------------------------------------------


def why_not_proposed(state: GapState, solution: str, unanswered: Sequence[str]) -> str:
    """Return why a document does not propose a gap in this state, or "" (RND-4).

    `solution` is the text of the gap's section, `unanswered` the grave findings on it that nobody answered.
    """
    if state is GapState.IN_PROGRESS:
        return "" if solution.strip() else "its solution section is empty"
    if state is GapState.NEEDS_REVISION:
        return f"not answered: {', '.join(unanswered)}" if unanswered else ""
    return f"a gap that is {state} cannot be proposed"


def after_review(
    *, grave_findings: int, is_sent_back: bool, is_signed_off: bool, open_conflicts: int
) -> GapState | None:
    """Return the state of a proposed gap after a review; None if it stays proposed.

    The findings count, not the word: a gap that is approved with a high finding goes back. While a critical
    or high conflict on it is undecided (`open_conflicts`), it is not accepted (DEC-7).
    """
    if grave_findings or is_sent_back:
        return GapState.NEEDS_REVISION
    return GapState.ACCEPTED if is_signed_off and not open_conflicts else None


# --- Counting ---------------------------------------------------------------------------------------------


def open_count(states: Iterable[GapState]) -> float:
    """Return how many gaps are open; parked ones count in part."""
    return float(sum(WEIGHTS[state] for state in states))


COUNTS_AS_RESOLVED = frozenset({GapState.ACCEPTED, GapState.RESOLVED, GapState.WONT_FIX})


@dataclass(frozen=True, slots=True)
class GapChange:
    """One gap that changed its state in a round; `source` is None if it was created."""

    gap: str
    source: GapState | None
    target: GapState
    severity: Severity | None = None
    parent: str = ""


@dataclass(frozen=True, slots=True)
class RoundCount:
    """The gaps that one round resolved and those that came up in it, each with its severity."""

    resolved_now: Mapping[str, Severity | None]
    new_now: Mapping[str, Severity | None]
    unrelated: frozenset[str] = frozenset()  # new gaps whose parent was not worked on in the round

    @property
    def net(self) -> int:
        """The number of resolved gaps minus the number of new ones."""
        return len(self.resolved_now) - len(self.new_now)


def count_round(changes: Sequence[GapChange]) -> RoundCount:
    """Return the gaps that one round resolved and created, each once.

    A gap that was accepted earlier is not resolved a second time (CNT-1). One that was created and closed in
    the same round counts as both (CNT-2).
    """
    worked_on = {change.gap for change in changes if change.source is not None}
    new = {change.gap: change for change in changes if change.source is None}
    resolved = {
        change.gap: change.severity
        for change in changes
        if change.target in COUNTS_AS_RESOLVED and change.source not in COUNTS_AS_RESOLVED
    }
    return RoundCount(
        resolved_now=resolved,
        new_now={gap: change.severity for gap, change in new.items()},
        unrelated=frozenset(gap for gap, change in new.items() if change.parent not in worked_on),
    )


def is_worrying(rounds: Sequence[RoundCount]) -> bool:
    """Whether the last round's negative net is worse than that of a complex gap falling into its parts.

    It is if the round before was negative too, or if a new gap does not come from one that was worked on.
    """
    if not rounds or rounds[-1].net >= 0:
        return False
    lasts = len(rounds) > 1 and rounds[-2].net < 0
    return lasts or bool(rounds[-1].unrelated)


# --- Tasks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What must be known about a task to tell the state of its gap."""

    status: Status
    rejected: bool = False  # its last review sent it back
    landed: bool = False  # its work is on the target branch, or it was finished by hand
    shipped: bool = False  # it is disputed, and its code goes on
    needs_help: bool = False  # it waits for a card that asks for help
    has_children: bool = False


# The first row that fits counts; "" always fits. A failed task waits for a person to act on its card.
GAP_OF_TASK: tuple[tuple[Status, str, GapState], ...] = (
    (Status.COMPLETED, "landed", GapState.RESOLVED),
    (Status.COMPLETED, "", GapState.ACCEPTED),
    (Status.CANCELLED, "has_children", GapState.SUPERSEDED),
    (Status.CANCELLED, "", GapState.WONT_FIX),
    (Status.DEFERRED, "", GapState.USER_DEFERRED),
    (Status.FAILED, "", GapState.BLOCKED_EXTERNAL),
    (Status.DISPUTED, "needs_help", GapState.BLOCKED_EXTERNAL),
    # A shipped dispute is not an open gap: only its conflict is left, which has gates of its own (END-7).
    (Status.DISPUTED, "landed", GapState.RESOLVED),
    (Status.DISPUTED, "shipped", GapState.ACCEPTED),
    (Status.DISPUTED, "", GapState.BLOCKED),
    (Status.PENDING, "needs_help", GapState.BLOCKED_EXTERNAL),
    (Status.PENDING, "", GapState.OPEN),
    (Status.IN_PROGRESS, "needs_help", GapState.BLOCKED_EXTERNAL),
    (Status.IN_PROGRESS, "rejected", GapState.NEEDS_REVISION),
    (Status.IN_PROGRESS, "", GapState.IN_PROGRESS),
    (Status.REVIEW, "needs_help", GapState.BLOCKED_EXTERNAL),
    (Status.REVIEW, "", GapState.PROPOSED),
)


def gap_of(task: TaskFacts) -> GapState:
    """Return the state of the gap that this task is."""
    for status, fact, state in GAP_OF_TASK:
        if task.status is status and (not fact or getattr(task, fact)):
            return state
    raise AssertionError(task.status)

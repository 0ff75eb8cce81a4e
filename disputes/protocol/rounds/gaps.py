"""The life cycle of a gap: its states, its moves, and what counts as open. In a project, a gap is a task.

A grave finding that nobody answered keeps its gap open (RND-4).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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


class Class(StrEnum):
    WORKING = "working"
    CLOSED = "closed"  # waits for a person to confirm it
    PARKED = "parked"
    TERMINAL = "terminal"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The class of a state, and how much a gap in it counts among the open ones."""

    kind: Class
    weight: float


STATES: dict[GapState, Meaning] = {
    GapState.OPEN: Meaning(Class.WORKING, 1),
    GapState.IN_PROGRESS: Meaning(Class.WORKING, 1),
    GapState.PROPOSED: Meaning(Class.WORKING, 1),
    GapState.NEEDS_REVISION: Meaning(Class.WORKING, 1),
    GapState.ACCEPTED: Meaning(Class.CLOSED, 0),
    GapState.USER_DEFERRED: Meaning(Class.PARKED, 0.5),
    GapState.RESOLVED: Meaning(Class.TERMINAL, 0),
    GapState.WONT_FIX: Meaning(Class.TERMINAL, 0),
    GapState.BLOCKED_EXTERNAL: Meaning(Class.PARKED, 0.25),
    GapState.SUPERSEDED: Meaning(Class.TERMINAL, 0),
    GapState.BLOCKED: Meaning(Class.WORKING, 1),
}


def _of(*kinds: Class) -> frozenset[GapState]:
    return frozenset(state for state, meaning in STATES.items() if meaning.kind in kinds)


WORKING = _of(Class.WORKING)
TERMINAL = _of(Class.TERMINAL)
SETTLED = _of(Class.CLOSED, Class.TERMINAL)
BLOCKED_STATES = frozenset({GapState.BLOCKED, GapState.BLOCKED_EXTERNAL})


# --- Moves ------------------------------------------------------------------------------------------------


class Actor(StrEnum):
    ENGINEER = "engineer"
    REVIEWER = "reviewer"
    USER = "user"
    SYSTEM = "system"


class Blocker(StrEnum):
    DIVERGENCE = "DIVERGENCE"
    DEPENDENCY = "DEPENDENCY"
    USER_INPUT = "USER_INPUT"
    EXTERNAL = "EXTERNAL"


class Confirmation(StrEnum):
    """The reason why an accepted gap may become resolved."""

    NONE = ""
    CONFIRMED = "confirmed"
    ROUND_WITHOUT_OBJECTION = "round_without_objection"
    SESSION_ENDED = "session_ended"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the guards of the moves need to know about a gap. The defaults pass no guard that needs a fact."""

    assigned: bool = False
    known: bool = True
    blocked: bool = False
    solution: str = ""  # the text of the solution section in the document
    grave_issues: int = 0  # critical and high issues of the last review on this gap
    sent_back: bool = False  # the last review asks for changes to this gap
    open_issues: tuple[str, ...] = ()  # issues that are neither resolved, disagreed with nor deferred
    signed_off: bool = False  # the reviewer listed the gap and accepted it
    open_conflicts: int = 0  # undecided critical and high conflicts (DEC-7)
    reason: str = ""
    children: int = 0
    blocker: Blocker | None = None
    unblock_action: str = ""
    unblocked: bool = False  # the other gap is accepted or resolved, or the decision is recorded
    acceptance: str = ""  # the typed acceptance of a risk
    blocker_name: str = ""
    confirmation: Confirmation = Confirmation.NONE


Guard = Callable[[Facts], str]  # returns why the move is refused, or an empty text


def _free(facts: Facts) -> str:
    return ""


def _assigned(facts: Facts) -> str:
    if not facts.assigned:
        return "the gap is not assigned in this round"
    return "the gap is blocked" if facts.blocked else ""


def _has_solution(facts: Facts) -> str:
    return "" if facts.solution.strip() else "its solution section is empty"


def _has_grave_issue(facts: Facts) -> str:
    named = facts.grave_issues or facts.sent_back
    return "" if named else "no critical or high issue is linked to it, and no verdict sends it back"


def _signed_off(facts: Facts) -> str:
    if facts.grave_issues:
        return "a critical or high issue stands"
    if facts.open_conflicts:
        return "a critical or high conflict is undecided"
    return "" if facts.signed_off else "the reviewer did not sign it off"


def _all_answered(facts: Facts) -> str:
    return f"not answered: {', '.join(facts.open_issues)}" if facts.open_issues else ""


def _has_reason(facts: Facts) -> str:
    return "" if facts.reason.strip() else "it needs a reason"


def _confirmed(facts: Facts) -> str:
    return "" if facts.confirmation else "nobody confirmed it yet"


def _known_with_reason(facts: Facts) -> str:
    return _has_reason(facts) if facts.known else "the gap is not known"


def _split(facts: Facts) -> str:
    return "" if facts.children >= 2 else "a split has at least two children"


def _has_blocker(facts: Facts) -> str:
    if facts.blocker is None:
        return "the kind of blocker is not named"
    return "" if facts.unblock_action.strip() else "it does not say what would unblock it"


def _unblocked(facts: Facts) -> str:
    return "" if facts.unblocked else "the blocker still stands"


def _risk_accepted(facts: Facts) -> str:
    named = facts.blocker_name.strip()
    return "" if named and named in facts.acceptance else "the typed acceptance does not name the blocker"


@dataclass(frozen=True, slots=True)
class Move:
    """One move of a gap: who may make it, on which event, and what must hold."""

    rule: str
    sources: frozenset[GapState]
    target: GapState
    actors: frozenset[Actor]
    trigger: str
    guard: Guard


def _move(
    rule: str, sources: Collection[GapState], target: GapState, who: Collection[Actor], on: str, guard: Guard
) -> Move:
    return Move(rule, frozenset(sources), target, frozenset(who), on, guard)


G, E, R, U, S = GapState, {Actor.ENGINEER}, {Actor.REVIEWER}, {Actor.USER}, {Actor.SYSTEM}

# There is no move from ACCEPTED back to PROPOSED. Anything not listed here is refused.
MOVES: tuple[Move, ...] = (
    _move("L1", {G.OPEN}, G.IN_PROGRESS, E, "takes the gap", _assigned),
    _move("L2", {G.IN_PROGRESS}, G.PROPOSED, E, "the document has a heading for it", _has_solution),
    _move("L3", {G.PROPOSED}, G.NEEDS_REVISION, R, "critical or high issue", _has_grave_issue),
    _move("L4", {G.PROPOSED}, G.ACCEPTED, R, "no critical or high issue", _signed_off),
    _move("L5", {G.NEEDS_REVISION}, G.PROPOSED, E, "revised", _all_answered),
    _move("L6", {G.OPEN, G.IN_PROGRESS, G.NEEDS_REVISION}, G.USER_DEFERRED, U, "defers", _has_reason),
    _move("L7", {G.USER_DEFERRED}, G.OPEN, U, "reopens", _free),
    _move("L8", set(GapState) - TERMINAL, G.WONT_FIX, U, "closes", _has_reason),
    _move("L9", {G.ACCEPTED}, G.RESOLVED, S, "confirmed", _confirmed),
    _move("L10", {G.OPEN}, G.BLOCKED_EXTERNAL, E, "declares missing input", _known_with_reason),
    _move("L11", {G.BLOCKED_EXTERNAL}, G.OPEN, U, "supplies the input", _free),
    _move("L12", {G.BLOCKED_EXTERNAL}, G.USER_DEFERRED, U, "defers", _has_reason),
    _move("L13", WORKING, G.SUPERSEDED, U, "accepts a split", _split),
    _move("L14", {G.IN_PROGRESS, G.NEEDS_REVISION}, G.BLOCKED, E | S, "finds a blocker", _has_blocker),
    _move("L15", {G.BLOCKED}, G.IN_PROGRESS, S, "the blocker is gone", _unblocked),
    _move("L16", {G.BLOCKED}, G.IN_PROGRESS, U, "forces it", _risk_accepted),
)


class IllegalMove(Exception):
    """The table has no such move for this actor, or the guard of the move refuses it."""


def move(state: GapState, target: GapState, actor: Actor, facts: Facts) -> Move:
    """Return the move that this actor makes. Raises IllegalMove, with the reason, if it is not allowed."""
    for edge in MOVES:
        if state in edge.sources and target is edge.target and actor in edge.actors:
            if why := edge.guard(facts):
                raise IllegalMove(f"{edge.rule} {state} to {target}: {why}.")
            return edge
    raise IllegalMove(f"The {actor} cannot take a gap from {state} to {target}.")


def reviewed(facts: Facts) -> Move | None:
    """Return the move of a proposed gap after a review: back to revision or to acceptance; None if it stays.

    The issues count, not the word: a gap that is approved with a high issue goes back.
    """
    for target in (GapState.NEEDS_REVISION, GapState.ACCEPTED):
        try:
            return move(GapState.PROPOSED, target, Actor.REVIEWER, facts)
        except IllegalMove:
            continue
    return None


# --- Counting ---------------------------------------------------------------------------------------------


def open_count(states: Iterable[GapState]) -> float:
    """Return how many gaps are open; parked ones count in part."""
    return float(sum(STATES[state].weight for state in states))


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

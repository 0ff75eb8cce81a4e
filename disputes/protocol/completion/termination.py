"""When and how work may end: the types, the limits, and the one procedure that decides (END-1 to END-7).

The program only offers an end. `decide` alone says which one is open, and each of its answers is one
step: go on, ask a person something, or end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from disputes.protocol.completion.acknowledgement import Acknowledgement, Leftover, Obstacle, refusals
from disputes.protocol.completion.convergence import State
from disputes.protocol.reviews.severity import is_grave, total_weight
from disputes.protocol.rounds.gaps import SETTLED, GapState
from tasks.configuration.policy import DEFAULTS, ProjectSettings
from tasks.states import Severity
from tasks.text.counting import counted


class Exit(StrEnum):
    """How work ended. MAX_ROUNDS is a choice on the way and is never recorded as the end."""

    COMPLETE = "complete"
    GOOD_ENOUGH = "good_enough"
    USER_APPROVED = "user_approved"
    MAX_ROUNDS = "max_rounds"
    STALL_EXIT = "stall_exit"
    ABANDONED = "abandoned"


class Ask(StrEnum):
    """What a person asked for."""

    NOTHING = "nothing"
    STOP = "stop"
    ACCEPT = "accept"  # accept what there is, at the limit of rounds
    FORCE_COMPLETE = "force_complete"  # force the end in a divergence warning
    ABANDON = "abandon"


class Next(StrEnum):
    """What happens next."""

    END = "end"
    CONTINUE = "continue"
    CONFLICTS = "conflicts"  # a person rules on the open conflicts first
    FINAL_REVIEW = "final_review"
    MAX_ROUNDS = "max_rounds"  # a person extends, accepts or abandons
    DIVERGENCE = "divergence"  # a person chooses among the options of CONV-7
    GATES = "gates"  # acknowledgements are missing


@dataclass(frozen=True, slots=True)
class Gap:
    """One gap in its current state; `reason` says why it was parked."""

    code: str
    severity: Severity | None
    state: GapState
    title: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that decides whether work may end; `conflicts` are those that nobody has ruled on.

    `ready` is the result of the final review, None if it has not been held.
    """

    gaps: Sequence[Gap]
    conflicts: Sequence[Leftover] = ()
    rounds: int = 0
    max_rounds: int = 10
    convergence: State = State.CONVERGING
    ready: bool | None = None
    asked: Ask = Ask.NOTHING
    acknowledgement: Acknowledgement = field(default_factory=Acknowledgement)


@dataclass(frozen=True, slots=True)
class Result:
    """The one answer of the procedure. `exit` is set exactly if `next` is END; `step` is END-1 to END-7."""

    next: Next
    step: str
    exit: Exit | None = None
    why: str = ""
    conflicts: tuple[Leftover, ...] = ()
    left: tuple[Leftover, ...] = ()
    refusals: tuple[Obstacle, ...] = ()


# --- Limits -----------------------------------------------------------------------------------------------


def max_rounds(initial_gaps: int, settings: ProjectSettings = DEFAULTS) -> int:
    """Return the limit of rounds for a project that began with so many gaps: six for ten, at least 10.

    It never exceeds the hard limit (END-4).
    """
    limit = settings.max_rounds or max(10, (3 * initial_gaps + 4) // 5)
    return min(limit, settings.hard_limit)


def extended(limit: int, settings: ProjectSettings = DEFAULTS) -> int:
    """Return the limit after a person extends it. Raises ValueError if the hard limit is reached."""
    if limit >= settings.hard_limit:
        raise ValueError(f"There are {limit} rounds; {settings.hard_limit} are the most.")
    return min(limit + settings.extend_by, settings.hard_limit)


def is_complete(gaps: Iterable[Gap], settings: ProjectSettings = DEFAULTS) -> bool:
    """Whether every gap is settled, or deferred within the limits for severity and total weight (END-3)."""
    rest = [gap for gap in gaps if gap.state not in SETTLED]
    return (
        all(gap.state is GapState.USER_DEFERRED and not is_grave(gap.severity) for gap in rest)
        and total_weight((gap.severity for gap in rest), settings.severity_weights)
        <= settings.complete_deferred_weight_max
    )


def left_over(standing: Standing) -> tuple[Leftover, ...]:
    """Return what an early end leaves behind: gaps that are not settled, and critical or high conflicts.

    A deferred gap counts as left over. Conflicts below high block nothing and become known limitations.
    """
    gaps = [Leftover(gap.code, gap.severity, gap.title) for gap in standing.gaps if gap.state not in SETTLED]
    return (*gaps, *(each for each in standing.conflicts if is_grave(each.severity)))


# --- The procedure ----------------------------------------------------------------------------------------


def decide(standing: Standing, settings: ProjectSettings = DEFAULTS) -> Result:
    """Return what happens next, by END-1 to END-7 in order; completeness comes before the limit of rounds."""
    asked = standing.asked
    if asked is Ask.ABANDON:
        return Result(Next.END, "END-1", Exit.ABANDONED, "a person abandoned it")
    if critical := _of(standing.conflicts, Severity.CRITICAL):
        return Result(Next.CONFLICTS, "END-2", why="a critical conflict is undecided", conflicts=critical)
    high = _of(standing.conflicts, Severity.HIGH)
    ends = asked is _way_out(standing)
    # With a high conflict open, a person may still end the work, but only through the gates of END-7.
    if is_complete(standing.gaps, settings) and not (high and ends):
        return _finished(standing, high)
    if ends:
        return _gated(standing, Exit.STALL_EXIT if asked is Ask.FORCE_COMPLETE else Exit.USER_APPROVED)
    if standing.rounds >= standing.max_rounds:
        why = f"it has used {standing.rounds} of {counted(standing.max_rounds, 'round')}"
        return Result(Next.MAX_ROUNDS, "END-4", why=why, left=left_over(standing))
    if standing.convergence is State.DIVERGENCE_WARNING:
        return Result(Next.DIVERGENCE, "END-5", why="more comes up than is settled, or nothing is")
    return Result(Next.CONTINUE, "END-6", why="nobody asked to stop")


def _way_out(standing: Standing) -> Ask:
    """Return the request that leads to the gates in the current situation (END-7)."""
    if standing.rounds >= standing.max_rounds:
        return Ask.ACCEPT
    return Ask.FORCE_COMPLETE if standing.convergence is State.DIVERGENCE_WARNING else Ask.STOP


def _of(conflicts: Iterable[Leftover], severity: Severity) -> tuple[Leftover, ...]:
    return tuple(each for each in conflicts if each.severity is severity)


def _finished(standing: Standing, high: tuple[Leftover, ...]) -> Result:
    """Return what happens next when nothing is left to work on (END-3)."""
    if high:
        return Result(Next.CONFLICTS, "END-3", why="a high conflict is undecided", conflicts=high)
    if standing.ready is None:
        return Result(Next.FINAL_REVIEW, "END-3", why="everything is settled")
    if standing.ready:
        return Result(Next.END, "END-3", Exit.COMPLETE, "everything is settled, and the final review agrees")
    return Result(Next.CONTINUE, "END-3", why="the final review found something to settle")


def _gated(standing: Standing, kind: Exit) -> Result:
    """Require that what is left over is acknowledged; the kind of end follows from what that is (END-7)."""
    left = left_over(standing)
    if missing := refusals(left, standing.acknowledgement):
        why = "; ".join(each.why for each in missing)
        return Result(Next.GATES, "END-7", why=why, left=left, refusals=missing)
    grave = any(is_grave(each.severity) for each in left)
    ends_as = kind if grave or kind is Exit.STALL_EXIT else Exit.GOOD_ENOUGH
    return Result(Next.END, "END-7", ends_as, f"{len(left)} acknowledged", left=left)

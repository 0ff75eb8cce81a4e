"""The states of a conflict, and the one table of moves between them.

A conflict that was decided also says what became of its ruling. Both columns move together, so a state is
the pair of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from tasks.states import IllegalMove


class ConflictStatus(StrEnum):
    OPEN = "open"
    DECIDED = "decided"
    LOGGED = "logged"
    MOOT = "moot"


class Followed(StrEnum):
    """What became of a ruling (DEC-13)."""

    WAITING = "waiting"
    APPLIED = "applied"
    NOT_HONOURED = "not_honoured"
    CANNOT_TELL = "cannot_tell"
    REOPENED = "reopened"


class ConflictState(NamedTuple):
    """The state of a conflict: open, logged or moot, or decided with what became of its ruling."""

    status: ConflictStatus
    followed: Followed | Literal[""] = ""

    def __str__(self) -> str:
        return ", ".join(word.replace("_", " ") for word in self if word)


OPEN, LOGGED, MOOT = (
    ConflictState(ConflictStatus.OPEN),
    ConflictState(ConflictStatus.LOGGED),
    ConflictState(ConflictStatus.MOOT),
)
WAITING = ConflictState(ConflictStatus.DECIDED, Followed.WAITING)
APPLIED = ConflictState(ConflictStatus.DECIDED, Followed.APPLIED)
NOT_HONOURED = ConflictState(ConflictStatus.DECIDED, Followed.NOT_HONOURED)
CANNOT_TELL = ConflictState(ConflictStatus.DECIDED, Followed.CANNOT_TELL)
REOPENED = ConflictState(ConflictStatus.DECIDED, Followed.REOPENED)
JUDGED = frozenset({APPLIED, NOT_HONOURED, CANNOT_TELL})
STATES = frozenset({OPEN, LOGGED, MOOT, WAITING, REOPENED}) | JUDGED


@dataclass(frozen=True, slots=True)
class ConflictMove:
    """One verb: the states that it starts from, the one it leads to, and the event that reports it."""

    sources: frozenset[ConflictState]
    target: ConflictState
    event: str


def _move(sources: Iterable[ConflictState], target: ConflictState, event: str) -> ConflictMove:
    return ConflictMove(frozenset(sources), target, event)


MOVES: dict[str, ConflictMove] = {
    "rule": _move({OPEN}, WAITING, "ruled"),
    "drop": _move({OPEN}, MOOT, "conflict_moot"),
    "restore": _move({MOOT}, OPEN, "conflict_restored"),
    "undo": _move({WAITING} | JUDGED, OPEN, "ruling_undone"),
    "reopen": _move({WAITING} | JUDGED, REOPENED, "ruling_reopened"),
    "mark_applied": _move({WAITING}, APPLIED, "ruling_applied"),
    "mark_not_honoured": _move({WAITING}, NOT_HONOURED, "ruling_not_honoured"),
    "mark_unclear": _move({WAITING}, CANNOT_TELL, "ruling_unclear"),
    "await_again": _move(JUDGED | {REOPENED}, WAITING, "ruling_awaited"),
    "archive": _move(STATES - {MOOT}, MOOT, "conflict_archived"),
}
# The verb that records what became of a ruling.
MARKS = {
    Followed.APPLIED: "mark_applied",
    Followed.NOT_HONOURED: "mark_not_honoured",
    Followed.CANNOT_TELL: "mark_unclear",
}


class IllegalConflictMove(IllegalMove):
    """The table does not allow this verb in the current state of the conflict."""

    def __init__(self, verb: str, state: ConflictState) -> None:
        self.verb, self.state = verb, state
        sources = "; ".join(sorted(map(str, MOVES[verb].sources)))
        said = f"A conflict that is {state} cannot {verb.replace('_', ' ')}; that needs {sources}."
        Exception.__init__(self, said)


def target(verb: str, state: ConflictState) -> ConflictState:
    """Return the state that `verb` leads to from `state`.

    Raises IllegalConflictMove if the table has no such move, and KeyError if the verb is unknown.
    """
    move = MOVES[verb]
    if state not in move.sources:
        raise IllegalConflictMove(verb, state)
    return move.target

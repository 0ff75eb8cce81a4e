"""Core: the statuses of a task and the one table of moves between them.

Everything that asks what a status means or whether a move is legal asks here: the verbs on the model, the
loop, TODO.md, the pages, the API. Nothing in this module imports Django.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    REVIEW = "review"
    COMPLETED = "completed"
    DISPUTED = "disputed"
    FAILED = "failed"
    DEFERRED = "deferred"
    CANCELLED = "cancelled"


class Severity(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


SEVERITY_RANK = {Severity.CRITICAL: 3, Severity.HIGH: 2, Severity.MEDIUM: 1, Severity.LOW: 0}


def severity_rank(severity: str) -> int:
    """Return 3 for critical down to 0 for low; an unknown severity counts as medium (SEV-9)."""
    try:
        return SEVERITY_RANK[Severity(severity)]
    except ValueError:
        return SEVERITY_RANK[Severity.MEDIUM]


def worst(severities: Iterable[str]) -> Severity:
    """Return the highest of the severities (SEV-5), or medium if there are none (SEV-9)."""
    ranks = [severity_rank(severity) for severity in severities]
    by_rank = {rank: severity for severity, rank in SEVERITY_RANK.items()}
    return by_rank[max(ranks)] if ranks else Severity.MEDIUM


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one status means to TODO.md, to the loop and to people."""

    marker: str
    label: str
    pick: str = ""  # the role that the loop starts; empty: the loop skips the task
    order: int = 0  # the loop takes lower ones first
    finished: bool = False
    waits_for_human: bool = False


MEANINGS: dict[Status, Meaning] = {
    Status.PENDING: Meaning(" ", "Pending", pick="coder", order=3),
    Status.IN_PROGRESS: Meaning("-", "In progress", pick="coder", order=2),
    Status.REVIEW: Meaning("o", "Review", pick="reviewer", order=1),
    Status.COMPLETED: Meaning("x", "Completed", finished=True),
    Status.DISPUTED: Meaning("!", "Disputed", waits_for_human=True),
    Status.FAILED: Meaning("F", "Failed", waits_for_human=True),
    Status.DEFERRED: Meaning(">", "Deferred"),
    Status.CANCELLED: Meaning("~", "Cancelled", finished=True),
}
MARKERS: dict[str, Status] = {meaning.marker: status for status, meaning in MEANINGS.items()}
STARTABLE = frozenset(status for status, meaning in MEANINGS.items() if meaning.pick)
UNFINISHED = frozenset(status for status, meaning in MEANINGS.items() if not meaning.finished)


@dataclass(frozen=True, slots=True)
class Move:
    """One verb, with the statuses that it starts from and those that it may lead to."""

    sources: frozenset[Status]
    targets: frozenset[Status]

    def leads_on_from(self, status: str) -> bool:
        """Whether it may start from the status and leads to another one, so that people are offered it."""
        return status in self.sources and self.targets != {status}


def _move(sources: Iterable[Status], *targets: Status) -> Move:
    return Move(frozenset(sources), frozenset(targets))


P, I, R, C, D, F, V, X = (  # noqa: E741  (one letter a column keeps the table readable)
    Status.PENDING,
    Status.IN_PROGRESS,
    Status.REVIEW,
    Status.COMPLETED,
    Status.DISPUTED,
    Status.FAILED,
    Status.DEFERRED,
    Status.CANCELLED,
)

MOVES: dict[str, Move] = {
    "start": _move({P}, I),
    "submit": _move({I}, R),
    "send_back": _move({R}, I),
    "reject": _move({R}, I),
    "approve": _move({R}, C),
    "pass_round": _move({R, D}, I),
    "next_round": _move({I}, I),
    "review_rest": _move({I}, R),
    "advance": _move({R, D}, I),
    "backflow": _move({I}, I),
    "forward": _move({I}, I),
    "hold": _move({I, R}, D),
    "ship": _move({R}, D),
    "stop_for_help": _move({P, I, R, C}, D),
    "escalate": _move({I}, I),
    "exhaust": _move({R}, F),
    "rule_revise": _move({D, R, C, I}, I),
    "rule_review": _move({D}, R),
    "rule_accept": _move({D}, C),
    "undo": _move({I, P, R, C, D, V, X}, D, F, I, R, C, V),
    "clash": _move({C}, I),
    "review_again": _move({C, D}, R),
    "retry": _move({D, F}, I, P, R),
    "defer": _move(UNFINISHED, V),
    "resume": _move({V}, P, I, D),
    "cancel": _move({P, I, R, C, D, F, V}, X),
    "finish": _move(UNFINISHED, C),
    "reopen": _move({C, X}, I, P),
    "rollback": _move({I, R, D, F}, I),
    "restore": _move({P, I, R, C, D, F, X}, P, I, R, X),
}


class IllegalMove(Exception):
    """The table does not allow this verb from the task's present status."""

    def __init__(self, verb: str, status: str) -> None:
        self.verb, self.status = verb, status
        sources = ", ".join(sorted(MOVES[verb].sources))
        super().__init__(f"A task that is {status} cannot {verb.replace('_', ' ')}; that needs {sources}.")


def target(verb: str, status: str, to: str | None = None) -> Status:
    """Return the status that `verb` leads to from `status`; `to` chooses among several targets.

    Raises IllegalMove if the verb does not start from `status`, KeyError if the verb is unknown, and
    ValueError if `to` is missing or is not one of the targets.
    """
    move = MOVES[verb]
    if status not in move.sources:
        raise IllegalMove(verb, status)
    if to is None:
        if len(move.targets) != 1:
            raise ValueError(f"{verb} has several targets; name one of {sorted(move.targets)}.")
        return next(iter(move.targets))
    if to not in move.targets:
        raise ValueError(f"{verb} does not lead to {to}.")
    return Status(to)

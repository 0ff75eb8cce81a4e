"""The one place that decides where a task goes after a review or a ruling."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tasks.configuration.policy import HOLD, SHIP


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105  (a verdict, not a password)
    REVISE = "revise"
    HOLD = "hold"
    SHIP = "ship"


@dataclass(frozen=True, slots=True)
class OpenConflict:
    """One undecided conflict; `finding` is None if the whole task is disputed."""

    finding: int | None
    effect: str  # hold, ship or log


def gate(mandatory: Iterable[int], conflicts: Iterable[OpenConflict]) -> Outcome:
    """Return where the task goes: pass, revise, hold or ship (GATE-1).

    `mandatory` are the keys of the mandatory findings, as first raised. They block unless they are in an open
    conflict that the project lets pass. An open conflict that holds takes precedence over everything; one
    that is only logged asks for nothing.
    """
    open_conflicts = list(conflicts)
    if any(conflict.effect == HOLD for conflict in open_conflicts):
        return Outcome.HOLD
    if {*mandatory} - {conflict.finding for conflict in open_conflicts}:
        return Outcome.REVISE
    ships = any(conflict.effect == SHIP for conflict in open_conflicts)
    return Outcome.SHIP if ships else Outcome.PASS

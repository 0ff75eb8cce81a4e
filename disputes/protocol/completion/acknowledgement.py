"""What a person must type before work may end with something left over (END-8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from disputes.protocol.reviews.severity import counts_as
from tasks.states import Severity


class Gate(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    LIMITATIONS = "limitations"


@dataclass(frozen=True, slots=True)
class Demand:
    """What one gate asks for: an exact phrase and a rationale for each item, or the list to be confirmed."""

    severities: frozenset[Severity]
    phrase: str = ""
    rationales: bool = False


DEMANDS: dict[Gate, Demand] = {
    Gate.CRITICAL: Demand(
        frozenset({Severity.CRITICAL}),
        "I accept CRITICAL points knowing the result may be unusable",
        rationales=True,
    ),
    Gate.HIGH: Demand(frozenset({Severity.HIGH}), "I acknowledge", rationales=True),
    Gate.LIMITATIONS: Demand(frozenset({Severity.MEDIUM, Severity.LOW})),
}


@dataclass(frozen=True, slots=True)
class Leftover:
    """A gap or a conflict that is left over; an unstated severity counts as medium (SEV-9)."""

    code: str
    severity: Severity | None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What a person typed: the phrase for each gate, a rationale by code, and the confirmed codes."""

    phrases: Mapping[Gate, str] = field(default_factory=dict)
    rationales: Mapping[str, str] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()
    by: str = ""
    at: str = ""  # ISO 8601, UTC


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a gate does not open, and the codes that it is about."""

    gate: Gate
    why: str
    codes: tuple[str, ...]


def gate_of(severity: str | None) -> Gate:
    """Return the gate that something of this severity must pass."""
    counted = counts_as(severity)
    return next(gate for gate, demand in DEMANDS.items() if counted in demand.severities)


def gates_for(left: Iterable[Leftover]) -> tuple[Gate, ...]:
    """Return the gates to pass before work ends with these things left over, the gravest first."""
    needed = {gate_of(each.severity) for each in left}
    return tuple(gate for gate in Gate if gate in needed)


def refusals(left: Sequence[Leftover], typed: Acknowledgement) -> tuple[Obstacle, ...]:
    """Return what is still missing from an acknowledgement; empty if every gate is passed (END-8).

    A phrase is compared letter by letter, without the blanks around it.
    """
    found: list[Obstacle] = []
    for gate in gates_for(left):
        demand = DEMANDS[gate]
        codes = tuple(each.code for each in left if gate_of(each.severity) is gate)
        if demand.phrase and typed.phrases.get(gate, "").strip() != demand.phrase:
            found.append(Obstacle(gate, f"type exactly: {demand.phrase}", codes))
        silent = tuple(code for code in codes if not typed.rationales.get(code, "").strip())
        if demand.rationales and silent:
            found.append(Obstacle(gate, "a rationale is needed for each", silent))
        unseen = tuple(code for code in codes if code not in typed.confirmed)
        if not demand.phrase and unseen:
            found.append(Obstacle(gate, "confirm the list of what is left", unseen))
    return tuple(found)

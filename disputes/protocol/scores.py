"""How far each heuristic may be trusted: what people made of its flags (A5, R8-003)."""

from dataclasses import dataclass
from enum import StrEnum

PENALTY = 0.1  # false_positive_penalty
MATCHING_ROUNDS = 10
MATCHING_PRECISION = 0.8


@dataclass(frozen=True, slots=True)
class Score:
    """What became of one heuristic's flags; `missed` are silences that a person found instead."""

    confirmed: int = 0
    refused: int = 0
    missed: int = 0

    @property
    def flags(self) -> int:
        """Flags that a human has judged."""
        return self.confirmed + self.refused

    @property
    def precision(self) -> float | None:
        """The share of its flags that were right, 0 to 1; None before the first one is judged."""
        return self.confirmed / self.flags if self.flags else None

    @property
    def recall(self) -> float | None:
        """The share of the silences that it found, 0 to 1; None where there was none."""
        there = self.confirmed + self.missed
        return self.confirmed / there if there else None


def heuristic_weight(refused: int, penalty: float = PENALTY) -> float:
    """The weight of a heuristic after so many false alarms, 0 to 1 (A5). It is shown and disables nothing."""
    return max(0.0, round(1.0 - refused * penalty, 6))


class Matching(StrEnum):
    """What is known about matching by keywords."""

    TOO_EARLY = "too early"
    GOOD = "good enough"
    REPLACE = "replace it"


def keyword_matching(score: Score, rounds: int) -> Matching:
    """Whether keyword matching is good enough: precision above 80 % after ten rounds (R8-003)."""
    if rounds < MATCHING_ROUNDS or score.precision is None:
        return Matching.TOO_EARLY
    return Matching.GOOD if score.precision > MATCHING_PRECISION else Matching.REPLACE

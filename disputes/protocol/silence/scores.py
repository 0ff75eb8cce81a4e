"""How far each heuristic can be trusted, judging by what people made of its flags (SIL-14)."""

from dataclasses import dataclass

PENALTY = 0.1  # the default of the setting false_positive_penalty


@dataclass(frozen=True, slots=True)
class Score:
    """How many flags of one heuristic people confirmed and how many they called false alarms."""

    confirmed: int = 0
    refused: int = 0

    @property
    def flags(self) -> int:
        """The number of flags that a person has judged."""
        return self.confirmed + self.refused

    @property
    def precision(self) -> float | None:
        """The share of judged flags that were right, 0 to 1; None until one has been judged."""
        return self.confirmed / self.flags if self.flags else None


def heuristic_weight(refused: int, penalty: float = PENALTY) -> float:
    """Return the weight of a heuristic after so many false alarms, 0 to 1. It is shown but has no effect."""
    return max(0.0, round(1.0 - refused * penalty, 6))

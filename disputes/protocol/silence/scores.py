"""How far each heuristic may be trusted: what people made of its flags (SIL-14)."""

from dataclasses import dataclass

PENALTY = 0.1  # false_positive_penalty


@dataclass(frozen=True, slots=True)
class Score:
    """What became of one heuristic's flags."""

    confirmed: int = 0
    refused: int = 0

    @property
    def flags(self) -> int:
        """Flags that a human has judged."""
        return self.confirmed + self.refused

    @property
    def precision(self) -> float | None:
        """The share of flags that were right, 0 to 1; None until one has been judged."""
        return self.confirmed / self.flags if self.flags else None


def heuristic_weight(refused: int, penalty: float = PENALTY) -> float:
    """The weight of a heuristic after these false alarms, 0 to 1. It is only shown and disables nothing."""
    return max(0.0, round(1.0 - refused * penalty, 6))

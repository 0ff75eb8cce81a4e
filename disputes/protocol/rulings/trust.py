"""When a judge has earned the right to rule alone: by how often people ruled as it had said (ARB-10)."""

from dataclasses import dataclass
from hashlib import blake2b
from math import sqrt

Z = 1.96  # of a confidence of 95 %
NEWEST = 100  # rulings of one kind that count: who gets worse loses the right
AUDIT_EVERY = 5  # one dispute in so many waits for people although the judge might rule


@dataclass(frozen=True, slots=True)
class Record:
    """How often a judge and people ruled alike on one kind of finding."""

    agreed: int
    judged: int

    @property
    def at_least(self) -> float:
        """The lower limit of its agreement: Wilson's, so that a few rulings alone prove little."""
        if not self.judged:
            return 0.0
        share, n = self.agreed / self.judged, self.judged
        middle = share + Z * Z / (2 * n)
        spread = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
        return max((middle - spread) / (1 + Z * Z / n), 0.0)

    def reaches(self, bound: float) -> bool:
        """Whether it may rule alone, where so much agreement is asked for; 0: never."""
        return 0 < bound <= self.at_least

    def __str__(self) -> str:
        return f"{self.agreed} of {self.judged}, so at least {self.at_least:.0%}"


def is_sampled(number: int, secret: str) -> bool:
    """Whether the dispute of this number waits for people, so that agreement goes on being measured.

    One in AUDIT_EVERY, always the same ones. Without the secret nobody tells beforehand which.
    """
    drawn = blake2b(f"{secret}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") % AUDIT_EVERY == 0

"""When a judge has earned the right to rule alone, by how often people ruled as it had said (ARB-10)."""

from dataclasses import dataclass
from hashlib import blake2b

from disputes.protocol.rulings.figures import wilson

NEWEST = 100  # how many rulings of one kind count, so that a judge that gets worse loses the right
AUDIT_EVERY = 5  # one dispute in so many waits for people although the judge might rule


@dataclass(frozen=True, slots=True)
class Record:
    """How often a judge and people agreed on one kind of finding."""

    agreed: int
    judged: int

    @property
    def at_least(self) -> float:
        """The lower limit of the agreement (Wilson's, so that a few rulings alone prove little)."""
        return wilson(self.agreed, self.judged)[0]

    def reaches(self, bound: float) -> bool:
        """Whether the judge may rule alone if so much agreement is required; 0 means never (ARB-10)."""
        return 0 < bound <= self.at_least

    def __str__(self) -> str:
        return f"{self.agreed} of {self.judged}, so at least {self.at_least:.0%}"


def is_sampled(number: int, secret: str) -> bool:
    """Whether the dispute with this number waits for people, so that the agreement goes on being measured.

    One in AUDIT_EVERY does, always the same ones. Nobody can tell beforehand which without the secret.
    """
    drawn = blake2b(f"{secret}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") % AUDIT_EVERY == 0

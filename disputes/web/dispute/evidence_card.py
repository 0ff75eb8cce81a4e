"""The card of a suspicion: facts in rows, a meter, and signs for either reading of it (SIL-11). Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from disputes.protocol.silence.suspicion import LEVELS, SEEN_AS, Level
from tasks.text.regex import regex

MEANINGS = {
    Level.LOG: "listed only",
    Level.WARN: "a human should look",
    Level.REVIEW: "it turns the finding away without an alternative",
    Level.BLOCK: "the task waits for a human",
    Level.SYSTEMATIC: "passed over again and again",
}
# The row to which a line of evidence belongs, by its words (`protocol.evidence`); the first match counts.
_ROWS = (
    ("Asked again", regex(r"^Reopened by ")),
    ("Ruled before", regex(r"^C-\d+ was ruled ")),
    ("Reference", regex(r"^(no table row|answered in line|mentioned in|it has no id|possible match)")),
    ("Place", regex(r"^section |of its impact's words")),
    ("Other findings", regex(r"other findings are answered$")),
    ("Same concern", regex(r"^(the same concern|rolled back)")),
    ("Phrase", regex(r"^phrase: ")),
    ("Finding", regex(r'^\S+ \([^)]*\): "')),
)
_SIGN = regex(r"^(forgot|avoided)\? (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Meter:
    """The share of the finding's words that occur in the change, and the share from which it counts."""

    share: float
    minimum: float

    @property
    def percent(self) -> int:
        return round(min(max(self.share, 0.0), 1.0) * 100)

    @property
    def mark(self) -> int:
        return round(self.minimum * 100)


@dataclass(slots=True)
class EvidenceCard:
    """Facts as named rows of lines, signs of forgetting and of avoiding, and the level."""

    rows: dict[str, list[str]] = field(default_factory=dict)
    overlooked: list[str] = field(default_factory=list)
    avoided: list[str] = field(default_factory=list)
    level: str = ""
    checks: list[str] = field(default_factory=list)
    meter: Meter | None = None

    @classmethod
    def of(
        cls,
        lines: Iterable[object],
        *,
        level: str = "",
        heuristics: Iterable[object] = (),
        overlap: float | None = None,
        minimum: float = 0.0,
    ) -> "EvidenceCard":
        """Return the card of a flag; for a conflict without a flag, only of the lines."""
        card = cls()
        for line in map(str, lines):
            card._add(line)
        card.level = level if level in LEVELS else ""
        card.checks = [SEEN_AS.get(str(name), str(name)) for name in heuristics]
        if overlap is not None:
            card.meter = Meter(overlap, minimum)
            card.rows.setdefault("Place", [])
        return card

    def _add(self, line: str) -> None:
        if sign := _SIGN.match(line):
            (self.overlooked if sign[1] == "forgot" else self.avoided).append(sign[2])
            return
        name = next((name for name, looks in _ROWS if looks.search(line)), "Found")
        self.rows.setdefault(name, []).append(line)

    @property
    def meaning(self) -> str:
        return MEANINGS[Level(self.level)] if self.level else ""

    @property
    def steps(self) -> list[tuple[str, bool]]:
        """The levels from mildest to gravest, each with whether it is reached."""
        reached = LEVELS.index(Level(self.level)) if self.level else -1
        return [(str(level), index <= reached) for index, level in enumerate(LEVELS)]

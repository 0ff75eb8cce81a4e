"""The values of the silence check: what is watched, what fires, and how strong it is (SIL-1 to SIL-13)."""

from dataclasses import dataclass
from enum import StrEnum

from tasks.configuration.policy import DEFAULTS, ProjectSettings
from tasks.states import Severity

WATCHED = frozenset({Severity.HIGH, Severity.CRITICAL})


class Heuristic(StrEnum):
    """A sign that raises a flag (SIL-1 to SIL-5); the value is what is stored."""

    NO_REFERENCE = "H1"
    REPEATED_ROLLBACK = "H2"
    UNJUSTIFIED_DOWNGRADE = "H3"
    NO_CHANGE = "H4"
    DEFLECTION = "H5"


# What each heuristic noticed, in the words that people read.
SEEN_AS: dict[str, str] = {
    Heuristic.NO_REFERENCE: "no answer names it",
    Heuristic.REPEATED_ROLLBACK: "rolled back again",
    Heuristic.UNJUSTIFIED_DOWNGRADE: "called resolved without cause",
    Heuristic.NO_CHANGE: "its place was not changed",
    Heuristic.DEFLECTION: "turned away",
}


class Level(StrEnum):
    LOG = "log"
    REVIEW = "review"
    WARN = "warn"
    BLOCK = "block"
    SYSTEMATIC = "systematic"


LEVELS = list(Level)  # from the weakest to the strongest
STEP_DOWN = {Level.BLOCK: Level.WARN, Level.WARN: Level.LOG}  # merely mentioned (SIL-10)


class Confidence(StrEnum):
    MEDIUM = "medium"
    HIGH = "high"


CONFIDENCE = {
    Heuristic.NO_REFERENCE: Confidence.HIGH,
    Heuristic.REPEATED_ROLLBACK: Confidence.MEDIUM,
    Heuristic.UNJUSTIFIED_DOWNGRADE: Confidence.MEDIUM,
    Heuristic.NO_CHANGE: Confidence.MEDIUM,
    Heuristic.DEFLECTION: Confidence.HIGH,
}


@dataclass(frozen=True, slots=True)
class Watched:
    """One finding of an earlier review, with whatever else is known about it.

    `is_due` says that an answer may be expected by now (SIL-6, SIL-7). `is_settled` says that none is needed:
    its gap is in a terminal state or parked, or a person decided or waived it. `rollbacks` are the failure
    patterns for which its gap was rolled back in this round, `silent_rounds` the earlier rounds in which the
    same concern got no answer. `touched` says whether its place changed, or is None if two documents must be
    compared to find out.
    """

    code: str
    ordinal: int
    severity: Severity | None
    title: str = ""
    location: str = ""
    impact: str = ""
    text: str = ""
    gap: str = ""
    is_due: bool = True
    is_settled: bool = False
    is_claimed_resolved: bool = False
    solution: str = ""  # what the document says about the finding's gap
    rollbacks: tuple[str, ...] = ()
    silent_rounds: tuple[int, ...] = ()
    touched: bool | None = None
    reviewed: str = ""  # the document it was raised against, if that is not the previous one

    @property
    def is_grave(self) -> bool:
        return self.severity in WATCHED


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One flag: a finding that may be silently disagreed with, and all evidence for that.

    `overlap` is the share of the keywords of its impact in what changed (SIL-13). `signs` speak for
    forgetting or for avoiding and are no verdicts.
    """

    code: str
    ordinal: int
    severity: Severity | None
    heuristics: tuple[str, ...]
    confidence: str
    level: str
    evidence: tuple[str, ...]
    overlap: float | None = None
    signs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """What the flags of one level in a round amount to."""

    level: str
    codes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of the silence check of one response."""

    flags: tuple[Suspicion, ...]
    alerts: tuple[Alert, ...]


def round_level(
    severity: Severity | None, highs: int, criticals: int, settings: ProjectSettings = DEFAULTS
) -> Level:
    """Return the level of a finding, given the numbers of unanswered findings in its round (SIL-10)."""
    if severity is Severity.CRITICAL and criticals >= settings.critical_block:
        return Level.BLOCK
    if severity is Severity.CRITICAL and criticals >= settings.unaddressed_critical_threshold:
        return Level.WARN
    if severity is Severity.HIGH and highs >= settings.unaddressed_high_threshold:
        return Level.WARN
    return Level.LOG

"""The values of silence: what is watched, what fires, how strong it is (SIL-1 to SIL-13)."""

from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.settings import part_of
from tasks.configuration.policy import ProjectSettings
from tasks.states import Severity

WATCHED = frozenset({Severity.HIGH, Severity.CRITICAL})


class Heuristic(StrEnum):
    """What makes a flag (SIL-1 to SIL-5); the value is what is stored."""

    NO_REFERENCE = "H1"
    REPEATED_ROLLBACK = "H2"
    UNJUSTIFIED_DOWNGRADE = "H3"
    NO_CHANGE = "H4"
    DEFLECTION = "H5"


# What each of them saw, as people read it.
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


LEVELS = list(Level)  # the later one is the stronger one
STEP_DOWN = {Level.BLOCK: Level.WARN, Level.WARN: Level.LOG}  # SIL-10, where it is mentioned


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
class SilenceSettings:
    """The settings that this module reads."""

    unaddressed_high_threshold: int
    unaddressed_critical_threshold: int
    critical_block: int
    pattern_threshold: int
    semantic_overlap_minimum: float
    enable_semantic_check: bool
    soft_match_overlap: float


DEFAULTS = part_of(ProjectSettings(), SilenceSettings)  # for documents without a project


@dataclass(frozen=True, slots=True)
class Watched:
    """One finding of an earlier review, and what is known about it besides.

    `is_due` says that an answer may be expected by now (SIL-6, SIL-7), `is_settled` that none is needed: its
    gap is in a terminal state or parked, or a human decided or waived it. `rollbacks` are the failure
    patterns for which its gap was rolled back in the round, `silent_rounds` the earlier rounds in which the
    same concern found no answer. `touched` tells whether its place changed, where that is known without two
    documents.
    """

    code: str
    ordinal: int
    severity: Severity | None
    title: str = ""
    location: str = ""
    impact: str = ""
    text: str = ""
    gap: str = ""
    gap_state: str = ""
    is_due: bool = True
    is_settled: bool = False
    is_claimed_resolved: bool = False
    solution: str = ""  # what the document says about its gap
    rollbacks: tuple[str, ...] = ()
    silent_rounds: tuple[int, ...] = ()
    touched: bool | None = None
    reviewed: str = ""  # the document it was raised against, where that is not the last one

    @property
    def is_grave(self) -> bool:
        return self.severity in WATCHED


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One finding that may be disagreed with in silence: one flag with all its evidence.

    `overlap` is the share of its impact's keywords in what changed, `signs` are those of forgetting or
    avoiding and no verdicts.
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
    """What a round's suspicions amount to, the strongest first."""

    level: str
    codes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The overlap of SIL-4 for one finding, flagged or not, for calibration (SIL-13)."""

    code: str
    ordinal: int
    substance: str
    overlap: float | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What silence there is in one response.

    `answered` and `pending` hold the positions of the findings as given: answered ones, and ones whose turn
    has not come.
    """

    flags: tuple[Suspicion, ...]
    alerts: tuple[Alert, ...]
    answered: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()
    measured: tuple[Measured, ...] = ()


def round_level(
    severity: Severity | None, highs: int, criticals: int, settings: SilenceSettings = DEFAULTS
) -> Level:
    """The level of a finding, given the number of unanswered ones in its round (SIL-10)."""
    if severity is Severity.CRITICAL and criticals >= settings.critical_block:
        return Level.BLOCK
    if severity is Severity.CRITICAL and criticals >= settings.unaddressed_critical_threshold:
        return Level.WARN
    if severity is Severity.HIGH and highs >= settings.unaddressed_high_threshold:
        return Level.WARN
    return Level.LOG

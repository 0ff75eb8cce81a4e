"""Whether a round may be rolled back, whether somebody is asked first, and which rounds are offered.

Nothing is deleted: documents, states and rulings of the rounds are archived, and rulings can be made
again (RB-1 to RB-7).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.rounds.patterns import DetectedPattern
from disputes.protocol.settings import part_of
from tasks.configuration.policy import ProjectSettings
from tasks.text.counting import counted


class RollbackMode(StrEnum):
    INTERACTIVE = "interactive"
    AUTO_RETRY = "auto_retry"
    STRICT = "strict"


class Trigger(StrEnum):
    """What may ask for a rollback (RB-1)."""

    USER = "user"
    VALIDATION_EXHAUSTED = "validation_exhausted"
    DIVERGENCE = "divergence"


class RollbackOption(StrEnum):
    """What a person may choose when asked about a rollback."""

    ROLL_BACK = "roll_back"
    KEEP = "keep"
    SPLIT_GAP = "split_gap"
    ADD_CONTEXT = "add_context"
    REASSIGN = "reassign"
    FORCE_BEST = "force_best"
    PAUSE = "pause"
    HUMAN_REVIEW = "human_review"
    ACCEPT = "accept"
    ABANDON = "abandon"
    REFRESH_PROMPTS = "refresh_prompts"
    REVERT_TASK = "revert_task"


TITLES: dict[RollbackOption, str] = {
    RollbackOption.ROLL_BACK: "Roll the round back",
    RollbackOption.KEEP: "Keep the round",
    RollbackOption.SPLIT_GAP: "Split the gap",
    RollbackOption.ADD_CONTEXT: "Add context",
    RollbackOption.REASSIGN: "Reassign",
    RollbackOption.FORCE_BEST: "Take the best output there is",
    RollbackOption.PAUSE: "Pause",
    RollbackOption.HUMAN_REVIEW: "A person looks at it",
    RollbackOption.ACCEPT: "Accept it, with the acknowledgements of an early end",
    RollbackOption.ABANDON: "Abandon",
    RollbackOption.REFRESH_PROMPTS: "Rewrite the prompts",
    RollbackOption.REVERT_TASK: "Make a task that reverts what has landed",
}
PLAIN = (RollbackOption.ROLL_BACK, RollbackOption.KEEP)
ANALYSED = (
    RollbackOption.SPLIT_GAP,
    RollbackOption.ADD_CONTEXT,
    RollbackOption.REASSIGN,
    RollbackOption.FORCE_BEST,
    RollbackOption.PAUSE,
)  # RB-6
SPENT = (
    RollbackOption.HUMAN_REVIEW,
    RollbackOption.ACCEPT,
    RollbackOption.ABANDON,
    RollbackOption.REFRESH_PROMPTS,
)  # RB-5
LANDED = (RollbackOption.REVERT_TASK,)


@dataclass(frozen=True, slots=True)
class RollbackSettings:
    """The project settings that limit rollbacks and say who is asked."""

    rollback_mode: str
    max_rollbacks_session: int
    analysis_after: int
    backup_rounds: int


DEFAULTS = part_of(ProjectSettings(), RollbackSettings)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rollback that a person or a rule asks for.

    `of_round` and `of_session` count the rollbacks made so far, including automatic ones; `landed` says
    whether anything of the rounds has reached the target branch.
    """

    round: int
    current: int
    trigger: Trigger
    of_round: int = 0
    of_session: int = 0
    landed: bool = False


@dataclass(frozen=True, slots=True)
class RollbackAnswer:
    """Whether a rollback may happen, whether a person is asked first, and the options they have."""

    allowed: bool
    ask: bool
    analyse: bool = False
    options: tuple[RollbackOption, ...] = ()
    why: str = ""


def may_roll_back(wanted: Wanted, settings: RollbackSettings = DEFAULTS) -> RollbackAnswer:
    """Return whether a round may be rolled back, and who is asked (RB-4, RB-5, RB-7).

    A person's own wish is not asked about again. Raises ValueError if the round does not exist.
    """
    if not 1 <= wanted.round <= wanted.current:
        raise ValueError(f"There is no round {wanted.round}; the last one is {wanted.current}.")
    if wanted.landed:
        why = "Something of it has landed; a task that reverts it can be made."
        return RollbackAnswer(allowed=False, ask=True, options=LANDED, why=why)
    if wanted.of_session >= settings.max_rollbacks_session:
        why = f"It has used {wanted.of_session} of {counted(settings.max_rollbacks_session, 'rollback')}."
        return RollbackAnswer(allowed=False, ask=True, options=SPENT, why=why)
    attempt = wanted.of_round + 1
    mode = RollbackMode(settings.rollback_mode.lower())
    analyse = attempt >= (1 if mode is RollbackMode.STRICT else settings.analysis_after)
    silent = wanted.trigger is Trigger.USER or (mode is RollbackMode.AUTO_RETRY and attempt == 1)
    return RollbackAnswer(
        allowed=True,
        ask=not silent,
        analyse=analyse,
        options=() if silent else (*PLAIN, *ANALYSED) if analyse else PLAIN,
        why=f"Rollback {attempt} of round {wanted.round}, {wanted.of_session + 1} in all.",
    )


def offered(current: int, settings: RollbackSettings = DEFAULTS) -> tuple[int, ...]:
    """Return the rounds that a page offers to roll back, latest first; others can still be named (RB-4)."""
    return tuple(range(current, max(current - settings.backup_rounds, 0), -1))


def adjustments(seen: Sequence[DetectedPattern]) -> list[str]:
    """Return what the next prompt says about the patterns of the failed round, each sentence once."""
    return list(dict.fromkeys(each.adjustment for each in seen))


def reapplied(text: str, round_: int) -> str:
    """Return a ruling's text with a note that it comes from a round that was rolled back (RB-3)."""
    return f"{text.rstrip()}\n\n(re-applied from rolled-back round {round_})"

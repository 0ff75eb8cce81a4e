"""Whether a round may be rolled back, whether somebody is asked first, and what it takes back (RB-1 to RB-7).

Nothing is deleted: documents, states and rulings of the rounds are archived, and rulings can be made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.rounds.patterns import Seen
from disputes.protocol.settings import part_of
from tasks.configuration.policy import ProjectSettings


class Mode(StrEnum):
    INTERACTIVE = "interactive"
    AUTO_RETRY = "auto_retry"
    STRICT = "strict"


class Trigger(StrEnum):
    """What may ask for a rollback (RB-1)."""

    USER = "user"
    VALIDATION_EXHAUSTED = "validation_exhausted"
    DIVERGENCE = "divergence"


class Option(StrEnum):
    """What a person may choose."""

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


TITLES: dict[Option, str] = {
    Option.ROLL_BACK: "Roll the round back",
    Option.KEEP: "Keep the round",
    Option.SPLIT_GAP: "Split the gap",
    Option.ADD_CONTEXT: "Add context",
    Option.REASSIGN: "Reassign",
    Option.FORCE_BEST: "Take the best output there is",
    Option.PAUSE: "Pause",
    Option.HUMAN_REVIEW: "A person looks at it",
    Option.ACCEPT: "Accept it, with the acknowledgements of an early end",
    Option.ABANDON: "Abandon",
    Option.REFRESH_PROMPTS: "Write the prompts anew",
    Option.REVERT_TASK: "Make a task that reverts what has landed",
}
PLAIN = (Option.ROLL_BACK, Option.KEEP)
ANALYSED = (Option.SPLIT_GAP, Option.ADD_CONTEXT, Option.REASSIGN, Option.FORCE_BEST, Option.PAUSE)  # RB-6
SPENT = (Option.HUMAN_REVIEW, Option.ACCEPT, Option.ABANDON, Option.REFRESH_PROMPTS)  # RB-5
LANDED = (Option.REVERT_TASK,)


@dataclass(frozen=True, slots=True)
class RollbackSettings:
    """How often, and who is asked."""

    rollback_mode: str
    max_rollbacks_session: int
    analysis_after: int
    backup_rounds: int


DEFAULTS = part_of(ProjectSettings(), RollbackSettings)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rollback that somebody or something wants.

    `of_round` and `of_session` are the rollbacks made so far, automatic ones too; `landed`: whether anything
    of the rounds has reached the target branch.
    """

    round: int
    current: int
    trigger: Trigger
    of_round: int = 0
    of_session: int = 0
    landed: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether it may happen, whether a person is asked first, and with what."""

    allowed: bool
    ask: bool
    analyse: bool = False
    options: tuple[Option, ...] = ()
    why: str = ""
    deep: bool = False  # further back than is offered by default (RB-4)


def may_roll_back(wanted: Wanted, settings: RollbackSettings = DEFAULTS) -> Answer:
    """Whether a round may be rolled back, and who is asked (RB-4, RB-5, RB-7).

    A person's own wish is not asked about again. Raises ValueError for a round that does not exist.
    """
    if not 1 <= wanted.round <= wanted.current:
        raise ValueError(f"There is no round {wanted.round}; the last one is {wanted.current}.")
    if wanted.landed:
        why = "Something of it has landed; a task that reverts it can be made."
        return Answer(allowed=False, ask=True, options=LANDED, why=why)
    if wanted.of_session >= settings.max_rollbacks_session:
        why = f"All {settings.max_rollbacks_session} rollbacks are used up."
        return Answer(allowed=False, ask=True, options=SPENT, why=why)
    attempt = wanted.of_round + 1
    mode = Mode(settings.rollback_mode.lower())
    analyse = attempt >= (1 if mode is Mode.STRICT else settings.analysis_after)
    silent = wanted.trigger is Trigger.USER or (mode is Mode.AUTO_RETRY and attempt == 1)
    return Answer(
        allowed=True,
        ask=not silent,
        analyse=analyse,
        options=() if silent else (*PLAIN, *ANALYSED) if analyse else PLAIN,
        why=f"Rollback {attempt} of round {wanted.round}, {wanted.of_session + 1} in all.",
        deep=wanted.current - wanted.round >= settings.backup_rounds,
    )


def offered(current: int, settings: RollbackSettings = DEFAULTS) -> tuple[int, ...]:
    """The rounds that a page offers to roll back, the last one first; any other can be named (RB-4)."""
    return tuple(range(current, max(current - settings.backup_rounds, 0), -1))


def adjustments(seen: Sequence[Seen]) -> list[str]:
    """What the next prompt says about the patterns of the failed round, each once."""
    return list(dict.fromkeys(each.adjustment for each in seen))


def reapplied(text: str, round_: int) -> str:
    """A ruling's text with the note that it comes from a round that was rolled back (RB-3)."""
    return f"{text.rstrip()}\n\n(re-applied from rolled-back round {round_})"

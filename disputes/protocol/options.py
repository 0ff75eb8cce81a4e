"""What a human may choose for each kind of conflict, and what each choice does. One table."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    DISAGREEMENT = "disagreement"
    SILENCE = "silence"
    ALERT = "alert"
    HANDS = "hands"


class Option(StrEnum):
    UPHOLD_REVIEWER = "uphold_reviewer"
    UPHOLD_CODER = "uphold_coder"
    COMPROMISE = "compromise"
    OTHER = "other"
    RETRY = "retry"
    DEFER = "defer"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Choice:
    """One button: its key on the keyboard, its words, and whether the code must change after it."""

    option: Option
    letter: str
    title: str
    expects_change: bool
    needs_text: bool = False


OPTIONS: dict[Kind, tuple[Choice, ...]] = {
    Kind.DISAGREEMENT: (
        Choice(Option.UPHOLD_REVIEWER, "A", "Reviewer", expects_change=True),
        Choice(Option.UPHOLD_CODER, "B", "Coder", expects_change=False),
        # Its words are a rule's, the judge's, or those of whoever hands it in (§14).
        Choice(Option.COMPROMISE, "C", "Synthesis", expects_change=True, needs_text=True),
        Choice(Option.OTHER, "D", "Own words", expects_change=True, needs_text=True),
    ),
    Kind.HANDS: (
        Choice(Option.RETRY, "1", "Instruct and retry", expects_change=True),
        Choice(Option.DEFER, "2", "Defer", expects_change=False),
        Choice(Option.CANCEL, "3", "Cancel", expects_change=False),
    ),
}

WORDS: dict[str, Option] = {
    **{option.value: option for option in Option},
    "a": Option.UPHOLD_REVIEWER,
    "b": Option.UPHOLD_CODER,
    "c": Option.COMPROMISE,
    "d": Option.OTHER,
    "reviewer": Option.UPHOLD_REVIEWER,
    "coder": Option.UPHOLD_CODER,
    "custom": Option.OTHER,
}


def choice(kind: str, option: str) -> Choice | None:
    """The choice of that kind, or None where this kind does not offer it."""
    for candidate in OPTIONS.get(Kind(kind), ()):
        if candidate.option == option:
            return candidate
    return None


def letter(option: str) -> str:
    """A, B, C or D; for other options the key that chooses them."""
    letters = {c.option: c.letter for choices in OPTIONS.values() for c in choices}
    return letters[Option(option)]


def consequence(option: str, *, next_round: int, dependants: int, was_reviewed_green: bool) -> str:
    """What happens to the task if this is chosen, in one sentence for the button."""
    waiting = {0: "", 1: " One task goes on waiting."}.get(dependants, f" {dependants} tasks go on waiting.")
    free = {0: "", 1: " Then one waiting task goes on."}.get(
        dependants, f" Then {dependants} waiting tasks go on."
    )
    match Option(option):
        case Option.UPHOLD_REVIEWER:
            return f"Round {next_round}: the coder carries it out and may not decline again.{waiting}"
        case Option.UPHOLD_CODER if was_reviewed_green:
            return f"The reviewer may not raise it again. The commit lands as it is.{free}"
        case Option.UPHOLD_CODER:
            return f"The reviewer may not raise it again, and reviews the rest of this commit.{waiting}"
        case Option.COMPROMISE:
            return f"Round {next_round}: the coder builds what both sides can live with.{waiting}"
        case Option.OTHER:
            return f"Round {next_round}: the coder does what you write. Nobody may argue it again.{waiting}"
        case Option.RETRY:
            return f"The coder starts again with your words first; counts begin anew.{waiting}"
        case Option.DEFER:
            return f"Nothing runs on this task until somebody resumes it.{waiting}"
        case Option.CANCEL:
            return f"The task ends without code.{free}"
    raise AssertionError(option)

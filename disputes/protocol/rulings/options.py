"""What a human may choose for each kind of conflict, and what each choice does. One table."""

import re
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
    ASK = "ask"
    ASK_DISAGREE = "ask_disagree"
    CONVERT = "convert"
    WAIVE = "waive"
    FALSE_POSITIVE = "false_positive"
    ACCEPT = "accept"
    REDUCE = "reduce"
    CHECK_REVIEW = "check_review"
    CLARIFY = "clarify"
    NARROW = "narrow"
    PRIORITISE = "prioritise"
    PAUSE = "pause"
    RETRY = "retry"
    RAISE = "raise_cap"
    DEFER = "defer"
    CANCEL = "cancel"
    VERIFY = "verify"
    TRY_AGAIN = "try_again"
    ACCEPT_BASE = "accept_base"
    FIND_COMMANDS = "find_commands"


@dataclass(frozen=True, slots=True)
class Choice:
    """One button: its key on the keyboard, its words, and what it asks of the coder.

    After one that `expects_change` the code must change; one that only `asks` sends the task back for an
    answer.
    """

    option: Option
    letter: str
    title: str
    expects_change: bool
    needs_text: bool = False
    asks: bool = False


OPTIONS: dict[Kind, tuple[Choice, ...]] = {
    Kind.DISAGREEMENT: (
        Choice(Option.UPHOLD_REVIEWER, "A", "Reviewer", expects_change=True),
        Choice(Option.UPHOLD_CODER, "B", "Coder", expects_change=False),
        # Its words are a rule's, the judge's, or those of whoever hands it in (OPT-2, OPT-3).
        Choice(Option.COMPROMISE, "C", "Synthesis", expects_change=True, needs_text=True),
        Choice(Option.OTHER, "D", "Own words", expects_change=True, needs_text=True),
    ),
    # SIL-12. To waive, and to say what is wrong with the hint, takes a reason.
    Kind.SILENCE: (
        Choice(Option.ASK, "1", "Ask to address", expects_change=False, asks=True),
        Choice(Option.ASK_DISAGREE, "2", "Ask whether it disagrees", expects_change=False, asks=True),
        Choice(Option.CONVERT, "3", "Convert to a conflict", expects_change=False),
        Choice(Option.WAIVE, "4", "Waive", expects_change=False, needs_text=True),
        Choice(Option.FALSE_POSITIVE, "5", "False alarm", expects_change=False, needs_text=True),
    ),
    # RL-5: the coder declines too much.
    Kind.ALERT: (
        Choice(Option.ACCEPT, "1", "Accept, rule on each", expects_change=False),
        Choice(Option.REDUCE, "2", "Ask to reduce", expects_change=False, asks=True),
        Choice(Option.CHECK_REVIEW, "3", "Check the review", expects_change=False),
        Choice(Option.CLARIFY, "4", "Clarify the scope", expects_change=False, needs_text=True, asks=True),
    ),
    Kind.HANDS: (
        Choice(Option.RETRY, "1", "Instruct and retry", expects_change=True),
        Choice(Option.DEFER, "2", "Defer", expects_change=False),
        Choice(Option.CANCEL, "3", "Cancel", expects_change=False),
    ),
}

# CONV-7: a whole project diverges or stalls. It ends on the page that asks for the acknowledgements.
PROJECT_OPTIONS = (
    Choice(Option.ACCEPT, "1", "Accept the complexity", expects_change=False),
    Choice(Option.NARROW, "2", "Narrow the scope", expects_change=False, needs_text=True),
    Choice(Option.PRIORITISE, "3", "Critical tasks first", expects_change=False),
    Choice(Option.PAUSE, "4", "Pause", expects_change=False),
)
PROJECT_ALERTS = frozenset({"divergence", "stall"})

# A cap of money or tokens is reached. Who raises it says by how much, first in the text.
BUDGET_OPTIONS = (
    Choice(Option.RETRY, "1", "Go on once", expects_change=True),
    Choice(Option.DEFER, "2", "Defer", expects_change=False),
    Choice(Option.CANCEL, "3", "Cancel", expects_change=False),
    Choice(Option.RAISE, "4", "Raise the cap", expects_change=False, needs_text=True),
)

# Build or tests did not come out green, and the coder may not be the one to mend it.
VERIFYING_OPTIONS = (
    Choice(Option.VERIFY, "1", "Verify the same commit again", expects_change=False),
    Choice(Option.RETRY, "2", "Instruct and retry", expects_change=True),
    Choice(Option.DEFER, "3", "Defer", expects_change=False),
    Choice(Option.CANCEL, "4", "Cancel", expects_change=False),
)

# The target branch itself is red, or cannot be built and tested here: no coder begins.
BASE_OPTIONS = (
    Choice(Option.TRY_AGAIN, "1", "Try again", expects_change=False),
    Choice(Option.ACCEPT_BASE, "2", "Accept as it is", expects_change=False),
    Choice(Option.FIND_COMMANDS, "3", "Let the coder find the commands", expects_change=False),
    Choice(Option.PAUSE, "4", "Pause", expects_change=False),
)

BUDGET, VERIFYING, BASE = "budget", "verifying", "base"
# What is offered where it hangs on more than the kind: on what the card is about.
BY_ORIGIN: dict[tuple[Kind, str], tuple[Choice, ...]] = {
    **{(Kind.ALERT, origin): PROJECT_OPTIONS for origin in sorted(PROJECT_ALERTS)},
    (Kind.ALERT, BASE): BASE_OPTIONS,
    (Kind.HANDS, BUDGET): BUDGET_OPTIONS,
    (Kind.HANDS, VERIFYING): VERIFYING_OPTIONS,
}

# Two stages disagree over the work of the earlier one (ITM-3): title and consequence of each choice.
BETWEEN_STAGES: dict[Option, tuple[str, str]] = {
    Option.UPHOLD_REVIEWER: ("Objection", "Round {round}: {earlier} changes it; then {later} goes on."),
    Option.UPHOLD_CODER: ("Reply", "It stays. Round {round}: {later} goes on, and may not object again."),
    Option.COMPROMISE: ("Synthesis", "Round {round}: {earlier} builds what both can live with."),
    Option.OTHER: ("Own words", "Round {round}: {earlier} does what you write; then {later} goes on."),
}

# What these do is done at once, or told to the reviewer; the coder's prompt says nothing of them.
NOT_FOR_THE_CODER = frozenset(
    {
        Option.CONVERT, Option.WAIVE, Option.FALSE_POSITIVE, Option.ACCEPT, Option.CHECK_REVIEW,
        Option.NARROW, Option.PRIORITISE, Option.PAUSE, Option.DEFER, Option.CANCEL,
        Option.RAISE, Option.VERIFY, Option.TRY_AGAIN, Option.ACCEPT_BASE, Option.FIND_COMMANDS,
    }
)  # fmt: skip

# Further words for a choice, beside its letter, its key and its title.
WORDS: dict[str, Option] = {
    "reviewer": Option.UPHOLD_REVIEWER,
    "coder": Option.UPHOLD_CODER,
    "custom": Option.OTHER,
    "raise": Option.RAISE,
}


def offered(kind: str, origin: str = "") -> tuple[Choice, ...]:
    """What may be chosen on a card of this kind that is about this (OPT-1)."""
    return BY_ORIGIN.get((Kind(kind), origin), OPTIONS[Kind(kind)])


def choice(kind: str, option: str, origin: str = "") -> Choice | None:
    """The choice of that kind, or None where this kind does not offer it."""
    return next((each for each in offered(kind, origin) if each.option == option), None)


def read_choice(word: str, kind: str, origin: str = "") -> Choice | None:
    """The choice that a person names on a card of that kind: by letter, key, title or another word for it.

    The same number means another thing on another card.
    """
    said = _plain(word)
    for each in offered(kind, origin):
        if said in {_plain(each.letter), _plain(each.option), _plain(each.title)}:
            return each
    named = WORDS.get(said)
    return choice(kind, named, origin) if named else None


def _plain(word: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", word.lower()))


def asks(option: str) -> bool:
    """Whether the option sends the task back for an answer, though no code must change."""
    return any(each.asks for choices in OPTIONS.values() for each in choices if each.option == option)


def letter(option: str) -> str:
    """A, B, C or D; for other options the key that chooses them."""
    tables = (*BY_ORIGIN.values(), *OPTIONS.values())  # the later ones say how it is called elsewhere
    letters = {c.option: c.letter for choices in tables for c in choices}
    return letters[Option(option)]


def consequence(
    option: str, *, next_round: int, dependants: int, was_reviewed_green: bool, origin: str = ""
) -> str:
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
        case Option.RETRY if origin == BUDGET:
            return f"It goes on: a task may spend its whole cap once more, a run has its own again.{waiting}"
        case Option.RETRY:
            return f"The coder starts again with your words first; counts begin anew.{waiting}"
        case Option.RAISE:
            return f"Write by how much, such as 5: this task may spend that more, and goes on.{waiting}"
        case Option.DEFER:
            return f"Nothing runs on this task until somebody resumes it.{waiting}"
        case Option.CANCEL:
            return f"The task ends without code.{free}"
        case Option.ASK:
            return f"Round {next_round}: the coder must answer it, disagree openly or show where it is done."
        case Option.ASK_DISAGREE:
            return f"Round {next_round}: the coder must say whether it disagrees, and why."
        case Option.CONVERT:
            return "A conflict with the options A to D; the coder's side is quoted as not stated."
        case Option.WAIVE:
            return "The finding is settled; the reviewer is told why and may not raise it again."
        case Option.FALSE_POSITIVE:
            return "The hint is closed, and this kind of hint counts for less in this project."
        case Option.ACCEPT:
            return "Nothing moves; this card is closed."
        case Option.REDUCE:
            return f"Round {next_round}: what it declined is open again; the coder answers each anew."
        case Option.CHECK_REVIEW:
            return "Lower what does not block, below; conflicts on findings that no longer block are closed."
        case Option.CLARIFY:
            return f"Round {next_round}: coder and reviewer read your words first.{waiting}"
        case Option.NARROW:
            return "The tasks that you name, one a line, are put off; the count of flat rounds begins anew."
        case Option.PRIORITISE:
            return "Only critical tasks are begun until none of them is left."
        case Option.VERIFY:
            return f"Build and tests run once more on the commit as it is; green, it goes on.{waiting}"
        case Option.TRY_AGAIN:
            return "The branch is fetched, and its commands run once more; green, the work begins."
        case Option.ACCEPT_BASE:
            return "The work begins. What is red now does not count against anybody; what is newly red does."
        case Option.FIND_COMMANDS:
            return "A coder gets the task to find them; what it finds is verified by running it."
        case Option.PAUSE:
            return "Nothing of this project is started until somebody takes it up again."
    raise AssertionError(option)

"""What a person may choose on each kind of card: one row per choice, with all its words.

Whatever shows, prints or reads a choice takes it from its row: the page, the command line, the next
prompt, the records. What a choice does to database rows is in `disputes/rulings/effects.py`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    DISAGREEMENT = "disagreement"
    SILENCE = "silence"
    ALERT = "alert"
    HELP = "help"


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
    FINISH = "finish"
    VERIFY = "verify"
    LAND = "land_again"
    TRY_AGAIN = "try_again"
    ACCEPT_BASE = "accept_base"
    FIND_COMMANDS = "find_commands"
    REOPEN_LOST = "reopen_lost"


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice on a card: its key on the keyboard, its words, and what it asks of the coder.

    `does` tells on the button what happens then, `does_if_clean` the same if nothing else keeps a tested
    commit from landing, `does_if_staged` if a further stage keeps it, `does_if_gaps` if open gaps do, and
    `does_if_landed` if it has landed. In these, {round} is the round that begins, {waiting} and {free} tell
    of the tasks that wait for this one, and {next}, {earlier} and {later} are stages. `in_prompt` is what
    the next prompt tells the coder to do, with {place}; it is empty if the prompt does not mention the
    choice. `expects_change` says that the code must change, `asks` that the task only goes back for an
    answer. `hint` stands in the empty field of a choice that needs a text. `word` is a further name for the
    choice, used in capitals in dispute.md. `side` names whose way it goes, in decisions.md and on the
    command line.
    """

    option: Option
    letter: str
    title: str
    does: str
    does_if_clean: str = ""
    does_if_staged: str = ""
    does_if_gaps: str = ""
    does_if_landed: str = ""
    in_prompt: str = ""
    expects_change: bool = False
    needs_text: bool = False
    hint: str = "What the coder must do"
    asks: bool = False
    word: str = ""
    side: str = ""


CHANGE = "Change {place}. Do not argue it again; trouble that it causes is a new finding."
LEAVE = "Leave the code at this point as it is."

REVIEWER = Choice(
    Option.UPHOLD_REVIEWER, "A", "Reviewer",
    "Round {round}: the coder carries it out and may not decline again.{waiting}",
    in_prompt=CHANGE, expects_change=True, word="reviewer", side="Reviewer",
)  # fmt: skip
CODER = Choice(
    Option.UPHOLD_CODER, "B", "Coder",
    "The reviewer may not raise it again, and reviews the rest of this commit.{waiting}",
    "The reviewer may not raise it again. The commit lands as it is.{free}",
    "The reviewer may not raise it again. The task goes on to its stage {next}.{waiting}",
    "The reviewer may not raise it again. The rounds go on with the gaps that are open.{waiting}",
    "The reviewer may not raise it again. The commit has landed and stays as it is.{free}",
    in_prompt=LEAVE, word="coder", side="Engineer",
)  # fmt: skip
# Its words come from a rule, the judge, or whoever hands it in (OPT-2, OPT-3).
SYNTHESIS = Choice(
    Option.COMPROMISE, "C", "Synthesis",
    "Round {round}: the coder builds what both sides can live with.{waiting}",
    in_prompt=CHANGE, expects_change=True, needs_text=True, side="Synthesis",
)  # fmt: skip
# The person decides whether the code must change; if not, the prompt says `LEAVE`.
OWN_WORDS = Choice(
    Option.OTHER, "D", "Own words",
    "Round {round}: the coder does what you write. Nobody may argue it again.{waiting}",
    in_prompt=CHANGE, expects_change=True, needs_text=True, word="custom", side="User specifies",
)  # fmt: skip
RETRY = Choice(
    Option.RETRY, "1", "Instruct and retry",
    "The coder starts again with your words first; counts start again at zero.{waiting}",
    in_prompt="Start again with these words in mind.", expects_change=True,
)  # fmt: skip
DEFER = Choice(Option.DEFER, "2", "Defer", "Nothing runs on this task until somebody resumes it.{waiting}")
CANCEL = Choice(Option.CANCEL, "3", "Cancel", "The task ends without code.{free}")
FINISH = Choice(
    Option.FINISH, "4", "Complete by hand",
    "The task counts as done, by your word; nothing of it is landed by the program.{free}",
)  # fmt: skip
PAUSE = Choice(
    Option.PAUSE, "4", "Pause", "Nothing of this project is started until somebody takes it up again."
)

OPTIONS: dict[Kind, tuple[Choice, ...]] = {
    Kind.DISAGREEMENT: (REVIEWER, CODER, SYNTHESIS, OWN_WORDS),
    # SIL-12. Waiving, and calling the flag a false alarm, need a reason.
    Kind.SILENCE: (
        Choice(
            Option.ASK, "1", "Ask to address",
            "Round {round}: the coder must answer it, disagree openly or show where it is done.",
            in_prompt="Answer it in your response: do it and say how, or write a DISAGREE block, or quote "
            "the place that covers it already.",
            asks=True,
        ),
        Choice(
            Option.ASK_DISAGREE, "2", "Ask whether it disagrees",
            "Round {round}: the coder must say whether it disagrees, and why.",
            in_prompt="Say whether you disagree: write a DISAGREE block with a rationale, or do it.",
            asks=True,
        ),
        Choice(
            Option.CONVERT, "3", "Convert to a conflict",
            "A conflict with the options A to D, in which the coder has stated no position.",
        ),
        Choice(
            Option.WAIVE, "4", "Waive",
            "The finding is settled; the reviewer is told why and may not raise it again.",
            needs_text=True, hint="Why it need not be mended",
        ),
        Choice(
            Option.FALSE_POSITIVE, "5", "False alarm",
            "The flag is closed, and this kind of flag counts for less in this project.",
            needs_text=True, hint="Why it is a false alarm",
        ),
    ),
    # RL-5: the coder declines too much.
    Kind.ALERT: (
        Choice(Option.ACCEPT, "1", "Accept, rule on each", "Nothing moves; this card is closed."),
        Choice(
            Option.REDUCE, "2", "Ask to reduce",
            "Round {round}: what it declined is open again; the coder answers each again.",
            in_prompt="Answer each finding again: withdraw what is mere taste, give evidence for the rest.",
            asks=True,
        ),
        Choice(
            Option.CHECK_REVIEW, "3", "Check the review",
            "Lower what does not block, below; conflicts on findings that no longer block are closed.",
        ),
        Choice(
            Option.CLARIFY, "4", "Clarify the scope",
            "Round {round}: coder and reviewer read your words first.{waiting}",
            in_prompt="Read the open findings in this light, and answer each of them again.",
            needs_text=True, hint="What coder and reviewer read first", asks=True,
        ),
    ),
    Kind.HELP: (RETRY, DEFER, CANCEL),
}  # fmt: skip

# CONV-7: a whole project diverges or stalls. It ends on the page that asks for the acknowledgements.
PROJECT_OPTIONS = (
    Choice(Option.ACCEPT, "1", "Accept the complexity", "Nothing moves; this card is closed."),
    Choice(
        Option.NARROW, "2", "Narrow the scope",
        "The tasks that you name, one a line, are put off; the count of flat rounds starts again at zero.",
        needs_text=True, hint="The names of the tasks, one a line",
    ),
    Choice(
        Option.PRIORITISE, "3", "Critical tasks first",
        "Only critical tasks are begun until none of them is left.",
    ),
    PAUSE,
)  # fmt: skip
PROJECT_ALERTS = frozenset({"divergence", "stall"})

# A cap of money or tokens is reached. Whoever raises it begins the text with the amount.
BUDGET_OPTIONS = (
    replace(
        RETRY, title="Go on once",
        does="It goes on: a task may spend its whole cap once more, a run has its own again.{waiting}",
    ),
    DEFER,
    CANCEL,
    Choice(
        Option.RAISE, "4", "Raise the cap",
        "Write by how much, such as 5: this task may spend that more, and goes on.{waiting}",
        needs_text=True, hint="By how much, such as 5, and why", word="raise",
    ),
)  # fmt: skip

# Build or tests were not green, and perhaps it is not for the coder to repair that.
VERIFYING_OPTIONS = (
    Choice(
        Option.VERIFY, "1", "Verify the same commit again",
        "Build and tests run once more on the commit as it is; green, it goes on.{waiting}",
    ),
    replace(RETRY, letter="2"),
    replace(DEFER, letter="3"),
    replace(CANCEL, letter="4"),
)  # fmt: skip

# The approved commit does not get onto the target branch.
LANDING_OPTIONS = (
    Choice(
        Option.LAND, "1", "Land it again",
        "The approved commit is pushed once more, without a new round.{waiting}",
    ),
    replace(
        RETRY, letter="2",
        does="The coder does it again in new commits on the branch, with your words first.{waiting}",
    ),
    replace(DEFER, letter="3"),
    replace(CANCEL, letter="4"),
    replace(FINISH, letter="5"),
)  # fmt: skip

# The target branch itself is red, or cannot be built and tested here: no coder begins.
BASE_OPTIONS = (
    Choice(
        Option.TRY_AGAIN, "1", "Try again",
        "The branch is fetched, and its commands run once more; green, the work begins.",
    ),
    Choice(
        Option.ACCEPT_BASE, "2", "Accept as it is",
        "The work begins. What is red now does not count against anybody; what is newly red does.",
    ),
    Choice(
        Option.FIND_COMMANDS, "3", "Let the coder find the commands",
        "A coder gets the task to find them; what it finds is verified by running it.",
    ),
    PAUSE,
)  # fmt: skip

# The target branch was rewritten, and what had landed is missing from it.
REWRITTEN_OPTIONS = (
    Choice(
        Option.ACCEPT, "1", "It was meant", "Nothing moves; the tasks go on saying that they landed."
    ),
    Choice(
        Option.REOPEN_LOST, "2", "Do it again",
        "The tasks whose work is gone are open again; their coders begin on the branch as it is now.",
    ),
    PAUSE,
)  # fmt: skip

BUDGET, VERIFYING, BASE, REWRITTEN, LANDING = "budget", "verifying", "base", "rewritten", "landing"
REJECTIONS = "rejections"
# What is offered on cards for which the kind alone does not decide: by what the card is about.
BY_ORIGIN: dict[tuple[Kind, str], tuple[Choice, ...]] = {
    **{(Kind.ALERT, origin): PROJECT_OPTIONS for origin in sorted(PROJECT_ALERTS)},
    (Kind.ALERT, BASE): BASE_OPTIONS,
    (Kind.ALERT, REWRITTEN): REWRITTEN_OPTIONS,
    (Kind.HELP, BUDGET): BUDGET_OPTIONS,
    (Kind.HELP, REJECTIONS): (RETRY, DEFER, CANCEL, FINISH),
    (Kind.HELP, VERIFYING): VERIFYING_OPTIONS,
    (Kind.HELP, LANDING): LANDING_OPTIONS,
}

# Two stages disagree over the work of the earlier one (ITM-3).
BETWEEN_STAGES = (
    replace(REVIEWER, title="Objection", does="Round {round}: {earlier} changes it; then {later} goes on."),
    replace(
        CODER, title="Reply", does="It stays. Round {round}: {later} goes on, and may not object again.",
        does_if_clean="", does_if_staged="", does_if_gaps="",
    ),
    replace(SYNTHESIS, does="Round {round}: {earlier} builds what both can live with."),
    replace(OWN_WORDS, does="Round {round}: {earlier} does what you write; then {later} goes on."),
)  # fmt: skip

# One row for each option, from the card that mostly offers it, for questions asked without a card.
ROWS = {row.option: row for rows in (*BY_ORIGIN.values(), *OPTIONS.values()) for row in rows}

# These are carried out at once or told to the reviewer; the coder's prompt does not mention them.
NOT_FOR_THE_CODER = frozenset(option for option, row in ROWS.items() if not row.in_prompt)


def offered(kind: str, origin: str = "") -> tuple[Choice, ...]:
    """Return what may be chosen on a card of this kind and origin (OPT-1)."""
    return BY_ORIGIN.get((Kind(kind), origin), OPTIONS[Kind(kind)])


def read_choice(word: str, choices: Iterable[Choice]) -> Choice | None:
    """Return the one of these choices that a person names by letter, key, title or further word, or None.

    The same number means different things on different cards.
    """
    said = _plain(word)
    for each in choices:
        if said and said in {_plain(name) for name in (each.letter, each.option, each.title, each.word)}:
            return each
    return None


def _plain(word: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", word.lower()))


def asks(option: str) -> bool:
    """Whether the option sends the task back for an answer although no code must change."""
    return ROWS[Option(option)].asks


def letter(option: str) -> str:
    """Return A, B, C or D; for other options, the key that chooses them."""
    return ROWS[Option(option)].letter


def in_role_words(words: str, coder: str) -> str:
    """Return the words of a choice with the coder called as people do in this kind of project."""
    return words.replace("coder", coder).replace("Coder", coder.capitalize())


def consequence(
    choice: Choice,
    *,
    next_round: int,
    dependants: int,
    was_reviewed_green: bool,
    next_stage: str = "",
    has_gaps: bool = False,
    has_landed: bool = False,
    earlier: str = "",
    later: str = "",
    coder: str = "coder",
) -> str:
    """Return in one sentence for the button what happens to the task if this is chosen.

    `coder` is what people call the coder in this kind of project.
    """
    waiting = {0: "", 1: " One task goes on waiting."}.get(dependants, f" {dependants} tasks go on waiting.")
    free = {0: "", 1: " Then one waiting task goes on."}.get(
        dependants, f" Then {dependants} waiting tasks go on."
    )
    if_clean = choice.does_if_staged if next_stage else choice.does_if_clean
    if has_gaps:
        if_clean = choice.does_if_gaps
    does = (has_landed and choice.does_if_landed) or (was_reviewed_green and if_clean) or choice.does
    return in_role_words(does, coder).format(
        round=next_round, waiting=waiting, free=free, next=next_stage, earlier=earlier, later=later
    )

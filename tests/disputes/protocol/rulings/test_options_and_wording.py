"""What a human may choose, what each choice says it does, and the exact lines that reach the next prompt."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.rulings.options import (
    BETWEEN_STAGES,
    BY_ORIGIN,
    NOT_FOR_THE_CODER,
    OPTIONS,
    ROWS,
    Choice,
    Kind,
    Option,
    asks,
    consequence,
    letter,
    offered,
    read_choice,
)
from disputes.protocol.rulings.prompt_lines import HEADING, Ruling, action_for_coder, ruling_lines
from tests.cases import for_each

REVIEWER, CODER, COMPROMISE, OTHER = (
    Option.UPHOLD_REVIEWER, Option.UPHOLD_CODER, Option.COMPROMISE, Option.OTHER,
)  # fmt: skip
RETRY, DEFER, CANCEL = Option.RETRY, Option.DEFER, Option.CANCEL


def choice(kind: str, option: str, origin: str = "") -> Choice | None:
    return next((each for each in offered(kind, origin) if each.option == option), None)


# --- The table of options ---------------------------------------------------------------------------------

CHOICES = [
    # kind, option, key, title, must the code change, must the person write
    (
        "disagreement",
        "uphold_reviewer",
        "A",
        "Reviewer",
        True,
        False,
    ),  # A is the reviewer everywhere
    ("disagreement", "uphold_coder", "B", "Coder", False, False),
    ("disagreement", "compromise", "C", "Synthesis", True, True),  # whoever hands it in writes it
    ("disagreement", "other", "D", "Own words", True, True),  # always offered
    ("silence", "ask", "1", "Ask to address", False, False),  # SIL-12
    ("silence", "ask_disagree", "2", "Ask whether it disagrees", False, False),
    ("silence", "convert", "3", "Convert to a conflict", False, False),
    ("silence", "waive", "4", "Waive", False, True),  # SIL-12: with a rationale
    ("silence", "false_positive", "5", "False alarm", False, True),  # SIL-14: with an explanation
    ("alert", "accept", "1", "Accept, rule on each", False, False),
    ("alert", "reduce", "2", "Ask to reduce", False, False),
    ("alert", "check_review", "3", "Check the review", False, False),
    ("alert", "clarify", "4", "Clarify the scope", False, True),
    ("help", "retry", "1", "Instruct and retry", True, False),
    ("help", "defer", "2", "Defer", False, False),
    ("help", "cancel", "3", "Cancel", False, False),
]


@for_each(("kind", "option", "key", "title", "changes", "writes"), CHOICES)
def test_a_kind_of_conflict_offers_the_choice(
    kind: str, option: str, key: str, title: str, changes: bool, writes: bool
) -> None:
    asked = option in {"ask", "ask_disagree", "reduce", "clarify"}
    row = choice(kind, option)
    assert row
    assert (row.letter, row.title, row.expects_change, row.needs_text) == (key, title, changes, writes)
    assert row.asks is asks(option) is asked


@for_each(
    ("kind", "option"),
    [
        (kind.value, option.value)
        for kind in Kind
        for option in Option
        if (kind.value, option.value) not in {row[:2] for row in CHOICES}
    ],
)
def test_a_kind_of_conflict_offers_nothing_else(kind: str, option: str) -> None:
    assert choice(kind, option) is None


@for_each("option", ["", "A", "reviewer", "UPHOLD_CODER", "nonsense"])
def test_a_word_that_is_no_option_is_no_choice(option: str) -> None:
    assert choice("disagreement", option) is None


def test_an_unknown_kind_is_a_mistake_in_the_program() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        choice("nonsense", "retry")


@for_each("kind", OPTIONS)
def test_the_choices_of_a_kind_stand_in_the_order_of_their_keys(kind: Kind) -> None:
    letters = [offered.letter for offered in OPTIONS[kind]]

    assert letters == sorted(set(letters))


@for_each("origin", ["divergence", "stall"])
def test_an_alert_of_a_whole_project_offers_ways_to_go_on(origin: str) -> None:
    """Forcing the end and abandoning stand on the page that asks for the acknowledgements."""
    offered_ = [(each.letter, each.option) for each in offered("alert", origin)]
    assert offered_ == [("1", "accept"), ("2", "narrow"), ("3", "prioritise"), ("4", "pause")]
    assert choice("alert", "reduce", origin) is None


@for_each(
    ("option", "key"),
    [
        (REVIEWER, "A"),
        (CODER, "B"),
        (COMPROMISE, "C"),
        (OTHER, "D"),
        (RETRY, "1"),
        (DEFER, "2"),
        (CANCEL, "3"),
        ("uphold_reviewer", "A"),  # as it stands in the database
        ("other", "D"),
    ],
    ids=str,
)
def test_an_option_has_its_letter(option: str, key: str) -> None:
    assert letter(option) == key


def test_every_option_has_a_letter() -> None:
    assert all(letter(option) for option in Option)


@for_each("option", ["", "A", "nonsense"])
def test_what_is_no_option_has_no_letter(option: str) -> None:
    with pytest.raises(ValueError, match="is not a valid Option"):
        letter(option)


CARDS = [(kind, "") for kind in Kind] + [("alert", "stall"), ("help", "budget")]


def test_a_choice_is_named_by_its_letter_its_key_or_its_title_on_every_card() -> None:
    for kind, origin in CARDS:
        for each in offered(kind, origin):
            spoken = {each.option, each.option.replace("_", "-").upper(), each.title, each.letter.lower()}
            for word in spoken | {f" {each.letter} "}:
                assert read_choice(word, offered(kind, origin)) == each, (kind, word)


def test_some_choices_have_a_further_word_and_no_card_knows_what_it_does_not_offer() -> None:
    for word, option in {"reviewer": REVIEWER, "coder": CODER, "custom": OTHER}.items():
        assert read_choice(word, offered("disagreement")) == choice("disagreement", option)
        assert read_choice(word, offered("help")) is None
    assert read_choice("raise", offered("help", "budget")) == choice("help", Option.RAISE, "budget")
    for word in ("raise", "retry", "1", "", "E", "nonsense"):
        assert read_choice(word, offered("disagreement")) is None, word


def test_the_rows_of_an_option_ask_the_same_of_the_coder_on_every_card() -> None:
    """Prompts and records know a ruling by its option alone."""
    for rows in (*OPTIONS.values(), *BY_ORIGIN.values(), BETWEEN_STAGES):
        for row in rows:
            known = ROWS[row.option]
            assert (row.in_prompt, row.asks, row.word, row.side) == (
                known.in_prompt, known.asks, known.word, known.side,
            ), row  # fmt: skip
            assert not (row.expects_change or row.asks) or row.option not in NOT_FOR_THE_CODER
    assert set(ROWS) == set(Option)


# --- The consequence in words -----------------------------------------------------------------------------

CONSEQUENCES = [
    # option, dependants, reviewed and green, the sentence
    (REVIEWER, 0, False, "Round 4: the coder carries it out and may not decline again."),
    (REVIEWER, 1, False,
     "Round 4: the coder carries it out and may not decline again. One task goes on waiting."),
    (REVIEWER, 2, True,
     "Round 4: the coder carries it out and may not decline again. 2 tasks go on waiting."),
    (CODER, 0, True, "The reviewer may not raise it again. The commit lands as it is."),
    (CODER, 1, True,
     "The reviewer may not raise it again. The commit lands as it is. Then one waiting task goes on."),
    (CODER, 7, True,
     "The reviewer may not raise it again. The commit lands as it is. Then 7 waiting tasks go on."),
    (CODER, 0, False, "The reviewer may not raise it again, and reviews the rest of this commit."),
    (CODER, 1, False,
     "The reviewer may not raise it again, and reviews the rest of this commit. One task goes on waiting."),
    (CODER, 3, False,
     "The reviewer may not raise it again, and reviews the rest of this commit. 3 tasks go on waiting."),
    (COMPROMISE, 0, False, "Round 4: the coder builds what both sides can live with."),
    (COMPROMISE, 2, True, "Round 4: the coder builds what both sides can live with. 2 tasks go on waiting."),
    (OTHER, 0, False, "Round 4: the coder does what you write. Nobody may argue it again."),
    (OTHER, 1, False,
     "Round 4: the coder does what you write. Nobody may argue it again. One task goes on waiting."),
    (RETRY, 0, False, "The coder starts again with your words first; counts start again at zero."),
    (RETRY, 12, False,
     "The coder starts again with your words first; counts start again at zero. 12 tasks go on waiting."),
    (DEFER, 0, False, "Nothing runs on this task until somebody resumes it."),
    (DEFER, 1, True, "Nothing runs on this task until somebody resumes it. One task goes on waiting."),
    (CANCEL, 0, False, "The task ends without code."),
    (CANCEL, 1, False, "The task ends without code. Then one waiting task goes on."),
    (CANCEL, 4, True, "The task ends without code. Then 4 waiting tasks go on."),
]  # fmt: skip


@for_each(("option", "dependants", "green", "sentence"), CONSEQUENCES)
def test_the_button_says_what_happens(option: Option, dependants: int, green: bool, sentence: str) -> None:
    assert (
        consequence(ROWS[option], next_round=4, dependants=dependants, was_reviewed_green=green) == sentence
    )


@for_each("round_", [1, 2, 15])
@for_each("option", [REVIEWER, COMPROMISE, OTHER], ids=str)
def test_the_button_names_the_round_that_begins(option: Option, round_: int) -> None:
    said = consequence(ROWS[option], next_round=round_, dependants=0, was_reviewed_green=False)

    assert said.startswith(f"Round {round_}: ")


# What these do to tasks that wait is known only once the conflict behind them is ruled.
BEFORE_A_RULING = {
    each.option
    for kind in ("silence", "alert")
    for origin in ("", "stall", "base", "rewritten")
    for each in offered(kind, origin)
} - {Option.CLARIFY}


@for_each("option", sorted(set(Option) - BEFORE_A_RULING))
@for_each("green", [True, False])
@for_each("dependants", [0, 1, 2, 1000])
def test_every_option_says_something_whole(option: Option, green: bool, dependants: int) -> None:
    said = consequence(ROWS[option], next_round=2, dependants=dependants, was_reviewed_green=green)

    assert said.endswith(".")
    assert "  " not in said
    assert (str(dependants) in said) is (dependants > 1)


@for_each("option", sorted(BEFORE_A_RULING))
def test_a_flag_and_an_alert_say_something_whole(option: Option) -> None:
    said = consequence(ROWS[option], next_round=2, dependants=7, was_reviewed_green=False)
    assert said.endswith(".")
    assert "7" not in said


@for_each("option", sorted(set(Option) - BEFORE_A_RULING))
@for_each("green", [True, False])
def test_only_what_ends_the_waiting_says_so(option: Option, green: bool) -> None:
    said = consequence(ROWS[option], next_round=2, dependants=5, was_reviewed_green=green)
    ends = option in {CANCEL, Option.FINISH} or (option is CODER and green)

    assert ("Then 5 waiting tasks go on." in said) is ends
    assert ("5 tasks go on waiting." in said) is not ends


def test_between_stages_the_button_names_them() -> None:
    for row in BETWEEN_STAGES:
        said = consequence(
            row, next_round=3, dependants=2, was_reviewed_green=True, earlier="plan", later="build"
        )
        assert "Round 3" in said, row
        assert "plan" in said or "build" in said, row
        assert not set(said) & set("{}"), row


# --- The lines of a ruling (DEC-1) ------------------------------------------------------------------------

RULING = Ruling(
    name="ISSUE-R1-001",
    severity="high",
    title="Failed calls are retried at once",
    option="uphold_reviewer",
    text="Wait between tries.",
)
DO_A = "Change the code. Do not argue it again; trouble that it causes is a new finding."


def ruling(**changes: Any) -> Ruling:
    return replace(RULING, **changes)


def body(**changes: Any) -> list[str]:
    """The lines of one ruling, without the heading."""
    heading, empty, *lines = ruling_lines([ruling(**changes)])
    assert (heading, empty) == ("## Decided since your last run. Honour it.", "")
    return lines


def test_nothing_decided_is_no_section() -> None:
    assert ruling_lines([]) == []


def test_a_says_whose_way_it_goes() -> None:
    assert ruling_lines([ruling(place="src/calls.py:12")]) == [
        "## Decided since your last run. Honour it.",
        "",
        "1. ISSUE-R1-001 (HIGH): A, uphold_reviewer",
        "   About: Failed calls are retried at once",
        "   Ruling: Wait between tries.",
        "   Do: Change src/calls.py:12. Do not argue it again; trouble that it causes is a new finding.",
    ]


def test_b_leaves_the_code_as_it_is() -> None:
    decided = ruling(option="uphold_coder", text="The server asks for it.", expects_change=False)

    assert ruling_lines([decided]) == [
        "## Decided since your last run. Honour it.",
        "",
        "1. ISSUE-R1-001 (HIGH): B, uphold_coder",
        "   About: Failed calls are retried at once",
        "   Ruling: The server asks for it.",
        "   Do: Leave the code at this point as it is.",
    ]


def test_c_has_its_letter_too() -> None:
    assert body(option="compromise", text="Twice at once, then wait.") == [
        "1. ISSUE-R1-001 (HIGH): C, compromise",
        "   About: Failed calls are retried at once",
        "   Ruling: Twice at once, then wait.",
        f"   Do: {DO_A}",
    ]


def test_d_gives_the_words_of_the_person_with_reason_and_limits() -> None:
    decided = ruling(
        option="other", severity="critical", text="Wait one second.\nThen two.", rationale="Servers die.",
        constraints="No new package.\nKeep the name.", place="src/calls.py:12",
    )  # fmt: skip

    assert ruling_lines([decided]) == [
        "## Decided since your last run. Honour it.",
        "",
        "1. ISSUE-R1-001 (CRITICAL): D, other",
        "   About: Failed calls are retried at once",
        "   Ruling: Wait one second.",
        "   Then two.",
        "   Why: Servers die.",
        "   Constraints: No new package.",
        "   Keep the name.",
        "   Do: Change src/calls.py:12. Do not argue it again; trouble that it causes is a new finding.",
    ]


def test_d_may_ask_for_no_change() -> None:
    assert body(option="other", text="Keep it, it is fine.", expects_change=False) == [
        "1. ISSUE-R1-001 (HIGH): D, other",
        "   About: Failed calls are retried at once",
        "   Ruling: Keep it, it is fine.",
        "   Do: Leave the code at this point as it is.",
    ]


def test_a_retry_starts_with_the_words_of_the_person() -> None:
    decided = Ruling(
        name="Task ledger-214", severity="medium", title="Three runs ended without a result", option="retry",
        text="The token is in the vault now.",
    )  # fmt: skip

    assert ruling_lines([decided]) == [
        "## Decided since your last run. Honour it.",
        "",
        "1. Task ledger-214 (MEDIUM): 1, retry",
        "   About: Three runs ended without a result",
        "   Ruling: The token is in the vault now.",
        "   Do: Start again with these words in mind.",
    ]


def test_a_retry_without_a_word_is_still_one() -> None:
    assert body(option="retry", text="") == [
        "1. ISSUE-R1-001 (HIGH): 1, retry",
        "   About: Failed calls are retried at once",
        "   Do: Start again with these words in mind.",
    ]


def test_several_rulings_are_numbered_in_their_order() -> None:
    lines = ruling_lines([ruling(), ruling(name="ISSUE-R2-004", severity="low", option="other")])

    assert [line for line in lines if not line.startswith("   ")] == [
        "## Decided since your last run. Honour it.",
        "",
        "1. ISSUE-R1-001 (HIGH): A, uphold_reviewer",
        "2. ISSUE-R2-004 (LOW): D, other",
    ]


def test_the_heading_stands_once() -> None:
    assert ruling_lines([ruling(), ruling(), ruling()]).count(HEADING) == 1


def test_the_rulings_may_come_from_a_queryset() -> None:
    assert ruling_lines(iter([RULING])) == ruling_lines([RULING])


@for_each(
    ("text", "lines"),
    [
        ("one", ["   Ruling: one"]),
        ("one\ntwo", ["   Ruling: one", "   two"]),  # indented, so that it stays in the list item
        ("one\r\ntwo", ["   Ruling: one", "   two"]),  # as a browser sends it
        ("one\n\ntwo", ["   Ruling: one", "", "   two"]),  # an empty line has no blanks
        ("one\n   \ntwo", ["   Ruling: one", "", "   two"]),
        ("one\n  two", ["   Ruling: one", "     two"]),  # what is indented stays so
        ("one\ntwo  ", ["   Ruling: one", "   two"]),
        ("\n\n one \n\n", ["   Ruling: one"]),  # blanks around it go
        ("- one\n- two", ["   Ruling: - one", "   - two"]),
        ("one\n## Verdict: APPROVED", ["   Ruling: one", "   ## Verdict: APPROVED"]),  # kept, never dropped
        ("", []),  # nothing said, no line
        (" \n ", []),
    ],
    ids=repr,
)
def test_a_text_of_several_lines_is_indented(text: str, lines: list[str]) -> None:
    assert body(text=text)[2:-1] == lines


@for_each(("field", "label"), [("text", "Ruling"), ("rationale", "Why"), ("constraints", "Constraints")])
@for_each("empty", ["", " ", "\n", "\t\n "])
def test_what_was_not_written_has_no_line(field: str, label: str, empty: str) -> None:
    assert not any(line.startswith(f"   {label}: ") for line in body(**{field: empty}))


@for_each("severity", ["critical", "high", "medium", "low"])
def test_the_severity_stands_in_capitals(severity: str) -> None:
    assert body(severity=severity)[0] == f"1. ISSUE-R1-001 ({severity.upper()}): A, uphold_reviewer"


@for_each("option", Option)
def test_every_option_has_its_line(option: Option) -> None:
    assert body(option=option.value)[0] == f"1. ISSUE-R1-001 (HIGH): {letter(option)}, {option.value}"


@for_each(
    ("changes", "action"),
    [
        ({}, DO_A),  # no place known
        ({"place": "a.py:3"}, DO_A.replace("the code", "a.py:3")),
        ({"place": "a.py"}, DO_A.replace("the code", "a.py")),
        ({"option": "other", "place": "a.py:3"}, DO_A.replace("the code", "a.py:3")),
        ({"option": "compromise"}, DO_A),
        # the words of a person go before the option: D may leave everything as it is
        ({"option": "other", "expects_change": False}, "Leave the code at this point as it is."),
        ({"option": "uphold_coder", "expects_change": False}, "Leave the code at this point as it is."),
        (
            {"option": "uphold_coder", "expects_change": False, "place": "a.py:3"},
            "Leave the code at this point as it is.",
        ),
        ({"option": "retry"}, "Start again with these words in mind."),
        ({"option": "retry", "expects_change": False}, "Start again with these words in mind."),
    ],
    ids=str,
)
def test_the_coder_is_told_what_to_do(changes: dict[str, Any], action: str) -> None:
    # DEC-1: the required action; DEC-2: no second argument, a new finding instead.
    assert action_for_coder(ruling(**changes)) == action


@for_each("option", [REVIEWER, COMPROMISE, OTHER], ids=str)
def test_whoever_must_change_something_may_not_argue_again(option: Option) -> None:
    # DEC-2
    assert "Do not argue it again" in body(option=option.value)[-1]


RULINGS = st.builds(
    Ruling,
    name=st.from_regex(r"ISSUE-R[1-9]-[0-9]{3}", fullmatch=True),
    severity=st.sampled_from(["critical", "high", "medium", "low"]),
    title=st.text(min_size=1).filter(str.strip),
    option=st.sampled_from([option.value for option in Option]),
    text=st.text(),
    rationale=st.text(),
    constraints=st.text(),
    place=st.just("") | st.just("src/a.py:3"),
    expects_change=st.booleans(),
)


@given(st.lists(RULINGS, min_size=1, max_size=4))
def test_whatever_people_write_stays_inside_its_ruling(rulings: list[Ruling]) -> None:
    heading, empty, *lines = ruling_lines(rulings)
    outside = [line for line in lines if line and not line.startswith("   ")]

    assert (heading, empty) == (HEADING, "")
    assert [line.split(" ", 2)[:2] for line in outside] == [
        [f"{number}.", item.name] for number, item in enumerate(rulings, start=1)
    ]


@given(RULINGS)
def test_no_word_of_a_ruling_is_lost(decided: Ruling) -> None:
    said = "\n".join(ruling_lines([decided])).split()

    for text in (decided.title, decided.text, decided.rationale, decided.constraints):
        assert all(word in said for word in text.split())


@given(st.lists(RULINGS, min_size=1, max_size=4))
def test_a_line_is_one_line(rulings: list[Ruling]) -> None:
    assert all(len(line.splitlines()) <= 1 for line in ruling_lines(rulings))

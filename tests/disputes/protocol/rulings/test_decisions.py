"""What a decision means afterwards: who argues it again."""

from disputes.protocol.responses.response import read_response
from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.rearguing import (
    RE_ARGUED_CONFLICT,
    StandingDecision,
    reargued,
    repeated_positions,
)
from tests.cases import for_each
from tests.own_time import linear_time

A, B, C, D = Option.UPHOLD_REVIEWER, Option.UPHOLD_CODER, Option.COMPROMISE, Option.OTHER
CODE = "ISSUE-R5-003"
POSITION = "Keep instant retries for file operations. Delays only slow the workflow down."


def standing(option: Option = A, **fields: object) -> StandingDecision:
    changes = {"expects_change": option is not B}
    return StandingDecision(**{"codes": frozenset({CODE}), "option": option, **changes, **fields})  # type: ignore[arg-type]


def block(code: str = CODE) -> str:
    return (
        f"## DISAGREE: {code}\n\n**Reviewer Concern:**\n> Back off.\n\n"
        f"**Engineer Position:** No.\n\n**Rationale:** Files fail fast.\n"
    )


def argued(document: str, *decisions: StandingDecision) -> list[tuple[int, str]]:
    read = read_response(document)
    problems = reargued(read.disagreements, read.answers, decisions)
    return [(problem.line, problem.reason.split()[0]) for problem in problems]


# --- Arguing again ----------------------------------------------------------------------------------------


def test_a_disagreement_on_a_decided_finding_is_re_argued() -> None:
    """DEC-3"""
    assert RE_ARGUED_CONFLICT == "RE_ARGUED_CONFLICT"
    assert argued(block(), standing()) == [(1, CODE)]


@for_each("option", [A, B, C, D])
def test_whatever_was_ruled_it_is_not_argued_again(option: Option) -> None:
    """DEC-2"""
    assert argued(block(), standing(option)) == [(1, CODE)]


def test_another_name_of_the_finding_is_the_same_finding() -> None:
    """A finding that comes back has a code of the new round as well."""
    names = frozenset({CODE, "ISSUE-R6-001"})
    assert argued(block("ISSUE-R6-001"), standing(codes=names)) == [(1, "ISSUE-R6-001")]


def test_what_is_not_decided_may_be_argued() -> None:
    assert argued(block("ISSUE-R5-004"), standing()) == []


@for_each(
    "document",
    [
        "```\n" + block() + "```\n",
        "~~~~\n```\n" + block() + "~~~~\n",
        "".join(f"> {line}\n" for line in block().splitlines()),
    ],
)
def test_an_example_argues_nothing(document: str) -> None:
    """DEC-6"""
    assert argued(document, standing()) == []


def test_every_finding_that_is_argued_again_is_named_once_in_the_order_of_the_lines() -> None:
    second = "ISSUE-R5-001"
    decisions = standing(), standing(codes=frozenset({second}))
    assert [code for _, code in argued(block() + "\n" + block(second), *decisions)] == [CODE, second]


def test_a_finding_ruled_for_the_reviewer_may_not_be_declined_in_a_table_either() -> None:
    """DEC-2"""
    read = read_response(block() + "\n" + block("ISSUE-R5-004"))
    assert reargued((), read.answers, [standing()])[0].reason.startswith(CODE)
    assert reargued((), read.answers, [standing(B)]) == ()


# --- Proposing again --------------------------------------------------------------------------------------


def repeated(document: str, **fields: object) -> list[int]:
    decision = standing(**{"coder_position": POSITION, **fields})  # type: ignore[arg-type]
    return [problem.line for problem in repeated_positions(document, [decision])]


def test_a_response_that_repeats_the_position_ruled_out_is_warned_of() -> None:
    """DEC-4"""
    text = "# Round 6\n\nAll done.\n\nWe keep the instant retry for each file operation.\n"
    assert repeated(text) == [5]


@for_each("option", [A, C, D])
def test_that_holds_for_every_option_but_the_coders(option: Option) -> None:
    """DEC-4: if the option was not B"""
    assert repeated(POSITION, option=option) == [1]
    assert repeated(POSITION, option=B) == []


@for_each("mark", ["> {}", "```\n{}\n```"])
def test_a_quoted_position_is_no_proposal(mark: str) -> None:
    """DEC-4, ID-3"""
    assert repeated(mark.format(POSITION.splitlines()[0])) == []


def test_words_of_the_ruling_itself_are_no_proposal() -> None:
    """DEC-4: a synthesis keeps a part of what the coder wanted"""
    ruling = "Keep instant retries for file operations; others back off. Delays slow the workflow down there."
    assert repeated(POSITION, option=C, text=ruling) == []


def test_other_words_on_the_same_subject_are_no_proposal() -> None:
    assert repeated("File operations retry with 1s, 2s and 4s delays, as ruled.") == []


def test_a_position_of_few_words_is_recognised_nowhere() -> None:
    assert repeated("No, it is fine.", coder_position="No, it is fine.") == []


def test_a_silent_side_has_nothing_to_repeat() -> None:
    assert repeated(POSITION, coder_position="") == []


def test_the_warning_names_the_finding() -> None:
    decision = standing(coder_position=POSITION)
    assert CODE in repeated_positions(POSITION, [decision])[0].reason


def test_a_long_response_is_compared_in_no_time() -> None:
    decisions = [standing(coder_position=POSITION * 500)] * 20
    for piece in ("word ", "word\n\n", "a. "):
        with linear_time():
            repeated_positions(piece * (250 * 1024 // len(piece)), decisions)

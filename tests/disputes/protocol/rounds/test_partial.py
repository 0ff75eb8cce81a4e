"""Rounds in which a side delivered nothing or a part."""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.rounds.examples import CANONICAL
from disputes.protocol.rounds.partial import (
    Automatic,
    Cause,
    Declared,
    Delivered,
    Manual,
    Mark,
    automatic_checks,
    delivery,
    read_no_issues,
)
from disputes.protocol.rounds.validation import Form, validate_proposal
from disputes.protocol.text.documents import MAX_BYTES
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

KNOWN = {"GAP-AUTH-001", "GAP-AUTH-002", "GAP-QA-001"}
PROPOSAL = CANONICAL[Form.PROPOSAL]


def delivered(text: str, *assigned: str) -> Delivered:
    return delivery(text, assigned, KNOWN, validate_proposal(text, KNOWN))


# --- Why nothing was delivered ----------------------------------------------------------------------------


def test_a_gap_that_is_declared_blocked_waits_for_input() -> None:
    # PART-2
    made = delivered("BLOCKED_NEEDS_INPUT: GAP-AUTH-001 (which store?)\n", "GAP-AUTH-001")

    assert made.cause is Cause.EXPLICIT_BLOCK
    assert made.blocked == (Declared("GAP-AUTH-001", "GAP-AUTH-001 (which store?)", 1),)
    assert made.missing == ()


@for_each(
    "line",
    [
        "**BLOCKED_NEEDS_INPUT:** GAP-AUTH-001",
        "- BLOCKED_NEEDS_INPUT : `GAP-AUTH-001`",
        "## BLOCKED_NEEDS_INPUT: GAP-AUTH-001",
        "**BLOCKED_NEEDS_INPUT**: GAP-AUTH-001 because nobody says",
    ],
)
def test_the_keyword_may_be_marked(line: str) -> None:
    assert [each.gap for each in delivered(line, "GAP-AUTH-001").blocked] == ["GAP-AUTH-001"]


@for_each("text", ["```\nBLOCKED_NEEDS_INPUT: GAP-AUTH-001\n```", "> BLOCKED_NEEDS_INPUT: GAP-AUTH-001"])
def test_a_keyword_in_an_example_declares_nothing(text: str) -> None:
    # ID-3
    made = delivered(text, "GAP-AUTH-001")

    assert (made.blocked, made.cause) == ((), Cause.OUTPUT_FAILURE)


def test_vector_40_a_wrong_category_is_no_gap_and_leaves_a_warning() -> None:
    made = delivered("BLOCKED_NEEDS_INPUT: GAP-X-001\n", "GAP-AUTH-001")

    assert made.blocked == ()
    assert made.cause in {Cause.OUTPUT_FAILURE, Cause.UNCLEAR_ASSIGNMENT}
    assert "GAP-X-001" in made.warnings[0]


def test_a_gap_that_is_not_known_cannot_be_blocked() -> None:
    made = delivered("BLOCKED_NEEDS_INPUT: GAP-XX-404\n", "GAP-AUTH-001")

    assert (made.blocked, made.missing) == ((), ("GAP-AUTH-001",))
    assert made.warnings


@for_each("line", ["UNCERTAINTY: what a tenant is", "**UNCERTAINTY:** what a tenant is"])
def test_an_uncertainty_is_a_gap_of_knowledge(line: str) -> None:
    # PART-2
    made = delivered(f"{line}\n", "GAP-AUTH-001")

    assert (made.cause, made.uncertain) == (Cause.DOMAIN_GAP, "what a tenant is")


@for_each("text", ["", " \n", "x" * (MAX_BYTES + 1), "I looked at it."])
def test_what_is_empty_or_malformed_is_an_output_that_failed(text: str) -> None:
    # PART-2
    made = delivered(text, "GAP-AUTH-001")

    assert (made.cause, made.missing) == (Cause.OUTPUT_FAILURE, ("GAP-AUTH-001",))


@for_each("text", [PROPOSAL.replace("GAP-AUTH-001", "GAP-QA-001"), PROPOSAL.replace("GAP-", "")])
def test_a_text_on_other_gaps_had_an_unclear_assignment(text: str) -> None:
    # PART-2
    assert delivered(text, "GAP-AUTH-002").cause is Cause.UNCLEAR_ASSIGNMENT


def test_a_block_goes_before_an_uncertainty_and_that_before_a_failure() -> None:
    # PART-2: the order of detection
    both = "UNCERTAINTY: tenants\nBLOCKED_NEEDS_INPUT: GAP-AUTH-001\n"

    assert delivered(both, "GAP-AUTH-001").cause is Cause.EXPLICIT_BLOCK
    assert delivered("UNCERTAINTY: tenants\n", "GAP-AUTH-001").cause is Cause.DOMAIN_GAP


def test_a_proposal_for_its_gap_has_no_cause() -> None:
    assert delivered(PROPOSAL, "GAP-AUTH-001") == Delivered(addressed=("GAP-AUTH-001",))


def test_a_part_of_the_assignment_is_told_from_the_rest() -> None:
    text = PROPOSAL + "\nBLOCKED_NEEDS_INPUT: GAP-QA-001 needs the test data\n"
    made = delivered(text, "GAP-AUTH-001", "GAP-AUTH-002", "GAP-QA-001")

    assert (made.addressed, made.missing) == (("GAP-AUTH-001",), ("GAP-AUTH-002",))
    assert [each.gap for each in made.blocked] == ["GAP-QA-001"]
    assert made.cause is None


LINES = st.sampled_from(
    [
        "BLOCKED_NEEDS_INPUT: GAP-AUTH-001",
        "BLOCKED_NEEDS_INPUT: GAP-X-1",
        "UNCERTAINTY: x",
        PROPOSAL,
        "```",
        "",
    ]
)


@given(st.lists(LINES | st.text(max_size=40), max_size=8), st.sets(st.sampled_from(sorted(KNOWN))))
def test_every_assigned_gap_is_addressed_missing_or_blocked(lines: list[str], assigned: set[str]) -> None:
    made = delivered("\n".join(lines), *sorted(assigned))
    blocked = {each.gap for each in made.blocked}

    assert set(made.addressed) | set(made.missing) == assigned - blocked
    assert not set(made.addressed) & set(made.missing)
    assert made.cause or made.addressed or not assigned


@for_each("piece", ["BLOCKED_NEEDS_INPUT: GAP-AUTH-001 ", "UNCERTAINTY  ", "BLOCKED_NEEDS_INPUT\n"])
def test_detection_takes_time_in_proportion_to_the_text(piece: str) -> None:
    validation = validate_proposal("", KNOWN)

    def detect(text: str) -> Delivered:
        return delivery(text, ["GAP-AUTH-001"], KNOWN, validation)

    assert growth(detect, lambda size: piece * (size // len(piece)), 20_000) < QUADRATIC / 2


# --- A review that found nothing --------------------------------------------------------------------------

NO_ISSUES = """\
## Review: GAP-AUTH-001

NO_ISSUES_FOUND. Looked at: Proposed Solution, Examples.

- [x] Success example present
- Edge or error example: n.a.
- [x] Consistent with settled gaps
- [x] No duplicate definitions
- Same terms throughout: yes
"""


def test_a_review_without_findings_lists_what_it_looked_at() -> None:
    # PART-1
    read = read_no_issues(NO_ISSUES, KNOWN)

    assert read.gaps == ("GAP-AUTH-001",)
    assert read.checklist == {
        Manual.SUCCESS_EXAMPLE: Mark.YES, Manual.ERROR_EXAMPLE: Mark.NOT_APPLICABLE,
        Manual.CONSISTENT: Mark.YES, Manual.DEFINITIONS: Mark.YES, Manual.TERMS: Mark.YES,
    }  # fmt: skip
    assert read.problems == ()


def test_it_signs_off_only_a_gap_that_it_lists() -> None:
    read = read_no_issues(NO_ISSUES, KNOWN)

    assert read.signs_off("GAP-AUTH-001")
    assert not read.signs_off("GAP-AUTH-002")


@for_each("item", Manual)
def test_each_item_of_the_checklist_must_be_there(item: Manual) -> None:
    words = {
        Manual.SUCCESS_EXAMPLE: "Success", Manual.ERROR_EXAMPLE: "Edge or error",
        Manual.CONSISTENT: "Consistent", Manual.DEFINITIONS: "No duplicate definitions",
        Manual.TERMS: "Same terms",
    }  # fmt: skip
    read = read_no_issues(NO_ISSUES.replace(words[item], "Something"), KNOWN)

    assert read.problems == (f"the checklist does not say: {item}",)
    assert not read.signs_off("GAP-AUTH-001")


@for_each(
    "line",
    [
        "- [ ] Success example present",
        "- Success example: issue",
        "- Success example: no",
        "| Success example | no |",
        "- Success example: FAILED",
        "- ❌ Success example",
    ],
)
def test_an_item_that_is_marked_as_an_issue_is_a_problem(line: str) -> None:
    read = read_no_issues(NO_ISSUES.replace("- [x] Success example present", line), KNOWN)

    assert read.checklist[Manual.SUCCESS_EXAMPLE] is Mark.ISSUE
    assert not read.signs_off("GAP-AUTH-001")


@for_each(
    ("line", "mark"),
    [
        ("| No duplicate definitions | yes |", Mark.YES),
        ("| No duplicate definitions | n/a |", Mark.NOT_APPLICABLE),
        ("4. No duplicate definitions ✓", Mark.YES),
        ("* no duplicate definitions: passed", Mark.YES),
        ("- No duplicate definitions: not applicable", Mark.NOT_APPLICABLE),
    ],
)
def test_a_checklist_is_written_in_many_ways(line: str, mark: Mark) -> None:
    read = read_no_issues(NO_ISSUES.replace("- [x] No duplicate definitions", line), KNOWN)

    assert read.checklist[Manual.DEFINITIONS] is mark


def test_prose_is_no_checklist() -> None:
    assert (
        read_no_issues("NO_ISSUES_FOUND for GAP-AUTH-001. Terms: ok, success: yes.\n", KNOWN).checklist == {}
    )


def test_without_a_gap_it_has_no_scope() -> None:
    problems = read_no_issues(NO_ISSUES.replace("GAP-AUTH-001", "sessions"), KNOWN).problems

    assert problems == ("it lists no gap that it looked at",)


def test_our_example_passes_every_automatic_check() -> None:
    # PART-1
    assert all(automatic_checks(PROPOSAL, KNOWN).values())


@for_each(
    ("check", "gone", "instead"),
    [
        (Automatic.EXAMPLES, "**Example", "**Case"),
        (Automatic.CONFIDENCE, "**Confidence:**", "**Trust:**"),
        (Automatic.TRADE_OFFS, "### Trade-offs", "### Notes"),
        (Automatic.NEW_GAPS, "### New Gaps Introduced", "### Notes"),
        (Automatic.IDS, "### New Gaps Introduced", "### Notes"),
    ],
)
def test_an_automatic_check_fails_for_what_is_not_there(check: Automatic, gone: str, instead: str) -> None:
    assert not automatic_checks(PROPOSAL.replace(gone, instead), KNOWN)[check]


def test_a_short_section_fails_the_check_of_its_length() -> None:
    assert not automatic_checks("## Gap Resolution: GAP-AUTH-001\n\nShort.\n", KNOWN)[Automatic.LENGTH]


def test_a_document_without_a_section_passes_no_check_of_its_sections() -> None:
    checks = automatic_checks("Nothing.\n", KNOWN)

    assert {check for check, passed in checks.items() if passed} == {Automatic.IDS}

"""The gate: form, content, everything collected, tolerant of what a careful reader would take."""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.rounds.validation import (
    Failure,
    FailureType,
    Validation,
    validate_proposal,
    validate_review,
    verdict_of,
)
from disputes.protocol.text.documents import MAX_BYTES
from tasks.configuration.policy import ProjectSettings
from tests.cases import for_each

T = FailureType
KNOWN = {"GAP-AUTH-001", "GAP-AUTH-002"}
LONG = "A session ends after thirty minutes without a request. " * 5
PROPOSAL = f"""\
## Gap Resolution: GAP-AUTH-001

**Confidence:** HIGH

### Proposed Solution

{LONG}

### Trade-offs

Longer sessions are handier and less safe.
"""
REVIEW = """\
## Review: GAP-AUTH-001

### High Priority

- **ISSUE-R3-001**: The limit of a session is not given
  - **Impact:** Two readers build two things.

## Verdict: NEEDS_REVISION
"""
EMPTY_REVIEW = """\
## Review: GAP-AUTH-001

### Critical Issues

None.

### High Priority

None identified.

NO_ISSUES_FOUND
"""


def types(validation: Validation) -> list[FailureType]:
    return [failure.type for failure in validation.failures]


def warned(validation: Validation) -> list[FailureType]:
    return [warning.type for warning in validation.warnings]


# --- The table --------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(list(FailureType))))
def test_everything_that_was_found_is_told_once(kinds: list[FailureType]) -> None:
    # VAL-2, VAL-5
    result = verdict_of([Failure(kind, str(number)) for number, kind in enumerate(kinds)])

    assert sorted([*types(result), *warned(result)]) == sorted(kinds)
    assert result.success is (not result.failures)
    assert result.failure_type == next(iter(types(result)), None)


@given(st.lists(st.sampled_from(list(FailureType))), st.sampled_from(list(FailureType)))
def test_one_more_failure_never_lets_a_document_pass(kinds: list[FailureType], more: FailureType) -> None:
    before = verdict_of([Failure(kind, "") for kind in kinds])
    after = verdict_of([Failure(kind, "") for kind in [*kinds, more]])

    assert before.success or not after.success


# --- Proposals --------------------------------------------------------------------------------------------


def test_a_proposal_in_the_canonical_form_passes() -> None:
    result = validate_proposal(PROPOSAL, KNOWN)

    assert result == Validation(success=True, gaps_addressed=("GAP-AUTH-001",))


@for_each("text", ["", " ", "\n\t\n", "\r\n", "\u00a0\n"])
def test_a_blank_file_is_empty(text: str) -> None:
    assert types(validate_proposal(text, KNOWN)) == [T.EMPTY_OUTPUT]
    assert types(validate_review(text, KNOWN)) == [T.EMPTY_OUTPUT]


def test_a_file_that_is_too_large_is_refused_with_its_size() -> None:
    text = "x" * (MAX_BYTES + 1)

    assert str(MAX_BYTES + 1) in validate_proposal(text, KNOWN).message
    assert types(validate_review(text, KNOWN)) == [T.WRONG_FORMAT]


@for_each(
    ("gone", "kind"),
    [
        ("## Gap Resolution: GAP-AUTH-001", T.WRONG_FORMAT),
        ("**Confidence:** HIGH", T.WRONG_FORMAT),
    ],
)
def test_without_its_heading_or_confidence_it_has_the_wrong_form(gone: str, kind: FailureType) -> None:
    text = PROPOSAL.replace("### Proposed Solution", "### Sessions").replace(gone, "See GAP-AUTH-001.")

    assert types(validate_proposal(text, KNOWN)) == [kind]


def test_headings_in_a_fence_are_none() -> None:
    # ID-3
    result = validate_proposal(f"```\n{PROPOSAL}\n```\n", KNOWN)

    assert types(result) == [T.WRONG_FORMAT, T.WRONG_FORMAT, T.NO_GAPS_ADDRESSED]


def test_all_failures_are_collected() -> None:
    # VAL-2
    result = validate_proposal("We settled GAP-XX-009.\n", KNOWN)

    assert types(result) == [T.WRONG_FORMAT, T.WRONG_FORMAT, T.INCONSISTENT_REFS]
    assert warned(result) == [T.INCOMPLETE_STRUCTURE]
    assert "## Gap Resolution:" in result.message
    assert "GAP-XX-009" in result.message


def test_a_proposal_that_names_no_gap_addresses_none() -> None:
    text = PROPOSAL.replace("GAP-AUTH-001", "sessions")

    assert types(validate_proposal(text, KNOWN)) == [T.NO_GAPS_ADDRESSED]


def test_an_unknown_gap_is_named_with_its_line() -> None:
    result = validate_proposal(PROPOSAL + "\nSee GAP-QA-404.\n", KNOWN)

    failure = next((each for each in result.failures if each.type is T.INCONSISTENT_REFS), None)
    assert failure is not None
    assert (failure.refs, failure.line) == (("GAP-QA-404",), 13)


def test_vector_36_a_gap_that_the_document_introduces_is_known() -> None:
    # VAL-1
    text = PROPOSAL + "\n### New Gaps Introduced\n\n- GAP-AUTH-003: what happens to drafts?\n"

    assert validate_proposal(text, KNOWN).success


def test_a_gap_below_new_gaps_is_known_in_the_whole_document() -> None:
    # VAL-1
    text = PROPOSAL.replace("Longer", "GAP-AUTH-003 asks more. Longer") + "\n### New Gaps\n\n- GAP-AUTH-003\n"

    assert validate_proposal(text, KNOWN).success


def test_a_part_of_a_split_gap_is_a_gap_of_its_own() -> None:
    text = PROPOSAL.replace("GAP-AUTH-001", "GAP-AUTH-001a")

    assert types(validate_proposal(text, KNOWN)) == [T.INCONSISTENT_REFS]
    assert validate_proposal(text, {"GAP-AUTH-001a"}).success


def test_a_thin_section_is_a_warning() -> None:
    result = validate_proposal(PROPOSAL.replace(LONG, "Short."), KNOWN)

    assert result.success
    assert warned(result) == [T.THIN_CONTENT]
    assert result.warnings[0].refs == ("GAP-AUTH-001",)


@for_each(("length", "thin"), [(199, True), (200, False)])
def test_two_hundred_characters_are_enough(length: int, thin: bool) -> None:
    text = f"**Confidence:** HIGH\n### Trade-offs\n## Gap Resolution: GAP-AUTH-001\n{'x' * length}\n"

    assert bool(validate_proposal(text, KNOWN).warnings) is thin


def test_how_thin_is_a_setting() -> None:
    text = PROPOSAL.replace(LONG, "Short.")

    assert not validate_proposal(text, KNOWN, ProjectSettings(thin_content_chars=10)).warnings


def test_without_trade_offs_the_structure_is_incomplete() -> None:
    result = validate_proposal(PROPOSAL.replace("### Trade-offs", "### Notes"), KNOWN)

    assert (result.success, warned(result)) == (True, [T.INCOMPLETE_STRUCTURE])


def test_where_no_heading_names_a_gap_those_mentioned_are_addressed() -> None:
    text = PROPOSAL.replace("## Gap Resolution: GAP-AUTH-001", "## Resolution\n\n**Gap:** GAP-AUTH-001")

    assert validate_proposal(text, KNOWN).gaps_addressed == ("GAP-AUTH-001",)


# --- Reviews ----------------------------------------------------------------------------------------------


def test_a_review_in_the_canonical_form_passes() -> None:
    assert validate_review(REVIEW, KNOWN) == Validation(success=True, gaps_addressed=("GAP-AUTH-001",))


def test_a_review_that_found_nothing_passes_and_alarms_nobody() -> None:
    # PART-1
    result = validate_review(EMPTY_REVIEW, KNOWN)

    assert (result.success, result.warnings) == (True, ())


@for_each(
    "heading",
    ["# Review: GAP-AUTH-001", "# Reviewer Round 3: GAP-AUTH-001", "## Review of GAP-AUTH-001",
     "# Reviewer Assessment", "## Review Summary", "# Reviewer Response - Round 003"],
)  # fmt: skip
def test_the_heading_of_a_review_is_written_in_many_ways(heading: str) -> None:
    # VAL-3
    assert validate_review(REVIEW.replace("## Review: GAP-AUTH-001", heading), KNOWN).success


def test_without_a_heading_it_is_no_review() -> None:
    result = validate_review(REVIEW.replace("## Review: GAP-AUTH-001", "## GAP-AUTH-001"), KNOWN)

    assert types(result) == [T.WRONG_FORMAT]


@for_each(
    "heading",
    [
        "## Critical Issues",
        "#### HIGH Priority",
        "### Low Priority / Nits",
        "### Minor Issues (Non-Blocking)",
    ],
)
def test_the_heading_of_a_severity_is_written_in_many_ways(heading: str) -> None:
    # VAL-3
    assert validate_review(f"## Review: GAP-AUTH-001\n\n{heading}\n\nNone.\n", KNOWN).success


def test_a_review_without_severities_findings_and_verdict_has_the_wrong_form() -> None:
    result = validate_review("## Review: GAP-AUTH-001\n\nIt reads well.\n", KNOWN)

    assert types(result) == [T.WRONG_FORMAT]
    assert warned(result) == [T.PARSER_ALARM]


def test_no_issues_found_in_a_fence_is_an_example() -> None:
    text = "## Review: GAP-AUTH-001\n\n```\nNO_ISSUES_FOUND\n```\n"

    assert types(validate_review(text, KNOWN)) == [T.WRONG_FORMAT]


def test_a_review_need_not_name_a_gap_but_may_name_none_that_is_unknown() -> None:
    assert validate_review(REVIEW.replace("GAP-AUTH-001", "sessions"), KNOWN).success
    assert types(validate_review(REVIEW.replace("GAP-AUTH-001", "GAP-XX-001"), KNOWN)) == [
        T.INCONSISTENT_REFS
    ]


@for_each(
    "text",
    [
        "## Review: GAP-AUTH-001\n\nThe limits are missing.\n\n## Verdict: NEEDS WORK\n",
        "## Review: GAP-AUTH-001\n\n## Verdict: APPROVED_WITH_CONDITIONS\n",
        "## Review: GAP-AUTH-001\n\nOne CRITICAL thing is the limit.\n\n## Verdict: APPROVED\n",
        "## Review: GAP-AUTH-001\n\n### High Priority\n\nThe limit is missing.\n",
    ],
)
def test_a_review_in_which_no_finding_can_be_read_is_an_alarm(text: str) -> None:
    # VAL-4
    assert T.PARSER_ALARM in warned(validate_review(text, KNOWN))


@for_each(
    "text",
    [
        "## Review: GAP-AUTH-001\n\n## Verdict: APPROVED\n",
        "## Review: GAP-AUTH-001\n\nNo CRITICAL or HIGH issues.\n\n## Verdict: APPROVED\n",
        "## Review: GAP-AUTH-001\n\nISSUE-R2-001 (HIGH): RESOLVED\n\n## Verdict: APPROVED\n",
        "## Review: GAP-AUTH-001\n\n**Confidence:** HIGH\n\n## Verdict: APPROVED\n",
        "## Review: GAP-AUTH-001\n\n```\nHIGH\n```\n\n## Verdict: APPROVED\n",
        "## Review: GAP-AUTH-001\n\n### High Priority\n\n### Low Priority\n\nNone.\n\nNO_ISSUES_FOUND\n",
    ],
)
def test_an_approval_that_states_no_severity_is_none(text: str) -> None:
    # VAL-4
    assert validate_review(text, KNOWN).warnings == ()


# --- Hostile text -----------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [PROPOSAL, REVIEW, "## Review:", "### High Priority", "NO_ISSUES_FOUND", "```", "> q", "HIGH", "None."]
)


@given(st.lists(PIECES | st.text(max_size=60), max_size=12))
def test_any_document_passes_or_says_why_not(pieces: list[str]) -> None:
    text = "\n".join(pieces)

    for result in (validate_proposal(text, KNOWN), validate_review(text, KNOWN)):
        assert result.success is (result.message == "")

"""DISAGREE blocks as a human is to see them: every shape (DIS-2), malformed ones as drafts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.responses.disagree_blocks import (
    INVALID_REF,
    MALFORMED,
    MISSING_POSITION,
    Disagreement,
)
from disputes.protocol.responses.response import ReadResponse, read_response
from disputes.protocol.text.documents import DocumentError
from tests.cases import for_each

KNOWN = ["ISSUE-R1-001", "ISSUE-R1-002", "ISSUE-R1-003", "CRIT-001"]
PARTS = "**Reviewer Concern:** a\n**Engineer Position:** c\n**Rationale:** b"


def read(text: str) -> ReadResponse:
    return read_response(text, KNOWN)


def block(text: str) -> Disagreement:
    (only,) = read(text).disagreements
    return only


SHAPES = [
    f"## DISAGREE: ISSUE-R1-001\n{PARTS}",
    f"#### **DISAGREE** [ISSUE-R1-001]\n{PARTS}",
    f"## DISAGREE: R1-001\n{PARTS}",  # ANS-3
    f"## 2. DISAGREE: ISSUE-R1-001\n{PARTS}",
    f"## DISAGREE – ISSUE-R1-001 (limits)\n{PARTS}",
    f"# DISAGREE: ISSUE-R1-001\n{PARTS}",
    f"## I disagree with ISSUE-R1-001\n{PARTS}",
    f"DISAGREE: ISSUE-R1-001\n{PARTS}",  # inline
    f"- **DISAGREE: ISSUE-R1-001**\n{PARTS}",
    f"We must say DISAGREE: ISSUE-R1-001\n{PARTS}",
    # round 1's form
    "## Response to ISSUE-R1-001\n**Reviewer Concern:** a\n**Engineer Position:** DISAGREE. c\n"
    "**Rationale:** b",
    "### ISSUE-R1-001: limits\n**Reviewer Concern:** a\n**Position:** Disagree - c\n**Rationale:** b",
]


@for_each("text", SHAPES)
def test_a_block_is_read_in_its_shape(text: str) -> None:
    found = block(text)

    assert (found.code, found.concern, found.position, found.rationale) == ("ISSUE-R1-001", "a", "c", "b")
    assert found.problems == ()
    assert [str(answer.kind) for answer in read(text).answers] == ["declined"]


@for_each(
    "label", ["Alternative", "Alternative Approach", "Alternative Approach (if any)", "Alternative View"]
)
def test_the_short_forms_of_an_alternative_are_read(label: str) -> None:
    found = block(f"## DISAGREE: ISSUE-R1-001\n{PARTS}\n**{label}:** d\n**Request:** e")

    assert (found.alternative, found.request) == ("d", "e")


def test_a_block_may_be_about_several_findings() -> None:
    found = read(f"## DISAGREE: ISSUE-R1-001, ISSUE-R1-002\n{PARTS}").disagreements

    assert [(each.code, each.rationale) for each in found] == [("ISSUE-R1-001", "b"), ("ISSUE-R1-002", "b")]


def test_an_id_of_the_reviewers_own_may_be_disagreed_with() -> None:
    assert block(f"## DISAGREE: CRIT-001\n{PARTS}").problems == ()


@for_each(
    "text",
    [
        f"```\n## DISAGREE: ISSUE-R1-001\n{PARTS}\n```",
        f"````markdown\n```\nx\n```\nDISAGREE: ISSUE-R1-001\n{PARTS}\n````",
        "> ## DISAGREE: ISSUE-R1-001\n> **Rationale:** b",
        "Write `DISAGREE: ISSUE-R1-001` to object.",
        "## Disagree with the old schema\n\nIt is slow.",
        "## Disagreement Format (Addressing ISSUE-R1-001)\n\nIt has labels.",
        "### DISAGREE Limits (ISSUE-R1-001)\n\nFive.",
        "## DISAGREE Form",
        'Who writes "DISAGREE: ISSUE-R1-001" objects.',
        "## Response to ISSUE-R1-001\n**Engineer Position:** AGREE",
        "We no longer disagree: ISSUE-R1-002 is right.",
    ],
)
def test_an_example_and_an_ordinary_word_are_no_disagreement(text: str) -> None:
    assert read(text).disagreements == ()


# --- Malformed ones are drafts ----------------------------------------------------------------------------


def test_a_block_on_an_unknown_finding_is_kept_and_the_others_are_read() -> None:
    text = f"## DISAGREE: ISSUE-R9-001\n{PARTS}\n\n## DISAGREE: ISSUE-R1-002\n{PARTS}"

    assert [(each.code, each.problems) for each in read(text).disagreements] == [
        ("ISSUE-R9-001", (INVALID_REF,)), ("ISSUE-R1-002", ()),
    ]  # fmt: skip
    assert [answer.code for answer in read(text).answers] == ["ISSUE-R1-002"]


@for_each(
    ("text", "code"),
    [("## DISAGREE", ""), ("## DISAGREE: that one", ""), ("## DISAGREE: HIGH-007", "HIGH-007")],
)
def test_a_block_that_names_no_known_finding_says_so(text: str, code: str) -> None:
    found = block(f"{text}\n{PARTS}")

    assert (found.code, found.problems) == (code, (INVALID_REF,))


@for_each(
    ("body", "position", "problems"),
    [
        ("**Reviewer Concern:** a\n**Rationale:** b", "b", (MISSING_POSITION,)),
        ("**Reviewer Concern:** a\n**Engineer Position:** c", "c", (MALFORMED,)),
        ("**Engineer Position:** c\n**Rationale:** b", "c", (MALFORMED,)),
        ("The limits are in the table.", "The limits are in the table.", (MALFORMED, MISSING_POSITION)),
        ("", "", (MALFORMED, MISSING_POSITION)),
        ("```\n**Rationale:** b\n```", "```\n**Rationale:** b\n```", (MALFORMED, MISSING_POSITION)),
    ],
)
def test_what_a_block_lacks_is_its_problem_and_its_text_is_kept(
    body: str, position: str, problems: tuple[str, ...]
) -> None:
    found = block(f"## DISAGREE: ISSUE-R1-001\n\n{body}\n\n---\n\n## Next\n\nmore")

    assert (found.position, found.problems) == (position, problems)


def test_a_missing_position_alone_makes_no_draft() -> None:
    found = block("## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:** a\n**Rationale:** b")

    assert not found.is_draft


def test_a_line_is_a_disagreement_with_its_paragraph() -> None:
    found = block("DISAGREE: ISSUE-R1-001 – the table is there.\nSee section 3.\n\nMore.")

    assert found.position == "the table is there.\nSee section 3."
    assert found.problems == (MALFORMED, MISSING_POSITION)


@for_each(
    ("text", "position"),
    [
        ("| ISSUE-R1-001 | declined | the table is there |", "the table is there"),
        ("- ISSUE-R1-001: We disagree, the table is there", "We disagree, the table is there"),
        ("### ISSUE-R1-001: Rejected, the table is there", "Rejected, the table is there"),
        ("### Declined\n\n- ISSUE-R1-001: the table is there", "the table is there"),
    ],
)
def test_a_finding_declined_without_a_block_is_a_draft(text: str, position: str) -> None:
    found = block(text)

    assert MALFORMED in found.problems
    assert found.position == position


def test_of_two_blocks_the_first_well_formed_one_counts() -> None:
    bare = "## DISAGREE: ISSUE-R1-001\n\nNo."
    good = f"## DISAGREE: ISSUE-R1-001\n{PARTS}"

    assert block(f"{bare}\n\n{good}").problems == ()
    assert block(f"{good}\n\n{bare}").line == 1


def test_every_fault_stands_in_the_warnings_with_its_line() -> None:
    text = "## DISAGREE: ISSUE-R9-001\n**Rationale:** b\n\n## DISAGREE\n\n| ISSUE-R1-002 | declined | no |"

    assert [(each.line, each.reason[:36]) for each in read(text).warnings] == [
        (1, "ISSUE-R9-001 is not a finding of thi"),
        (1, "the block on ISSUE-R9-001 does not q"),
        (4, "a DISAGREE heading names its finding"),
        (6, "ISSUE-R1-002 is declined without a b"),
    ]


@for_each(
    "text", ["## DISAGREE: ISSUE-R1-001", "DISAGREE: ISSUE-R1-001 no", "## DISAGREE: ISSUE-R9-001\n" + PARTS]
)
def test_a_hand_in_is_refused_where_a_person_would_get_a_draft(text: str) -> None:
    assert read(text).disagreements
    with pytest.raises(DocumentError):
        read_response(text, KNOWN, strict=True)


PIECES = st.sampled_from([
    "## DISAGREE: ", "DISAGREE: ", "ISSUE-R1-001", "ISSUE-R9-001", "## Response to ", "\n", "x", "declined",
    "**Position:** DISAGREE", "**Rationale:** b\n", "**Reviewer Concern:** a\n", "```\n", "> ", "| ", "# ",
    "---\n",
])  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_declined_finding_is_one_disagreement(text: str) -> None:
    response = read(text)
    declined = {answer.code for answer in response.answers if answer.kind == "declined"}
    codes = [each.code for each in response.disagreements if each.code]

    assert declined == {code for code in codes if code in KNOWN}
    assert len(codes) == len(set(codes))
    assert all(each.problems for each in response.disagreements if not (each.rationale and each.concern))

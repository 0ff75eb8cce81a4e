"""Reading a coder's response: its answers, its DISAGREE blocks, and every fault with its line."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.responses.response import (
    ANSWER_WORDS,
    Answered,
    AnswerKind,
    Disagreement,
    ReadResponse,
    read_response,
)
from disputes.protocol.text.documents import MAX_BYTES, DocumentError, Mode, scan
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

BLOCK = """\
## DISAGREE: ISSUE-R1-001

**Reviewer Concern:**
> The password is compared in plain text.

**Engineer Position:**
It is compared after hashing.

**Rationale:**
`check()` hashes first, see test_login.py.

**Alternative Approach (if any):**
A comment that says so.

**Request:** Escalate to user for resolution
"""
CANONICAL = f"""\
Done, but for one point.

| Finding | Answer | What was done |
|---|---|---|
| ISSUE-R1-002 | addressed | the slip is mended |
| ISSUE-R1-003 | deferred | needs the new table |

{BLOCK}"""
NO_RATIONALE = "the block on {} has no **Rationale:** with text"
NO_CONCERN = "the block on {} does not quote the **Reviewer Concern:**"
NO_BLOCK = "{} is declined without a block `## DISAGREE: {}`"


def answered(text: str) -> Answered:
    """The one answer in this text."""
    (answer,) = read_response(text).answers
    return answer


def disagreement(text: str) -> Disagreement:
    """The one block in this text."""
    (block,) = read_response(text).disagreements
    return block


def problems(document: Any) -> list[tuple[int, str]]:
    """The faults for which this is refused."""
    with pytest.raises(DocumentError) as refusal:
        read_response(document, strict=True)
    assert refusal.value.code == "malformed_response"
    return [(problem.line, problem.reason) for problem in refusal.value.problems]


# --- The canonical form -----------------------------------------------------------------------------------


def test_the_canonical_form_is_read() -> None:
    read = read_response(CANONICAL)

    assert read.text == CANONICAL
    assert [(answer.code, answer.kind.value, answer.text, answer.line) for answer in read.answers] == [
        ("ISSUE-R1-002", "addressed", "the slip is mended", 5),
        ("ISSUE-R1-003", "deferred", "needs the new table", 6),
        ("ISSUE-R1-001", "declined", "It is compared after hashing.", 8),
    ]


def test_a_block_is_read_part_by_part() -> None:
    assert disagreement(CANONICAL) == Disagreement(
        code="ISSUE-R1-001",
        position="It is compared after hashing.",
        rationale="`check()` hashes first, see test_login.py.",
        concern="The password is compared in plain text.",
        alternative="A comment that says so.",
        line=8,
        request="Escalate to user for resolution",
    )


def test_windows_line_ends_make_no_difference() -> None:
    unix, windows = read_response(CANONICAL), read_response(CANONICAL.replace("\n", "\r\n"))

    assert (windows.answers, windows.disagreements) == (unix.answers, unix.disagreements)


def test_an_empty_response_answers_nothing() -> None:
    assert read_response("") == ReadResponse((), (), "")


def test_a_response_that_is_too_large_is_refused() -> None:
    with pytest.raises(DocumentError, match="bytes") as refusal:
        read_response("a" * (MAX_BYTES + 1))

    assert refusal.value.code == "too_large"


# --- Answers (ANS-1) --------------------------------------------------------------------------------------

ANSWERS = [
    ("| ISSUE-R1-001 | addressed | done so |", ("addressed", "done so")),  # the canonical row
    ("|ISSUE-R1-001|addressed|done so|", ("addressed", "done so")),  # without blanks
    ("| ISSUE-R1-001 | addressed | done so", ("addressed", "done so")),  # without the last bar
    ("  | ISSUE-R1-001 | addressed | done so |", ("addressed", "done so")),  # indented
    ("| **ISSUE-R1-001** | addressed | done so |", ("addressed", "done so")),  # bold
    ("| `ISSUE-R1-001` | addressed | done so |", ("addressed", "done so")),
    ("| issue-r1-001 | addressed | done so |", ("addressed", "done so")),  # its case does not matter
    ("| ISSUE-R1-001 | **ADDRESSED** | done so |", ("addressed", "done so")),
    ("| ISSUE-R1-001 | done so | addressed |", ("addressed", "done so")),  # the columns the other way round
    ("| ISSUE-R1-001 | addressed |", ("addressed", "")),  # no third column
    ("| ISSUE-R1-001 | |", ("addressed", "")),  # naming it is addressing it
    ("| ISSUE-R1-001 |", ("addressed", "")),
    ("| ISSUE-R1-001 | new words, all of them |", ("addressed", "new words, all of them")),
    ("- ISSUE-R1-001: fixed", ("addressed", "")),  # a list
    ("* ISSUE-R1-001: fixed", ("addressed", "")),
    ("1. ISSUE-R1-001: fixed", ("addressed", "")),
    ("- [x] ISSUE-R1-001: fixed", ("addressed", "")),
    ("- [x] **ISSUE-R1-001** - FIXED", ("addressed", "")),
    ("ISSUE-R1-001: fixed", ("addressed", "")),
    ("**ISSUE-R1-001:** deferred to the next release", ("deferred", "deferred to the next release")),
    ("- **ISSUE-R1-001** (HIGH): partly", ("partly", "")),  # with its severity
    ("- ISSUE-R1-001 – deferred", ("deferred", "")),  # a dash
    ("- ISSUE-R1-001 — deferred", ("deferred", "")),
    ("### ISSUE-R1-001: deferred", ("deferred", "")),  # a heading
    ("#### [ISSUE-R1-001]: dropped", ("discarded", "")),
    ("    - ISSUE-R1-001: fixed", ("addressed", "")),  # below another list item
    ("| ISSUE-R1-001 | partially addressed | half of it |", ("partly", "partially addressed half of it")),
    ("| ISSUE-R1-001 | later | in the next one |", ("deferred", "in the next one")),  # later: deferred
    ("| [ISSUE-R1-001] | dropped | done so |", ("discarded", "done so")),
    ("| ISSUE-R1-001 (HIGH) | fixed | done so |", ("addressed", "done so")),
    (
        "- ISSUE-R1-001: uploads that were rejected are deleted now",
        ("addressed", "uploads that were rejected are deleted now"),
    ),
    ("| ISSUE-R1-001 | Later calls raise now | addressed |", ("addressed", "Later calls raise now")),
    ("| ISSUE-R1-001 | Rejected names raise now | addressed |", ("addressed", "Rejected names raise now")),
    ("| R1-001 | addressed | done so |", ("addressed", "done so")),  # ANS-3: a short id
    ("ISSUE-R1-001 was fixed.", ("addressed", "ISSUE-R1-001 was fixed.")),  # a sentence that claims it
    ("Fixes ISSUE-R1-001.", ("addressed", "Fixes ISSUE-R1-001.")),
    ("# Response to ISSUE-R1-001", ("addressed", "")),  # ANS-1: a heading
    ("## Changes (Addressing ISSUE-R1-001)", ("addressed", "")),
]


@for_each(("text", "expected"), ANSWERS, ids=repr)
def test_an_answer_is_read_in_its_shape(text: str, expected: tuple[str, str]) -> None:
    answer = answered(text)

    assert (answer.code, answer.kind.value, answer.text) == ("ISSUE-R1-001", *expected)


@for_each(
    "text",
    [
        "| ISSUE-R1-001 | not addressed | no time |",
        "- ISSUE-R1-001: not fixed",
        "- ISSUE-R1-001: not done, the table is missing",
    ],
    ids=repr,
)
def test_what_is_not_addressed_is_not_called_so(text: str) -> None:
    assert answered(text).kind is not AnswerKind.ADDRESSED


@for_each(("word", "kind"), ANSWER_WORDS.items(), ids=str)
@for_each("write", [str, str.upper, str.title])
def test_every_word_of_an_answer_is_understood(
    word: str, kind: AnswerKind, write: Callable[[str], str]
) -> None:
    text = f"| ISSUE-R1-001 | {write(word)} | x |\n\n{BLOCK if kind is AnswerKind.DECLINED else ''}"

    assert answered(text).kind is kind


@for_each(
    "text",
    [
        "See ISSUE-R1-001: fixed",
        "| Finding | ISSUE-R1-001 |",  # not the first cell
        "| ISSUE-R1-0011 | addressed |",  # no id
        "ISSUE-R1-0011: addressed",
        "| ISSUE-1 | addressed |",
        "|---|---|",
        "> - ISSUE-R1-001: fixed",  # ID-3: somebody else's words
        "> | ISSUE-R1-001 | addressed |",
        "```\n| ISSUE-R1-001 | addressed |\n```",  # ID-3: mentioned in code
        "~~~\nISSUE-R1-001: fixed\n~~~",
        "````\n```\n```\nISSUE-R1-001: fixed\n````",
        "```\nISSUE-R1-001: fixed",
        "Nothing to say.",
    ],
    ids=repr,
)
def test_what_only_mentions_a_finding_does_not_answer_it(text: str) -> None:
    assert read_response(text).answers == ()


@for_each(
    "text",
    [
        "- a\n\n    ```\n    ISSUE-R1-001: fixed\n    ```",
        "1. a\n\n     ```\n     | ISSUE-R1-001 | addressed |\n     ```",
    ],
    ids=repr,
)
def test_code_in_a_list_answers_nothing(text: str) -> None:
    assert read_response(text).answers == ()


RANGE = ["ISSUE-R1-013", "ISSUE-R1-014", "ISSUE-R1-015", "ISSUE-R1-016", "ISSUE-R1-017"]


@for_each(
    ("text", "codes"),
    [
        ("| R1-013 through R1-017 | addressed | all |", RANGE),
        ("| ISSUE-R1-013 through R1-017 | addressed | all |", RANGE),
        ("| ISSUE-R1-001, ISSUE-R1-002 | addressed | both |", ["ISSUE-R1-001", "ISSUE-R1-002"]),
        ("- ISSUE-R1-001, ISSUE-R1-002: fixed", ["ISSUE-R1-001", "ISSUE-R1-002"]),
        ("- ISSUE-R1-001 and ISSUE-R1-002: fixed", ["ISSUE-R1-001", "ISSUE-R1-002"]),
    ],
    ids=repr,
)
def test_one_line_may_answer_several_findings(text: str, codes: list[str]) -> None:
    assert [answer.code for answer in read_response(text).answers] == codes


def test_the_first_of_several_answers_that_agree_counts() -> None:
    answer = answered("| ISSUE-R1-001 | addressed | a |\n| ISSUE-R1-001 | fixed | b |")
    assert (answer.text, answer.line, answer.is_torn) == ("a", 1, False)


def test_of_answers_that_contradict_each_other_the_one_that_is_not_done_counts() -> None:
    """ANS-9"""
    for text, line, kind in [
        ("| ISSUE-R1-001 | addressed | a |\n| ISSUE-R1-001 | deferred | b |", 2, "deferred"),
        ("| ISSUE-R1-001 | won't fix | a |\n| ISSUE-R1-001 | addressed | b |", 1, "discarded"),
        ("- ISSUE-R1-001: fixed\n- ISSUE-R1-001: not fixed", 2, "discarded"),
        ("| ISSUE-R1-001 | fixed | a |\n\n### ISSUE-R1-001\n\nI did not change this.", 3, "discarded"),
        # the kind of one answer and its own words
        ("| ISSUE-R1-001 | addressed | Won't fix: callers rely on it |", 1, "discarded"),
        ("| ISSUE-R1-001 | fixed | moved to a later task |", 1, "deferred"),
        ('{"answers": [{"finding": "ISSUE-R1-001", "kind": "fixed", "text": "Not done."}]}', 1, "discarded"),
    ]:
        answer = answered(text)
        assert (answer.line, answer.kind, answer.is_torn) == (line, kind, True), text
    # a sign before the kind; words that deny what was done without a kind; a sentence elsewhere
    row = "| ISSUE-R1-001 | ✅ Addressed | {} |"
    for text, kind in [
        (row.format("Left as is, a lock would deadlock here."), "accepted_as_is"),
        (row.format("Will be fixed by the migration task."), "deferred"),
        (row.format("WIP"), "addressed"),
        (row.format("Tried the lock, three tests broke, so I backed it out."), "addressed"),
        (f"{row.format('lock')}\n\nNote on ISSUE-R1-001: I did not add the lock.", "addressed"),
        (f"{row.format('lock')}\n\nRegarding ISSUE-R1-001, I left it as is.", "accepted_as_is"),
    ]:
        answer = answered(text)
        assert (answer.kind, answer.is_torn) == (kind, True), text
    assert answered(row.format("Partly: `a.py` is done")).kind == "partly"
    assert answered(structured({"finding": "ISSUE-R1-001", "kind": "wont_fix"})).kind == "discarded"
    for text in (
        "| ISSUE-R1-001 | fixed | Not needed any more, since I dropped the module |",
        "| ISSUE-R1-001 | fixed | No change to the API, only the lock was added |",
        "- ISSUE-R1-001 to ISSUE-R1-003: fixed\n- ISSUE-R1-001: not fixed",  # it says more of this one
        "| ISSUE-R1-001 | deferred | later |\n| ISSUE-R1-001 | won't fix | |",
    ):
        assert not any(answer.is_torn for answer in read_response(text).answers), text


def test_answers_stand_in_the_order_of_the_document() -> None:
    read = read_response("- ISSUE-R1-003: fixed\n\n- ISSUE-R1-001: fixed\n- ISSUE-R1-002: later")

    assert [(answer.code[-1], answer.line) for answer in read.answers] == [("3", 1), ("1", 3), ("2", 4)]


def test_an_answer_fits_its_column() -> None:
    assert answered("| ISSUE-R1-001 | " + "x" * 5000 + " |").text == "x" * 4000


# --- DISAGREE ---------------------------------------------------------------------------------------------

LABELLED = "**Reviewer Concern:** a\n**Rationale:** b"
HEADINGS = [
    "## DISAGREE: ISSUE-R1-001",  # the canonical one
    "### DISAGREE: ISSUE-R1-001",  # levels 2 to 4
    "#### DISAGREE: ISSUE-R1-001",
    "## DISAGREE ISSUE-R1-001",  # without the colon
    "## DISAGREE: [ISSUE-R1-001]",  # with brackets
    "## **DISAGREE: ISSUE-R1-001**",  # bold
    "## **DISAGREE:** ISSUE-R1-001",
    "## Disagree: issue-r1-001",  # its case does not matter
    "##   DISAGREE:   ISSUE-R1-001",
    "   ## DISAGREE: ISSUE-R1-001",  # up to three blanks
    "## DISAGREE: ISSUE-R1-001 (HIGH)",  # with more behind it
    "## DISAGREE: ISSUE-R1-001: the password",
]


@for_each("heading", HEADINGS)
def test_a_heading_opens_a_block(heading: str) -> None:
    block = disagreement(f"{heading}\n\n{LABELLED}")

    assert (block.code, block.concern, block.rationale) == ("ISSUE-R1-001", "a", "b")


@for_each(
    "text",
    [
        "    ## DISAGREE: ISSUE-R1-001",  # indented code
        "##DISAGREE: ISSUE-R1-001",
        f"```\n{BLOCK}```",  # ID-3: an example
        f"~~~~markdown\n{BLOCK}\n~~~~",
        f"````\n```\n{BLOCK}\n```\n````",
        "\n".join(f"> {line}" for line in BLOCK.splitlines()),  # ID-3: a quote
        "Some say DISAGREE, others agree.",
    ],
    ids=repr,
)
def test_what_is_no_heading_of_a_block_opens_none(text: str) -> None:
    read = read_response(text)

    assert (read.disagreements, read.answers) == ((), ())


@for_each(
    ("body", "part", "expected"),
    [
        ("**Rationale:** b\n**Reviewer Concern:** a", "rationale", "b"),  # any order
        ("**Reviewer Concern**: a\n**Rationale**: b", "rationale", "b"),  # the colon outside
        ("**reviewer concern:** a\n**RATIONALE:** b", "rationale", "b"),
        ("**Reviewer Concern:**\na\n\n**Rationale:**\nb\nc\n\nd", "rationale", "b\nc\n\nd"),  # lines
        ("**Reviewer Concern:** a\n**Rationale:** b\n- c\n- d", "rationale", "b\n- c\n- d"),  # a list
        ("**Reviewer Concern:** a\n**Rationale:**\n```\n## x\n```", "rationale", "```\n## x\n```"),  # code
        ("**Reviewer Concern:** a\n**Rationale:**\n```\n**Request:** x\n```", "rationale",
         "```\n**Request:** x\n```"),  # a label in code is none
        ("**Reviewer Concern:** a\n**Rationale:** b\n**Unknown:** c", "rationale", "b\n**Unknown:** c"),
        ("**Reviewer Concern:** a\n**Rationale:** b\n**Request:** c", "rationale", "b"),  # ended
        (LABELLED, "position", "b"),  # a missing position is the rationale
        (f"**Engineer Position:** c\n{LABELLED}", "position", "c"),
        (f"**Coder Position:** c\n{LABELLED}", "position", "c"),
        (f"**Alternative Approach (if any):** c\n{LABELLED}", "alternative", "c"),
        (f"**Alternative Approach:** c\n{LABELLED}", "alternative", "c"),
        (f"**Alternative:** c\n{LABELLED}", "alternative", "c"),  # the short form
        (LABELLED, "alternative", ""),
        (f"Some words first.\n\n{LABELLED}", "concern", "a"),
        ("**Reviewer Concern:**\n> a\n**Rationale:** b", "concern", "a"),  # a quote without its marks
        ("**Reviewer Concern:**\n>a\n**Rationale:** b", "concern", "a"),
        ("**Reviewer Concern:** > a\n**Rationale:** b", "concern", "a"),
        ("**Reviewer Concern:**\n> a\n> b\n**Rationale:** b", "concern", "a\nb"),
        ("**Reviewer Concern:**\n> a\n>\n> b\n**Rationale:** b", "concern", "a\n\nb"),
        ("**Reviewer Concern:**\n> a\n\n**Rationale:** b", "concern", "a"),
        ("**Reviewer Concern:**\n> if a > b\n**Rationale:** b", "concern", "if a > b"),  # only the marks
        ("**Reviewer Concern:**\n>   a\n**Rationale:** b", "concern", "a"),
        ("**Reviewer Concern:**\n> a\n>   b\n**Rationale:** b", "concern", "a\n  b"),  # indented in the quote
        ("**Reviewer Concern:**\n> a\n\n> b\n**Rationale:** b", "concern", "a\n\nb"),
        ("**Reviewer Concern:** a\n**Rationale:** b\n\n---\n", "rationale", "b"),
    ],
    ids=repr,
)  # fmt: skip
def test_a_part_goes_on_until_the_next_label(body: str, part: str, expected: str) -> None:
    assert getattr(disagreement(f"## DISAGREE: ISSUE-R1-001\n{body}"), part) == expected


@for_each(
    ("heading", "below", "ends"),
    [
        ("##", "## Next", True),  # the same level
        ("##", "# Next", True),  # a higher one
        ("##", "### Next", False),  # a lower one stands inside it
        ("###", "### Next", True),
        ("###", "## Next", True),
        ("###", "#### Next", False),
        ("##", "> ## Next", False),  # ID-3
        ("##", "```\n## Next\n```", False),
    ],
)
def test_a_block_ends_at_a_heading_of_its_level(heading: str, below: str, ends: bool) -> None:
    block = disagreement(f"{heading} DISAGREE: ISSUE-R1-001\n{LABELLED}\n{below}\nlast line")

    assert block.rationale.endswith("last line") is not ends


def test_a_block_is_an_answer() -> None:
    answer = answered(BLOCK)

    assert (answer.kind, answer.text, answer.line) == (
        AnswerKind.DECLINED,
        "It is compared after hashing.",
        1,
    )


@for_each("word", ["addressed", "declined", "deferred", "whatever"])
def test_a_block_counts_before_a_row(word: str) -> None:
    answer = answered(f"| ISSUE-R1-001 | {word} | x |\n\n{BLOCK}")

    assert answer.kind is AnswerKind.DECLINED


def test_several_blocks_stand_side_by_side() -> None:
    read = read_response(f"{BLOCK}\n{BLOCK.replace('001', '002')}")

    assert [(block.code, block.line) for block in read.disagreements] == [
        ("ISSUE-R1-001", 1), ("ISSUE-R1-002", 17),
    ]  # fmt: skip


# --- What is refused, with its line -----------------------------------------------------------------------

ONE = "ISSUE-R1-001"
FAULTS = [
    # a heading that names nothing
    ("## DISAGREE", [(1, "a DISAGREE heading names its finding: ISSUE-R1-001")]),
    ("a\n\n### DISAGREE: that one", [(3, "a DISAGREE heading names its finding: ISSUE-R1-001")]),
    ("## DISAGREE: GAP-FLOW-001", [(1, "a DISAGREE heading names its finding: ISSUE-R1-001")]),
    # nothing below the heading
    ("## DISAGREE: ISSUE-R1-001", [(1, NO_RATIONALE.format(ONE)), (1, NO_CONCERN.format(ONE))]),
    # MALFORMED_DISAGREE: no rationale
    ("a\n## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:** a", [(2, NO_RATIONALE.format(ONE))]),
    ("## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:** a\n**Rationale:**", [(1, NO_RATIONALE.format(ONE))]),
    (
        "## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:** a\n**Rationale:**\n\n \n**Request:** c",
        [(1, NO_RATIONALE.format(ONE))],
    ),
    # a rationale in a fence or a quote is none
    (
        "## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:** a\n```\n**Rationale:** b\n```",
        [(1, NO_RATIONALE.format(ONE))],
    ),
    (
        "## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:** a\n> **Rationale:** b",
        [(1, NO_RATIONALE.format(ONE))],
    ),
    # below the end of the block
    (
        "## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:** a\n## Next\n**Rationale:** b",
        [(1, NO_RATIONALE.format(ONE))],
    ),
    # a label is bold
    (
        "## DISAGREE: ISSUE-R1-001\nReviewer Concern: a\nRationale: b",
        [(1, NO_RATIONALE.format(ONE)), (1, NO_CONCERN.format(ONE))],
    ),
    # MALFORMED_DISAGREE: no concern
    ("## DISAGREE: ISSUE-R1-001\n**Rationale:** b", [(1, NO_CONCERN.format(ONE))]),
    ("## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:**\n>\n**Rationale:** b", [(1, NO_CONCERN.format(ONE))]),
    # twice about one finding
    (f"{BLOCK}\n{BLOCK}", [(17, "ISSUE-R1-001 has a second DISAGREE block")]),
    # declined without a block
    ("| ISSUE-R1-001 | declined | no |", [(1, NO_BLOCK.format(ONE, ONE))]),
    ("a\n\n- ISSUE-R1-001: disagree", [(3, NO_BLOCK.format(ONE, ONE))]),
    ("- ISSUE-R1-001: rejected", [(1, NO_BLOCK.format(ONE, ONE))]),
    # the block is only an example
    (f"| ISSUE-R1-001 | declined | no |\n```\n{BLOCK}```", [(1, NO_BLOCK.format(ONE, ONE))]),
    # the block is about another one
    (
        f"| ISSUE-R1-001 | declined | a |\n{BLOCK.replace('001', '002')}",
        [(1, NO_BLOCK.format(ONE, ONE))],
    ),
    # every fault at once, in the order of the lines
    (
        "## DISAGREE: ISSUE-R1-002\n**Reviewer Concern:** a\n## DISAGREE\n\n- ISSUE-R1-001: declined\n"
        "## DISAGREE: ISSUE-R1-003\n**Rationale:** b",
        [
            (1, NO_RATIONALE.format("ISSUE-R1-002")),
            (3, "a DISAGREE heading names its finding: ISSUE-R1-001"),
            (5, NO_BLOCK.format(ONE, ONE)),
            (6, NO_CONCERN.format("ISSUE-R1-003")),
        ],
    ),
    (f"## DISAGREE: ISSUE-R1-0011\n{LABELLED}", [(1, "a DISAGREE heading names its finding: ISSUE-R1-001")]),
]


@for_each(("text", "expected"), FAULTS, ids=lambda value: repr(value)[:60])
def test_a_malformed_response_is_refused_with_the_lines_at_fault(
    text: str, expected: list[tuple[int, str]]
) -> None:
    assert problems(text) == expected


def test_the_data_of_a_response_is_read_under_other_names_and_keys() -> None:
    """ANS-1: also as a mapping by id, and with ids whose parts have other marks between them."""
    by_id = (
        '{"ISSUE-R1-001": "Fixed in a.py", "ISSUE-R1-002": {"status": "declined", "reason": "it is meant"}}'
    )
    listed = (
        '[{"id": "ISSUE_R1_001", "status": "fixed", "comment": "Fixed in a.py"},'
        ' {"code": "issue r1 2", "resolution": "declined", "justification": "it is meant"}]'
    )
    for text in (
        by_id, f'{{"answers": {by_id}}}', listed, f'{{"responses": {listed}}}',
        f"What I did:\n\n```json\n{by_id}\n```\n",
    ):  # fmt: skip
        read = read_response(text)
        assert [(answer.code, answer.kind, answer.text) for answer in read.answers] == [
            (ONE, AnswerKind.ADDRESSED, "Fixed in a.py"), ("ISSUE-R1-002", AnswerKind.DECLINED, ""),
        ], text  # fmt: skip
        assert [block.rationale for block in read.disagreements] == ["it is meant"]
    for other in (
        '{"findings": [{"id": "ISSUE-R1-001", "title": "the lock leaks", "severity": "high"}]}',
        '```json\n[{"id": "ISSUE-R1-001", "title": "fixed"}]\n```',
    ):
        assert not read_response(other).answers, other
    (answer,) = read_response("- ISSUE_R1_001: fixed, the lock is released").answers
    assert (answer.code, answer.kind) == (ONE, AnswerKind.ADDRESSED)


@for_each("before", range(0, 60, 7))
def test_the_line_is_the_one_of_the_heading(before: int) -> None:
    assert problems("text\n" * before + "## DISAGREE: ISSUE-R1-001\n**Rationale:** b") == [
        (before + 1, NO_CONCERN.format(ONE))
    ]


# --- JSON -------------------------------------------------------------------------------------------------

DECLINED = {
    "finding": "ISSUE-R1-001", "kind": "declined", "rationale": "r", "concern": "c", "position": "p",
    "alternative": "a", "text": "t",
}  # fmt: skip


def structured(*answers: Any) -> dict[str, Any]:
    return {"answers": list(answers)}


def test_the_structured_form_is_read() -> None:
    fixed = {"finding": "issue-r1-002", "kind": "Fixed", "text": "so"}
    read = read_response({"answers": [fixed, DECLINED], "text": "All of it."})

    assert read.text == "All of it."
    assert read.answers == (
        Answered("ISSUE-R1-002", AnswerKind.ADDRESSED, "so", 1),
        Answered("ISSUE-R1-001", AnswerKind.DECLINED, "t", 2),
    )
    assert read.disagreements == (Disagreement("ISSUE-R1-001", "p", "r", "c", "a", 2),)


@for_each("document", [{}, {"answers": []}, {"text": "- ISSUE-R1-001: fixed"}], ids=str)
def test_a_structure_without_answers_answers_nothing(document: dict[str, Any]) -> None:
    assert read_response(document).answers == ()


@for_each(("word", "kind"), ANSWER_WORDS.items(), ids=str)
def test_a_structured_answer_knows_the_same_words(word: str, kind: AnswerKind) -> None:
    (answer,) = read_response(structured({**DECLINED, "kind": word.upper()})).answers

    assert answer.kind is kind


@for_each(
    ("missing", "position"),
    [((), "p"), (("position",), "t"), (("position", "text"), "r")],  # the next best words
    ids=str,
)
def test_a_structured_disagreement_has_a_position(missing: tuple[str, ...], position: str) -> None:
    entry = {key: value for key, value in DECLINED.items() if key not in missing}
    (block,) = read_response(structured(entry)).disagreements

    assert block.position == position


NEEDS = "answer {} needs a finding and a kind: addressed, declined, discarded, deferred, partly"
MALFORMED = [
    ({"answers": None}, [(0, "answers must be a list")]),
    ({"answers": {}}, [(0, "answers must be a list")]),
    ({"answers": "ISSUE-R1-001: fixed"}, [(0, "answers must be a list")]),
    (structured(1), [(1, NEEDS.format(1))]),
    (structured(None), [(1, NEEDS.format(1))]),
    (structured([]), [(1, NEEDS.format(1))]),
    (structured({}), [(1, NEEDS.format(1))]),
    (structured({"finding": "ISSUE-R1-001"}), [(1, NEEDS.format(1))]),  # no kind
    (structured({"kind": "fixed"}), [(1, NEEDS.format(1))]),  # no finding
    (structured({"finding": "", "kind": "fixed"}), [(1, NEEDS.format(1))]),
    (structured({"finding": "ISSUE-R1-001", "kind": "maybe"}), [(1, f"{NEEDS.format(1)}, not 'maybe'")]),
    (structured({"finding": "ISSUE-R1-001", "kind": None}), [(1, NEEDS.format(1))]),
    (
        structured({**DECLINED, "rationale": ""}),
        [(1, "answer 1 declines ISSUE-R1-001 without a rationale")],
    ),
    (
        structured({**DECLINED, "rationale": " \n"}),
        [(1, "answer 1 declines ISSUE-R1-001 without a rationale")],
    ),
    # every fault at once
    (
        structured(1, DECLINED, {"finding": "ISSUE-R1-002", "kind": "disagree", "concern": "c"}, {}),
        [
            (1, NEEDS.format(1)),
            (3, "answer 3 declines ISSUE-R1-002 without a rationale"),
            (4, NEEDS.format(4)),
        ],
    ),
    (
        structured({**DECLINED, "rationale": None}),
        [(1, "answer 1 declines ISSUE-R1-001 without a rationale")],
    ),
    (structured({"finding": None, "kind": "fixed"}), [(1, NEEDS.format(1))]),
]


@for_each(("document", "expected"), MALFORMED, ids=lambda value: str(value)[:70])
def test_a_malformed_structure_is_refused_with_every_fault(
    document: dict[str, Any], expected: list[tuple[int, str]]
) -> None:
    assert problems(document) == expected


def test_null_is_no_text() -> None:
    (answer,) = read_response(structured({"finding": ONE, "kind": "fixed", "text": None})).answers

    assert answer.text == ""


@for_each(
    "document",
    [
        structured(DECLINED, DECLINED),  # two disagreements on one finding
        structured({"finding": ONE, "kind": "addressed"}, DECLINED),  # addressed and declined
    ],
    ids=["twice", "both"],
)
def test_a_structure_answers_each_finding_once(document: dict[str, Any]) -> None:
    with pytest.raises(DocumentError):
        read_response(document, strict=True)


# --- What always holds ------------------------------------------------------------------------------------

PIECES = st.sampled_from([
    "## DISAGREE", ": ", "ISSUE-R1-001", "ISSUE-R1-002", "\n", "\n\n", "**Rationale:** b\n",
    "**Reviewer Concern:** a\n", "| ", " | ", "addressed", "declined", "later", "- ", "> ", "```", "~~~", "#",
    " ", "**", "text", "\r\n", "\x00", "\ud800", "é", "[x] ", "(HIGH)",
])  # fmt: skip
GARBAGE = st.text() | st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join)


def tried(document: Any) -> ReadResponse | DocumentError:
    try:
        return read_response(document, strict=True)
    except DocumentError as refusal:
        return refusal


@given(GARBAGE)
def test_whatever_the_text_it_is_read_or_refused_with_its_lines(text: str) -> None:
    read, lines = tried(text), scan(text)

    if isinstance(read, DocumentError):
        numbers = [problem.line for problem in read.problems]
        assert numbers
        assert numbers == sorted(numbers)
        assert all(lines[number - 1].mode is Mode.STATED for number in numbers)
    else:
        assert read.text == text


@given(GARBAGE)
def test_an_answer_names_a_finding_that_its_line_names(text: str) -> None:
    read, lines = tried(text), scan(text)

    if isinstance(read, ReadResponse):
        for answer in read.answers:
            assert lines[answer.line - 1].mode is Mode.STATED
            assert answer.code in lines[answer.line - 1].text.upper()


@given(GARBAGE)
def test_each_finding_is_answered_once(text: str) -> None:
    read = tried(text)

    if isinstance(read, ReadResponse):
        codes = [answer.code for answer in read.answers]
        assert len(codes) == len(set(codes))
        declined = {answer.code for answer in read.answers if answer.kind is AnswerKind.DECLINED}
        assert declined == {block.code for block in read.disagreements}
        assert all(block.rationale and block.concern and block.position for block in read.disagreements)


@given(GARBAGE)
def test_what_stands_in_a_fence_is_an_example(text: str) -> None:
    read = read_response(f"{'`' * 99}\n{text}\n{'`' * 99}")

    assert (read.answers, read.disagreements) == ((), ())


@given(GARBAGE)
def test_what_is_quoted_is_no_statement(text: str) -> None:
    read = read_response("\n".join(f"> {line}" for line in re.split(r"\r\n|\r|\n", text)))

    assert (read.answers, read.disagreements) == ((), ())


ANY_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=9) | st.sampled_from([*ANSWER_WORDS, "ISSUE-R1-001"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["answers", "finding", "kind", "rationale", "text"]), inner, max_size=4
        )
    ),
    max_leaves=9,
)


@given(st.dictionaries(st.sampled_from(["answers", "text", "other"]), ANY_JSON))
def test_any_json_object_is_read_or_refused(document: dict[str, Any]) -> None:
    read = tried(document)

    if isinstance(read, DocumentError):
        assert read.problems
    else:
        assert len(read.answers) == len(document.get("answers", []))


WORDING = st.from_regex(r"[A-KM-QS-Z][a-km-qs-z ,;]{0,60}[a-km-qs-z]", fullmatch=True)
WRITTEN = st.lists(
    st.tuples(
        st.integers(1, 999), st.sampled_from(["addressed", "partly", "deferred", "discarded"]), WORDING
    ),
    max_size=8,
    unique_by=lambda row: row[0],
)


@given(WRITTEN)
def test_what_is_written_as_a_table_is_read_back(written: list[tuple[int, str, str]]) -> None:
    rows = [f"| ISSUE-R2-{number:03d} | {kind} | {text} |" for number, kind, text in written]
    read = read_response("\n".join(["| Finding | Answer | What was done |", "|---|---|---|", *rows]))

    assert [(answer.code, answer.kind.value, answer.text) for answer in read.answers] == [
        (f"ISSUE-R2-{number:03d}", kind, text) for number, kind, text in written
    ]


@given(
    st.lists(st.tuples(st.integers(1, 999), WORDING, WORDING, WORDING), max_size=6, unique_by=lambda r: r[0])
)
def test_what_is_written_as_blocks_is_read_back(written: list[tuple[int, str, str, str]]) -> None:
    blocks = [
        f"## DISAGREE: ISSUE-R2-{number:03d}\n\n**Reviewer Concern:**\n> {concern}\n\n"
        f"**Engineer Position:**\n{position}\n\n**Rationale:**\n{rationale}\n"
        for number, concern, position, rationale in written
    ]
    read = read_response("\n".join(blocks))

    assert [(block.code, block.concern, block.position, block.rationale) for block in read.disagreements] == [
        (f"ISSUE-R2-{number:03d}", *rest) for number, *rest in written
    ]


# --- Work -------------------------------------------------------------------------------------------------

CODES = "ISSUE-R{}-{}"
LINEAR = {
    "prose": (lambda n: "Some ordinary words of a response.\n" * n, 300),
    "rows": (
        lambda n: "".join(f"| {CODES.format(i // 1000, i % 1000)} | done | x |\n" for i in range(n)),
        150,
    ),
    "one long block": (lambda n: BLOCK + "words\n" * n, 1000),
    "one long cell": (lambda n: "| ISSUE-R1-001 | " + "done a " * n, 1500),
    "many cells": (lambda n: "| ISSUE-R1-001 " + "| a " * n, 1500),
    "blanks before a row": (lambda n: "|" + " " * n + "x", 30_000),
    "blanks in a heading": (lambda n: "##" + " " * n + "DISAGREE", 30_000),
    "parentheses": (lambda n: "ISSUE-R1-001" + " (" * n, 10_000),
    "stars": (lambda n: "*" * n, 30_000),
    "a label without an end": (lambda n: f"{BLOCK}**{'a' * n}", 30_000),
}


@for_each("name", LINEAR)
def test_the_work_grows_with_the_length(name: str) -> None:
    make, size = LINEAR[name]

    assert growth(tried, make, size) < QUADRATIC / 2


QUOTED = "## DISAGREE: ISSUE-R1-001\n**Rationale:** b\n**Reviewer Concern:** a"


@for_each(
    ("make", "size"),
    [
        (lambda n: "ISSUE-R1-001" + " " * n + "x", 1000),  # BULLET: blanks without a colon behind them
        (lambda n: QUOTED + "\n" * n + "c", 3000),  # the marks of the quote are sought across empty lines
    ],
    ids=["blanks after a code", "empty lines in a concern"],
)
def test_the_work_on_blanks_grows_with_their_number(make: Callable[[int], str], size: int) -> None:
    assert growth(tried, make, size) < QUADRATIC / 2


# --- YAML front matter ------------------------------------------------------------------------------------

FRONT = """\
---
answers:
  - {finding: issue-r1-001, kind: addressed, text: "Waits now: see calls.py"}
  - finding: ISSUE-R1-002
    kind: declined
    rationale: The server asks for it.
    concern: Retries come at once.
---
## What I did

- **ISSUE-R1-003**: fixed
"""


def test_front_matter_is_the_structured_form_and_the_markdown_below_it_answers_the_rest() -> None:
    as_json = {
        "answers": [
            {"finding": "ISSUE-R1-001", "kind": "addressed", "text": "Waits now: see calls.py"},
            {
                "finding": "ISSUE-R1-002", "kind": "declined", "rationale": "The server asks for it.",
                "concern": "Retries come at once.",
            },
        ]
    }  # fmt: skip
    read, same = read_response(FRONT, strict=True), read_response(as_json)
    told = [(each.code, each.kind, each.text) for each in read.answers]
    assert told[:2] == [(each.code, each.kind, each.text) for each in same.answers]
    assert [(each.code, each.line) for each in read.answers] == [
        ("ISSUE-R1-001", 3), ("ISSUE-R1-002", 4), ("ISSUE-R1-003", 11)
    ]  # fmt: skip
    [declined] = read.disagreements
    assert (declined.code, declined.concern, declined.problems) == (
        "ISSUE-R1-002", "Retries come at once.", ()
    )  # fmt: skip
    assert read.text == FRONT
    windows = read_response(FRONT.replace("\n", "\r\n"), strict=True)
    assert windows.answers == read.answers
    assert read_response("---\nanswers: []\n---\n").answers == ()
    assert read_response("---\ntitle: Today\n---\n- **ISSUE-R1-003**: fixed\n").answers[0].line == 4


def test_the_structured_form_is_read_in_the_only_fence_and_an_example_is_not() -> None:
    form = (
        '{"answers": [{"finding": "ISSUE-R1-001", "kind": "fixed"},\n'
        ' {"finding": "ISSUE-R1-002", "kind": "declined", "rationale": "The server asks for it."}]}'
    )
    for text in (form, f"Thanks.\n\n```json\n{form}\n```\n\n- ISSUE-R1-003: fixed\n"):
        read = read_response(text, strict=True)
        kinds = [each.kind for each in read.answers if each.code != "ISSUE-R1-003"]
        assert kinds == [AnswerKind.ADDRESSED, AnswerKind.DECLINED], text
        assert [each.rationale for each in read.disagreements] == ["The server asks for it."], text
    assert read.answers[-1].code == "ISSUE-R1-003"
    example = 'It answers:\n\n```json\n{"answers": [{"id": 1}]}\n```\n\n- ISSUE-R1-003: fixed\n'
    assert [each.code for each in read_response(example, strict=True).answers] == ["ISSUE-R1-003"]


# Answers that only count the findings, or stand in tags: to the first three, a letter each.
COUNTED = {
    "#1: Fixed, it is held.\n#2 - Declined: the caller has it.\n#3: deferred to the next release.\n": "adf",
    "Finding 1: fixed.\n**Finding 2** - I disagree, the caller holds it.\n- Issue #3: done\n": "ada",
    "### Finding 1\n\nFixed in a.py.\n\n## #2\n\nDeclined: the caller bounds it.\n": "ad-",
    "| Finding | Answer |\n|---|---|\n| #1 | fixed |\n| #2 | deferred |\n": "af-",
    "This also fixes #1 of the tracker.\nSee #2, and item 3 there.\n\n# 1 Summary\n": "---",
    '<response>\n<answer finding="ISSUE-R1-001" kind="fixed">It is held.</answer>\n'
    '<answer finding="ISSUE-R1-002" kind="declined">'
    "<rationale>The caller bounds it.</rationale></answer>\n</response>\n": "ad-",
    '<answer finding="ISSUE-R1-001" kind="declined">The caller bounds it.</answer>\n': "d--",
    '<answer finding="ISSUE-R1-001">Hm.</answer>\n\n- ISSUE-R1-002: fixed\n': "-a-",
    "Here it is:\n\n<finding><id>ISSUE-R1-001</id><status>Fixed</status></finding>\n"
    "<finding><id>ISSUE-R1-003</id><status>Deferred</status></finding>\n": "a-f",
    '```xml\n<resolution id="ISSUE-R1-002" status="addressed">Moved.</resolution>\n```\n': "-a-",
    "<details>\n<summary>ISSUE-R1-001: fixed</summary>\n\nText\n</details>\n\n- ISSUE-R1-002: fixed\n": "-a-",
}


def test_answers_that_count_the_findings_or_stand_in_tags_are_read() -> None:
    codes = [f"ISSUE-R1-00{number}" for number in (1, 2, 3)]
    letters = {AnswerKind.ADDRESSED: "a", AnswerKind.DECLINED: "d", AnswerKind.DEFERRED: "f"}
    for text, expected in COUNTED.items():
        read = read_response(text, codes)
        kinds = {each.code: letters[each.kind] for each in read.answers}
        assert "".join(kinds.get(code, "-") for code in codes) == expected, text
        assert all("bounds it" in each.position for each in read.disagreements if "<answer" in text), text
    # the number of two findings tells neither of them
    assert not read_response("#1: fixed\nFinding 1: fixed\n", ["ISSUE-R1-001", "ISSUE-R2-001"]).answers


def test_prose_that_declines_what_the_front_matter_answers_is_refused_and_else_counts() -> None:
    torn = f"{FRONT}\n## DISAGREE: ISSUE-R1-001\n\n**Reviewer Concern:**\n> Wait.\n\n**Rationale:** No.\n"
    with pytest.raises(DocumentError) as caught:
        read_response(torn, strict=True)
    [problem] = caught.value.problems
    assert (problem.line, "the data beside it says" in problem.reason) == (13, True)
    read = read_response(torn)
    assert {each.code: each.kind.value for each in read.answers} == {
        "ISSUE-R1-001": "declined", "ISSUE-R1-002": "declined", "ISSUE-R1-003": "addressed"
    }  # fmt: skip
    assert {each.code for each in read.disagreements} == {"ISSUE-R1-001", "ISSUE-R1-002"}


def test_front_matter_of_a_response_is_refused_in_the_words_of_its_other_forms() -> None:
    faults = {
        FRONT.replace("kind: addressed", "kind: perhaps"): (1, "answer 1 needs a finding and a kind"),
        FRONT.replace("    rationale: The server asks for it.\n", ""): (2, "without a rationale"),
        FRONT.replace("finding: ISSUE-R1-002", "finding: ISSUE-R1-001"): (2, "a second time"),
        FRONT.replace("kind: addressed", "kin: addressed"): (3, "its keys are finding, kind"),
        FRONT.replace("answers:", "verdict: x\nanswers:"): (2, "the front matter has no verdict"),
        FRONT.replace("concern: Retries", "concern: &a Retries"): (7, "anchors and aliases"),
        f"{FRONT}\n## DISAGREE: ISSUE-R1-004\n\nNo.\n": (13, "has no **Rationale:**"),
        "---\nanswers: none\n---\n": (0, "must be a list"),
    }
    for text, (line, reason) in faults.items():
        with pytest.raises(DocumentError) as caught:
            read_response(text, strict=True)
        assert reason in str(caught.value), text
        assert caught.value.problems[0].line == line, text

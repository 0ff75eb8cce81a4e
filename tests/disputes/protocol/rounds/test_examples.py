"""Examples in prompts: ours pass our own gate, others are chosen by rule, all are cut to a budget."""

import re

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.responses.response import read_response
from disputes.protocol.rounds.examples import (
    CANONICAL,
    CHARS_PER_TOKEN,
    SKELETONS,
    Earlier,
    ExampleSource,
    pick,
    tokens,
    truncated,
)
from disputes.protocol.rounds.validation import Form, validate_proposal, validate_review
from disputes.protocol.text.documents import Mode, scan
from disputes.protocol.text.quotes import fenced
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

EVERYWHERE = [ExampleSource.SESSION, ExampleSource.CANONICAL, ExampleSource.TEMPLATE]

# --- Ours -------------------------------------------------------------------------------------------------


def test_our_example_of_a_proposal_passes_the_gate_without_a_warning() -> None:
    result = validate_proposal(CANONICAL[Form.PROPOSAL], {"GAP-AUTH-001"})

    assert (result.success, result.warnings) == (True, ())
    assert result.gaps_addressed == ("GAP-AUTH-001",)


def test_our_example_of_a_review_passes_the_gate_without_a_warning() -> None:
    result = validate_review(CANONICAL[Form.REVIEW], {"GAP-AUTH-001"})

    assert (result.success, result.warnings) == (True, ())


def test_our_example_of_a_hand_in_answers_its_three_findings() -> None:
    read = read_response(CANONICAL[Form.HAND_IN])

    assert {answer.code for answer in read.answers} == {f"ISSUE-R2-00{number}" for number in (1, 2, 3)}
    assert [block.is_draft for block in read.disagreements] == [False]


def test_every_form_has_an_example_and_a_skeleton_is_shorter() -> None:
    assert set(CANONICAL) == set(Form)
    assert all(len(SKELETONS[form]) < len(CANONICAL[form]) for form in SKELETONS)


@for_each("form", Form)
def test_our_examples_fit_into_a_first_prompt(form: Form) -> None:
    # EX-4
    assert tokens(CANONICAL[form]) <= 1000


@for_each("form", SKELETONS)
def test_a_skeleton_has_the_headings_of_the_example(form: Form) -> None:
    def headings(text: str) -> list[str]:
        return re.findall(r"^#+ \w+", text, re.MULTILINE)

    assert set(headings(SKELETONS[form])) <= set(headings(CANONICAL[form]))


# --- Choosing ---------------------------------------------------------------------------------------------


def earlier(number: int, text: str = "## Gap Resolution: GAP-QA-001\n", **other: object) -> Earlier:
    return Earlier(Form.PROPOSAL, text, number, round=number, **other)  # type: ignore[arg-type]


def test_the_newest_earlier_document_is_taken() -> None:
    # EX-2
    chosen = pick(Form.PROPOSAL, EVERYWHERE, [earlier(1), earlier(3, "third"), earlier(2)], 2000)

    assert chosen is not None
    assert (chosen.source, chosen.text, chosen.origin) == (
        ExampleSource.SESSION, "third", "round 3 of this project"
    )  # fmt: skip


def test_what_is_of_another_role_is_no_candidate() -> None:
    # EX-2
    review = Earlier(Form.REVIEW, "## Review: GAP-QA-001", 1, round=1)
    chosen = pick(Form.PROPOSAL, EVERYWHERE, [review], 2000)

    assert chosen is not None
    assert chosen.source is ExampleSource.CANONICAL


def test_the_first_source_that_has_one_gives_it() -> None:
    # EX-1
    order = [ExampleSource.CANONICAL, ExampleSource.SESSION]
    chosen = pick(Form.PROPOSAL, order, [earlier(1)], 2000)

    assert chosen is not None
    assert chosen.source is ExampleSource.CANONICAL


@for_each(("sources", "budget"), [([], 2000), ([ExampleSource.SESSION], 2000), (EVERYWHERE, 0)])
def test_without_a_source_or_a_budget_there_is_no_example(sources: list[ExampleSource], budget: int) -> None:
    assert pick(Form.PROPOSAL, sources, [], budget) is None


@for_each("source", [ExampleSource.CANONICAL, ExampleSource.TEMPLATE])
@for_each("form", SKELETONS)
def test_an_example_says_where_it_is_from(form: Form, source: ExampleSource) -> None:
    # EX-6
    chosen = pick(form, [source], [], 2000)

    assert chosen is not None
    assert chosen.origin
    assert "[… cut here" not in chosen.text


# --- Cutting ----------------------------------------------------------------------------------------------

LONG = """\
## Gap Resolution: GAP-AUTH-001

**Confidence:** HIGH

### Background

{background}

### Proposed Solution

{solution}

### Examples

{examples}

### Trade-offs

{trade_offs}

### New Gaps Introduced

{new_gaps}
"""
NAMES = ["background", "solution", "examples", "trade_offs", "new_gaps"]
PARTS = {name: letter * 400 for name, letter in zip(NAMES, "bsetn", strict=True)}
DOCUMENT = LONG.format(**PARTS)


@for_each(("text", "count"), [("", 0), ("a", 1), ("a" * 4, 1), ("a" * 5, 2), ("a" * 8000, 2000)])
def test_four_characters_are_a_token(text: str, count: int) -> None:
    # EX-4
    assert tokens(text) == count


def test_a_text_within_the_budget_stays_as_it_is() -> None:
    assert truncated(DOCUMENT, tokens(DOCUMENT)) == DOCUMENT


@for_each(
    ("budget", "kept"),
    [
        (50, ""),
        (160, "s"),
        (280, "st"),
        (390, "ste"),
        (500, "sten"),
    ],
)
def test_sections_are_kept_in_the_order_of_their_worth(budget: int, kept: str) -> None:
    # EX-5: title, solution, trade-offs, examples, new gaps, then the rest
    cut = truncated(DOCUMENT, budget)

    assert cut.startswith("## Gap Resolution: GAP-AUTH-001\n\n**Confidence:** HIGH")
    assert {letter for letter in "bsetn" if letter * 400 in cut} == set(kept)


def test_what_is_kept_stays_in_the_order_of_the_document() -> None:
    cut = truncated(DOCUMENT, 400)

    assert cut.index("### Proposed") < cut.index("### Examples") < cut.index("### Trade-offs")


def test_a_cut_is_told() -> None:
    # EX-5
    kept, _, note = truncated(DOCUMENT, 100).rpartition("\n")
    assert note == f"[… cut here: {len(kept)} of {len(DOCUMENT)} characters are left]"


def test_a_heading_in_a_fence_begins_no_section() -> None:
    text = "## Gap Resolution: GAP-QA-001\n\n```\n### Trade-offs\n```\n\n### Notes\n\n" + "x" * 400

    assert "```\n### Trade-offs\n```" in truncated(text, 60)


@given(st.text(max_size=900), st.integers(1, 300))
def test_nothing_is_longer_than_its_budget(text: str, budget: int) -> None:
    assert len(truncated(text, budget)) <= max(budget * CHARS_PER_TOKEN, 0)


@given(st.lists(st.sampled_from(DOCUMENT.splitlines()), max_size=30), st.integers(1, 400))
def test_every_line_of_a_cut_is_one_of_the_document_or_the_note(lines: list[str], budget: int) -> None:
    text = "\n".join(lines)
    kept = truncated(text, budget).split("\n")
    begun = [line for line in kept if line not in text and not line.startswith("[…")]

    assert begun == []


def test_cutting_takes_time_in_proportion_to_the_text() -> None:
    assert (
        growth(lambda text: truncated(text, 1000), lambda size: "# a\nb\n" * (size // 6), 30_000)
        < QUADRATIC / 2
    )


@given(st.text(alphabet="`~a\n ", max_size=80))
def test_nothing_closes_the_fence_around_an_example(text: str) -> None:
    *inside, last = scan(fenced(text))

    assert all(line.mode is Mode.FENCED for line in [*inside, last])
    assert all(line.mode is Mode.STATED for line in scan(fenced(text) + "\nx")[-1:])

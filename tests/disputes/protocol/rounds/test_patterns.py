"""How a document failed, what the next prompt says about it, and what several have in common."""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.rounds.examples import CANONICAL
from disputes.protocol.rounds.patterns import (
    RULES,
    VAGUE,
    Expected,
    Failed,
    Pattern,
    RootCause,
    patterns_in,
    root_cause,
    vague_words,
)
from disputes.protocol.rounds.validation import Form
from disputes.protocol.text.documents import scan
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

GOOD = CANONICAL[Form.PROPOSAL]
DUE = Expected(assigned=("GAP-AUTH-001",), known=("GAP-AUTH-001", "GAP-AUTH-002"))
HEAD = "## Gap Resolution: GAP-AUTH-001\n\n**Confidence:** HIGH\n\n### Trade-offs\n\nNone.\n\n"
TWO = "```\none\n```\n\ntext\n\n```\ntwo\n```\n\n"


def shown(text: str, expected: Expected = DUE) -> list[Pattern]:
    return [each.pattern for each in patterns_in(text, expected)]


def test_our_own_example_shows_no_pattern() -> None:
    assert shown(GOOD) == []


# --- Vague words ------------------------------------------------------------------------------------------


@for_each("phrase", VAGUE)
def test_a_vague_word_is_found_in_any_case(phrase: str) -> None:
    assert vague_words(scan(f"It is {phrase.upper()}, so.")) == [phrase]


@for_each(
    "text",
    [
        "maybe",
        "mayor",
        "certainly",
        "unreasonable",
        "mighty",
        "inappropriate",
        "```\nmay could\n```",
        "> may",
    ],
)
def test_part_of_a_word_or_an_example_is_not_vague(text: str) -> None:
    assert vague_words(scan(text)) == []


@for_each(("count", "abstract"), [(5, False), (6, True)])
def test_more_than_five_vague_words_in_a_section_are_abstract(count: int, abstract: bool) -> None:
    text = HEAD + TWO + "The limit may change. " * count

    assert (Pattern.ABSTRACT_OUTPUT in shown(text)) is abstract


def test_vague_words_are_counted_for_each_gap() -> None:
    half = "It may be so. " * 4
    text = f"{HEAD}{TWO}{half}\n\n## Gap Resolution: GAP-AUTH-002\n\n{TWO}{half}\n"

    assert Pattern.ABSTRACT_OUTPUT not in shown(text)


# --- The other patterns -----------------------------------------------------------------------------------


@for_each("heading", ["## Gap Resolution: GAP-AUTH-001", "**Confidence:** HIGH", "### Trade-offs"])
def test_a_required_heading_that_is_absent(heading: str) -> None:
    (first, *_) = patterns_in((HEAD + TWO).replace(heading, "Text."), DUE)

    assert first.pattern is Pattern.MISSING_SECTIONS
    assert heading.split(":")[0] in first.evidence


@for_each(("examples", "narrow"), [("", True), ("```\none\n```\n", True), (TWO, False)])
def test_fewer_than_two_examples_are_narrow(examples: str, narrow: bool) -> None:
    assert (Pattern.NARROW_EXAMPLES in shown(HEAD + examples)) is narrow


def test_unknown_gaps_are_inconsistent_and_the_list_is_attached() -> None:
    (seen,) = patterns_in(HEAD + TWO + "See GAP-QA-404.\n", DUE)

    assert seen.pattern is Pattern.INCONSISTENT_REFS
    assert "GAP-QA-404" in seen.evidence
    assert "GAP-AUTH-001, GAP-AUTH-002" in seen.adjustment


def test_a_gap_that_the_document_introduces_is_not_unknown() -> None:
    # VAL-1
    assert shown(HEAD + TWO + "### New Gaps\n\n- GAP-QA-404\n") == []


def test_another_gap_than_the_assigned_one_is_a_drift() -> None:
    (seen,) = patterns_in((HEAD + TWO).replace("GAP-AUTH-001", "GAP-AUTH-002"), DUE)

    assert seen.pattern is Pattern.SCOPE_DRIFT
    assert "`## Gap Resolution: GAP-AUTH-001`" in seen.adjustment


def test_without_an_assignment_nothing_drifts() -> None:
    assert shown(HEAD + TWO, Expected(known=DUE.known)) == []


def test_every_pattern_has_a_rule() -> None:
    assert list(RULES) == list(Pattern)


@given(
    st.lists(st.sampled_from([HEAD, TWO, "may ", "GAP-QA-404", "### New Gaps", "```"]) | st.text(max_size=30))
)
def test_any_document_is_looked_at(pieces: list[str]) -> None:
    seen = patterns_in("\n".join(pieces), DUE)

    assert all(each.evidence and each.adjustment for each in seen)
    assert len({each.pattern for each in seen}) == len(seen)


@for_each("piece", ["may ", "it depends ", "as  ", "if applicable"])
def test_time_grows_with_the_size_of_the_document(piece: str) -> None:
    def look(text: str) -> object:
        return patterns_in(HEAD + text, DUE)

    assert growth(look, lambda size: piece * (size // len(piece)), 20_000) < QUADRATIC / 2


# --- Root causes ------------------------------------------------------------------------------------------

A, N = frozenset({Pattern.ABSTRACT_OUTPUT}), frozenset({Pattern.NARROW_EXAMPLES})


@for_each(
    ("attempts", "cause"),
    [
        ([], None),
        ([Failed(A, 900)], None),  # one attempt shows nothing
        ([Failed(A, 900), Failed(A, 900)], RootCause.AMBIGUOUS),
        ([Failed(A, 900), Failed(N, 900)], RootCause.SCOPE_TOO_LARGE),
        ([Failed(A, 900, unknown=1), Failed(A, 900, unknown=2)], RootCause.CONTEXT_MISSING),
        ([Failed(A, 900, unknown=1), Failed(N, 900)], RootCause.SCOPE_TOO_LARGE),
        ([Failed(A, 199), Failed(A, 10)], RootCause.DOMAIN_GAP),
        ([Failed(A, 199), Failed(A, 200)], RootCause.AMBIGUOUS),
        (
            [Failed(A, 900), Failed(A, 900), Failed(N, 900)],
            None,
        ),  # neither always the same nor always another
    ],
)
def test_several_failures_have_this_in_common(attempts: list[Failed], cause: RootCause | None) -> None:
    # RB-6
    found = root_cause(attempts)

    assert (found[0] if found else None) is cause
    assert found is None or found[1]

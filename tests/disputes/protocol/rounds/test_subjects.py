"""What a document is about: the gaps it proposes, was assigned, or declares resolved (SIL-6)."""

from disputes.protocol.rounds.subjects import Subject, gap_texts, stated_text, subject_of
from tests.cases import for_each

ABOUT = [
    ("## Gap Resolution: GAP-FLOW-001\n\ntext", {"GAP-FLOW-001"}),
    ("# Engineer Round 2: GAP-FLOW-001\n\n## Limits", {"GAP-FLOW-001"}),
    ("## Revision: GAP-FLOW-001 (Revised)", {"GAP-FLOW-001"}),
    ("## Gap Resolution: GAP-FLOW-001\n\n## Gap Resolution: GAP-FLOW-002", {"GAP-FLOW-001", "GAP-FLOW-002"}),
    ("# Round 3\n\n**Focus:** Limits (GAP-FLOW-001)", {"GAP-FLOW-001"}),
    ("# Round 3\n\n**Gaps Addressed:** GAP-FLOW-001, GAP-FLOW-002", {"GAP-FLOW-001", "GAP-FLOW-002"}),
    ("## Summary\n\n| Gap | Status |\n|---|---|\n| GAP-FLOW-001 (Revised) | Proposed |", {"GAP-FLOW-001"}),
    # not what it only mentions
    ("## Gap Resolution: GAP-FLOW-001\n\nIt uses GAP-FLOW-002.", {"GAP-FLOW-001"}),
    ("## Gap Resolution: GAP-FLOW-001\n\n#### With GAP-FLOW-002", {"GAP-FLOW-001"}),
    ("## Gap Resolution: GAP-FLOW-001\n\n| Uses |\n|---|\n| GAP-FLOW-002 | its limits |", {"GAP-FLOW-001"}),
    ("## Gap Resolution: GAP-FLOW-001\n\n**Context:** GAP-FLOW-002 was RESOLVED.", {"GAP-FLOW-001"}),
    ("## Gap Resolution: GAP-FLOW-001\n\n### New Gaps Introduced\n\n- **GAP-FLOW-003**: x", {"GAP-FLOW-001"}),
    ("```\n## Gap Resolution: GAP-FLOW-001\n```", set()),  # ID-3
    ("Text.", set()),
]


@for_each(("document", "gaps"), ABOUT, ids=lambda value: value[:60] if isinstance(value, str) else None)
def test_a_document_is_about_the_gaps_that_it_proposes_or_was_given(document: str, gaps: set[str]) -> None:
    assert subject_of(document).gaps == gaps


@for_each(
    ("below", "resolved"),
    [
        ("**Status:** RESOLVED", True),
        ("Status: Resolved", True),
        ("| Gap | State |\n|---|---|\n| GAP-FLOW-001 | Resolved |", True),
        ("| Gap | State |\n|---|---|\n| GAP-FLOW-001 | Proposed |", False),
        ("**Status:** Proposed", False),
        ("The conflict is resolved by a table.", False),
        ("> **Status:** RESOLVED", False),
    ],
)
def test_a_gap_is_declared_resolved_by_its_status(below: str, resolved: bool) -> None:
    subject = subject_of(f"## Gap Resolution: GAP-FLOW-001\n\n{below}")

    assert ("GAP-FLOW-001" in subject.resolved) is resolved


def test_another_gap_cannot_be_declared_resolved() -> None:
    text = "## Gap Resolution: GAP-FLOW-001\n\n| GAP-FLOW-002 | Resolved |"

    assert subject_of(text).resolved == frozenset()


ONE = frozenset({"GAP-FLOW-001"})


@for_each(
    ("gaps", "gap", "candidates", "answers", "expected"),
    [
        (ONE, "GAP-FLOW-001", (), False, True),
        (ONE, "GAP-FLOW-002", (), True, False),  # it answers another finding of that review
        # an unknown gap: it must work on every gap that it may be (FND-5)
        (ONE, "", ("GAP-FLOW-001",), False, True),
        (ONE, "", ("GAP-FLOW-001", "GAP-FLOW-002"), True, False),
        # one side names no gap
        (ONE, "", (), False, False),
        (ONE, "", (), True, True),
        (frozenset(), "GAP-FLOW-001", (), False, False),
        (frozenset(), "GAP-FLOW-001", (), True, True),
        (frozenset(), "", ("GAP-FLOW-001",), False, False),
        (frozenset(), "", (), False, True),  # neither does
    ],
)
def test_a_document_should_treat_the_findings_on_the_gaps_that_it_works_on(
    gaps: frozenset[str], gap: str, candidates: tuple[str, ...], answers: bool, expected: bool
) -> None:
    assert Subject(gaps).expects(gap, candidates, answers=answers) is expected


def test_what_is_said_of_each_gap_goes_to_the_next_section() -> None:
    text = "## Gap Resolution: GAP-FLOW-001\n\na\n\n## Gap Resolution: GAP-FLOW-002\n\nb"

    assert gap_texts(text) == {"GAP-FLOW-001": "a", "GAP-FLOW-002": "b"}


def test_code_and_quotes_are_not_stated() -> None:
    assert stated_text("a\n```\nb\n```\n> c\nd") == "a\nd"

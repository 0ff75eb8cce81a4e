"""The findings of a review as silence watches them: with the gap that each is about (FND-5)."""

from disputes.protocol.reviews.review import read_review
from disputes.protocol.rounds.check import watched_findings
from tests.cases import for_each

A, B = "GAP-FLOW-001", "GAP-FLOW-002"


def gaps(text: str, *proposed: str) -> list[str]:
    return [watched.gap for watched in watched_findings(read_review(text), proposed)]


@for_each(
    ("text", "proposed", "gap"),
    [
        (f"## Review: {A}\n\n- **ISSUE-R1-001**: x\n  - Gap: {B}", (A, B), B),  # the finding says so
        (f"## Review: {A}\n\n### High Priority\n\n- **ISSUE-R1-001**: x", (A, B), A),  # the heading does
        ("## Review\n\n- **ISSUE-R1-001**: x", (A,), A),  # the only one that was proposed
        ("## Review\n\n- **ISSUE-R1-001**: x", (A, B), ""),  # nobody knows
        ("## Review\n\n- **ISSUE-R1-001**: x", (), ""),
        (f"# Review\n\n**Focus:** limits ({A})\n\n- **ISSUE-R1-001**: x", (), A),  # what the review is about
    ],
    ids=["field", "heading", "proposed", "several", "none", "focus"],
)
def test_the_gap_of_a_finding_is_found_in_the_order_of_the_rule(
    text: str, proposed: tuple[str, ...], gap: str
) -> None:
    assert gaps(text, *proposed) == [gap]


def test_a_finding_brings_what_the_heuristics_need() -> None:
    (watched,) = watched_findings(
        read_review(
            "## Review\n\n### High Priority\n\n- **ISSUE-R1-001**: Limits are vague\n"
            "  - Location: Section 2\n  - Impact: uploads fail\n"
        )
    )

    assert (watched.code, watched.ordinal, watched.severity) == ("ISSUE-R1-001", 1, "high")
    assert (watched.title, watched.location, watched.impact) == (
        "Limits are vague", "Section 2", "uploads fail",
    )  # fmt: skip
    assert watched.is_due
    assert not watched.is_settled


def test_findings_of_a_structured_review_are_watched_too() -> None:
    review = read_review({"findings": [{"title": "Limits", "severity": "high", "text": f"About {A}."}]})

    assert [(each.title, each.gap) for each in watched_findings(review)] == [("Limits", A)]

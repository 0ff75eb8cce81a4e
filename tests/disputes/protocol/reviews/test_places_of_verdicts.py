"""Where a review states its verdict and what that covers; when its text overrides the word."""

from disputes.protocol.reviews.review import Verdict, read_review
from tests.cases import for_each

A, C, N = Verdict.APPROVED, Verdict.APPROVED_WITH_CONDITIONS, Verdict.NEEDS_REVISION
PLACES = [
    "## Verdict: {}",
    "## Verdict\n\n**{}**",
    "### Verdict\n\n{}\n",
    "**Verdict:** {}",
    "**VERDICT: {}**",
    "Verdict: {}",
    "- **Verdict:** {}",
    "## Overall Assessment: {}",
    "**Status:** {}",
    "**Status: {}**",
    "**Review Status**: {}",
    "- **Recommendation:** {}",
    "**Recommendation:** {}",
    "## Recommendation\n\n**{}**",
    "### Recommendation: {}",
    "## Final Verdict: {}",
    "**Decision:** {}",
    "## 5. Verdict: {}",
    "## Verdict: ✅ {}",
    "| Gap | Verdict |\n|---|---|\n| GAP-PAY-001 | {} |",
    "| Gap | Verdict |\n|---|---|\n| GAP-PAY-001 | **{}** ✓ |",
    "| Field | Value |\n|---|---|\n| **Verdict** | {} |",
]
WORDS = [
    ("APPROVED", A), ("ACCEPT", A), ("APPROVED WITH NOTES", C), ("ACCEPT_WITH_MINOR", C),
    ("CONDITIONAL APPROVAL", C), ("NEEDS_REVISION", N), ("NEEDS WORK", N), ("REJECTED", N),
    ("CHANGES REQUESTED", N),
]  # fmt: skip


@for_each("place", PLACES)
@for_each(("words", "verdict"), WORDS)
def test_a_verdict_is_read_in_every_place(place: str, words: str, verdict: Verdict) -> None:
    assert read_review(place.format(words)).verdict is verdict


def test_a_heading_may_name_the_gap_before_the_word() -> None:
    (stated,) = read_review("### Verdict: GAP-PAY-001 - APPROVED").verdicts

    assert (stated.scope, stated.raw, stated.verdict, stated.line) == ("GAP-PAY-001", "APPROVED", A, 1)


def test_each_gap_has_its_own_verdict_and_the_worst_is_the_review_s() -> None:
    read = read_review(
        "| Gap | Verdict |\n|---|---|\n| GAP-AAA-001 | APPROVED |\n| GAP-BBB-002 | APPROVED* |\n"
        "| GAP-CCC-003 | NEEDS WORK |\n"
    )

    assert [(each.scope, each.verdict) for each in read.verdicts] == [
        ("GAP-AAA-001", A), ("GAP-BBB-002", C), ("GAP-CCC-003", N),
    ]  # fmt: skip
    assert (read.verdict, read.raw_verdict) == (N, "NEEDS WORK")


@for_each(
    ("text", "scope"),
    [
        ("# Review: GAP-PAY-001\n\n## Verdict: APPROVED", "GAP-PAY-001"),
        ("# Round 4\n\n## Review: GAP-PAY-001 (Refunds)\n\n### Verdict\n\nAPPROVED", "GAP-PAY-001"),
        ("# Round 4\n\n**Focus:** GAP-PAY-001\n\n## Verdict: APPROVED", "GAP-PAY-001"),
        ("# Round 4\n\n## Verdict: APPROVED", "ROUND"),
        ("# Review: GAP-PAY-001 and GAP-TAX-002\n\n## Verdict: APPROVED", "ROUND"),
    ],
)
def test_a_verdict_covers_the_gap_that_the_review_is_about(text: str, scope: str) -> None:
    assert [each.scope for each in read_review(text).verdicts] == [scope]


@for_each(
    "text",
    [
        "**Recommendation:** Accept the flag as optional.",  # advice
        "## Recommendation: Reject empty strings early",
        "## Recommendation for Round 4\n\nAccept the rest.",
        "### ISSUE-R1-001: a\n\n- **Recommendation:** Accept.",  # of a finding
        "**Status:** Accepted values are 0 and 1.",
        "| Version | Verdict |\n|---|---|\n| v1 | APPROVED |",  # of an earlier version
        "## Revision History\n\n| Date | Verdict |\n|---|---|\n| May | APPROVED |",
        "## Previous Issues\n\n### ISSUE-R1-001: a\n\n**Verdict:** RESOLVED, accepted.",
        "```\n## Verdict: APPROVED\n```",
        "> **Verdict:** APPROVED",
        "| a | Verdict |\n| b | APPROVED |",  # no table
    ],
)
def test_what_only_looks_like_a_verdict_is_none(text: str) -> None:
    assert read_review(text).verdict is None


def test_the_marker_of_a_review_without_findings_is_its_own_verdict() -> None:
    assert read_review("## Review: GAP-PAY-001\n\nNO_ISSUES_FOUND\n").verdict is Verdict.NO_ISSUES_FOUND


OVERRIDES = [
    ("### High Priority\n\n- **ISSUE-R1-001**: a\n\n{}", C),
    ("### Critical Issues\n\n1. **No owner**\n\n{}", C),
    ("{}\n\n**Must address before merging:**\n\n- the lock\n", C),
    ("{}\n\n## Required Changes\n\n1. Free the lock\n", C),
    ("- **ISSUE-R1-001**: NOT FIXED\n\n{}", C),
    ("### Low Priority\n\n- **ISSUE-R1-001**: a\n\n{}", A),
    ("### Medium Priority\n\n- **ISSUE-R1-001**: a\n\n{}", A),
    ("### High Priority\n\nNone.\n\n{}", A),
    ("{}\n\n## Required Changes\n\nNone.\n", A),
    ("### High Priority\n\n- ~~**ISSUE-R1-001**: a~~ Withdrawn, I misread it.\n\n{}", A),
]


@for_each(("text", "verdict"), OVERRIDES)
@for_each("word", ["## Verdict: APPROVED", "**Recommendation:** ACCEPT"])
def test_the_text_overrides_a_plain_approval(text: str, verdict: Verdict, word: str) -> None:
    assert read_review(text.format(word)).verdict is verdict


@for_each(("text", "verdict"), OVERRIDES)
def test_the_text_never_betters_a_refusal(text: str, verdict: Verdict) -> None:
    assert read_review(text.format("## Verdict: NEEDS_REVISION")).verdict is N


def test_a_grave_finding_binds_only_the_verdict_on_its_gap() -> None:
    read = read_review(
        "## Review: GAP-AAA-001\n\n### High Priority\n\n- **ISSUE-R1-001**: a\n\n### Verdict: APPROVED\n\n"
        "## Review: GAP-BBB-002\n\n### Verdict: APPROVED\n"
    )

    assert [(each.scope, each.verdict) for each in read.verdicts] == [("GAP-AAA-001", C), ("GAP-BBB-002", A)]


def test_a_heading_below_the_one_that_says_verdict_states_it_only_alone_and_in_capitals() -> None:
    for heading, verdict in {
        "NEEDS_REVISION": Verdict.NEEDS_REVISION, "APPROVED": Verdict.APPROVED, "APPROVED PARTS": None,
        "APPROVED ITEMS AND OTHERS": None, "Approved": None,
    }.items():  # fmt: skip
        for title in ("# 3 Verdict", "## 3. Verdict", "# Verdict"):
            assert read_review(f"# Review\n\n{title}\n\n#### {heading}\n").verdict is verdict, heading

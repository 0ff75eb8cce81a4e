"""Reading an engineer's document of a spec round: sections by gap, what it announces, what it shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.rounds.proposals import read_proposal
from disputes.protocol.text.documents import MAX_BYTES, DocumentError
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

DOCUMENT = """\
# Engineer Round 003

## Gap Resolution: GAP-AUTH-001

**Confidence:** HIGH

### Proposed Solution

A session ends after 30 minutes; see GAP-AUTH-002.

#### Example 1: a session that ends

```markdown
## Gap Resolution: GAP-FAKE-001
### New Gaps Introduced
- GAP-FAKE-002
```

#### Example 2: a session that goes on

It is prolonged.

### Trade-offs

Longer sessions are handier and less safe.

### New Gaps Introduced

- **GAP-AUTH-003**: What happens to drafts?

## Gap Resolution: GAP-AUTH-002 (Revised)

Passwords are hashed.

## References

- GAP-QA-001
"""


def sections(text: str) -> dict[str, str]:
    return {section.gap: section.text.strip() for section in read_proposal(text).sections}


def test_a_section_goes_to_the_next_heading_of_its_level() -> None:
    first, second = read_proposal(DOCUMENT).sections

    assert (first.gap, first.line) == ("GAP-AUTH-001", 3)
    assert first.text.strip().startswith("**Confidence:**")
    assert first.text.strip().endswith("What happens to drafts?")
    assert (second.gap, second.text.strip()) == ("GAP-AUTH-002", "Passwords are hashed.")


def test_what_stands_in_a_fence_is_an_example() -> None:
    # ID-3
    proposal = read_proposal(DOCUMENT)

    assert "GAP-FAKE-001" not in proposal.mentioned
    assert proposal.announced == {"GAP-AUTH-003"}


def test_every_stated_gap_is_mentioned_with_its_first_line() -> None:
    assert read_proposal(DOCUMENT).mentioned == {
        "GAP-AUTH-001": 3, "GAP-AUTH-002": 9, "GAP-AUTH-003": 29, "GAP-QA-001": 37
    }  # fmt: skip


HEADINGS = [
    "## Gap Resolution: GAP-AUTH-001",
    "## Gap Resolution: GAP-AUTH-001 (Revised)",
    "## Revision: GAP-AUTH-001",
    "## Resolution of GAP-AUTH-001",
    "### Gap Resolution: GAP-AUTH-001",
    "## Proposal: GAP-AUTH-001",
    "## 2. Resolution: GAP-AUTH-001",
    "## **Gap Resolution: GAP-AUTH-001**",
    "## GAP-AUTH-001: sessions that end",
    "## [GAP-AUTH-001] Sessions",
    "# Engineer Resolution: GAP-AUTH-001",
]


@for_each("heading", HEADINGS)
def test_a_resolution_is_written_in_many_ways(heading: str) -> None:
    # VAL-3, ANS-1
    proposal = read_proposal(f"{heading}\n\nA session ends.\n")

    assert proposal.has_resolution
    assert proposal.addressed == ("GAP-AUTH-001",)


@for_each(
    "heading",
    [
        "## New Gaps Introduced: GAP-AUTH-001",
        "## Changes to GAP-AUTH-001",
        "## Response to GAP-AUTH-001",
        "## Addressing GAP-AUTH-001",
        "## Dependencies: GAP-AUTH-001",
        "## Severity of GAP-AUTH-001",
        "##### Gap Resolution: GAP-AUTH-001",
        "> ## Gap Resolution: GAP-AUTH-001",
        "Gap Resolution: GAP-AUTH-001",
    ],
)
def test_another_heading_that_names_a_gap_settles_none(heading: str) -> None:
    proposal = read_proposal(f"{heading}\n\nA session ends.\n")

    assert not proposal.has_resolution
    assert proposal.addressed == ()


def test_a_heading_without_a_gap_is_a_resolution_of_none() -> None:
    proposal = read_proposal("## Proposed Solution\n\nGAP-AUTH-001 is settled so.\n")

    assert (proposal.has_resolution, proposal.addressed) == (True, ())


def test_below_a_title_that_resolves_a_gap_its_chapters_belong_to_it() -> None:
    text = "# Engineer Resolution: GAP-AUTH-001\n\n## 1. Problem\n\nOne.\n\n## 2. Rules\n\nTwo.\n"

    assert sections(text)["GAP-AUTH-001"].endswith("Two.")


def test_beside_headings_that_say_resolution_a_bare_id_in_a_heading_is_none() -> None:
    text = "# Round 3: GAP-AUTH-001\n\n## Gap Resolution: GAP-AUTH-002\n\nText.\n\n## GAP-AUTH-003\n\nMore.\n"

    assert list(sections(text)) == ["GAP-AUTH-002"]


def test_one_heading_may_settle_two_gaps() -> None:
    assert sections("## Gap Resolution: GAP-AUTH-001, GAP-AUTH-002\n\nBoth.\n") == {
        "GAP-AUTH-001": "Both.", "GAP-AUTH-002": "Both."
    }  # fmt: skip


def test_a_heading_that_names_thousands_of_gaps_settles_the_first_few() -> None:
    many = " ".join(f"GAP-QA-{number:03}" for number in range(1, 1000))

    assert len(read_proposal(f"## Gap Resolution: {many}\n\nAll.\n").sections) == 20


def test_the_first_of_two_sections_of_a_gap_counts() -> None:
    text = "## Gap Resolution: GAP-AUTH-001\n\nFirst.\n\n## Revision: GAP-AUTH-001\n\nSecond.\n"

    assert sections(text) == {"GAP-AUTH-001": "First."}


@for_each(
    ("line", "confidence"),
    [
        ("**Confidence:** HIGH", "HIGH"),
        ("**Confidence**: MEDIUM", "MEDIUM"),
        ("Confidence: LOW", "LOW"),
        ("- **Confidence:** HIGH", "HIGH"),
        ("| Confidence | HIGH |", "HIGH"),
        ("### Confidence: HIGH", "HIGH"),
        ("### Confidence", ""),
        ("**Confidence:**", ""),
        ("```\n**Confidence:** HIGH\n```", None),
        ("> **Confidence:** HIGH", None),
        ("We have confidence in this.", None),
        ("", None),
    ],
)
def test_the_confidence_line_is_found(line: str, confidence: str | None) -> None:
    # VAL-3
    assert read_proposal(f"## Gap Resolution: GAP-AUTH-001\n\n{line}\n").confidence == confidence


@for_each(
    "line",
    [
        "### Trade-offs",
        "## Tradeoffs",
        "#### 3.2 Trade Offs",
        "**Trade-offs:** none",
        "- **Trade-off**: slow",
    ],
)
def test_trade_offs_are_found_in_a_heading_or_a_label(line: str) -> None:
    assert read_proposal(f"{line}\n").has_trade_offs


@for_each("line", ["We weighed trade-offs.", "```\n### Trade-offs\n```", "> ### Trade-offs"])
def test_a_word_in_the_text_is_no_section_of_trade_offs(line: str) -> None:
    assert not read_proposal(f"{line}\n").has_trade_offs


@for_each(
    ("text", "announced", "present"),
    [
        ("### New Gaps Introduced\n\n- GAP-AUTH-003\n\n### Next\n\nGAP-AUTH-004\n", {"GAP-AUTH-003"}, True),
        ("### New Gaps\n\n#### GAP-AUTH-003: drafts\n\nText.\n", {"GAP-AUTH-003"}, True),
        ("### New Gaps Introduced\n\n| Gap | Why |\n|---|---|\n| GAP-QA-001 | x |\n", {"GAP-QA-001"}, True),
        ("**New Gaps Introduced:** GAP-QA-001\n", {"GAP-QA-001"}, True),
        ("**New Gaps:**\n- **GAP-QA-001**: x\n\n**Notes:** GAP-QA-002\n", {"GAP-QA-001"}, True),
        ("**New Gaps:** GAP-QA-001\n\n## Next\n\nGAP-QA-002\n", {"GAP-QA-001"}, True),
        ("### New Gaps Introduced\n\nNone.\n", set(), True),
        ("### Gaps\n\nGAP-QA-001\n", set(), False),
        ("```\n### New Gaps\n```\n\nGAP-QA-001\n", set(), False),
    ],
)
def test_gaps_that_the_document_introduces_are_announced(
    text: str, announced: set[str], present: bool
) -> None:
    # VAL-1
    proposal = read_proposal(text)

    assert (proposal.announced, proposal.has_new_gaps) == (announced, present)


@for_each(
    ("below", "examples"),
    [
        ("No example.", 0),
        ("### Examples\n\nNone yet.", 0),
        ("### Examples\n\n**Example 1:** one\n\n**Example 2:** two", 2),
        ("### Examples\n\n```\none\n```\n\n```\ntwo\n```", 2),
        ("#### Example: success\n\n```\none\n```", 1),
        ("**Scenario A:** one", 1),
        ("**Examples:** see below", 0),
    ],
)
def test_examples_are_labelled_or_shown(below: str, examples: int) -> None:
    (section,) = read_proposal(f"## Gap Resolution: GAP-AUTH-001\n\n{below}\n").sections

    assert section.examples == examples


def test_a_document_that_is_too_large_is_refused() -> None:
    with pytest.raises(DocumentError, match="bytes"):
        read_proposal("x" * (MAX_BYTES + 1))


PIECES = st.sampled_from(
    [
        "## Gap Resolution: GAP-AUTH-001", "# Resolution GAP-AUTH-002", "## Other", "### New Gaps",
        "**Confidence:** HIGH", "```", "> quoted", "- GAP-QA-001", "### Trade-offs", "", "text", "| a | b |",
    ]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=40), max_size=40))
def test_any_document_is_read(pieces: list[str]) -> None:
    proposal = read_proposal("\n".join(pieces))

    assert len(set(proposal.addressed)) == len(proposal.sections)
    assert set(proposal.addressed) <= set(proposal.mentioned)
    assert proposal.announced <= set(proposal.mentioned)


@for_each(
    "piece", ["## Gap Resolution: GAP-AUTH-001\n", "# GAP-AUTH-001 ", "**a ", "- ", "|  ", " ", "Confidence "]
)
def test_time_grows_with_the_size_of_the_document(piece: str) -> None:
    assert growth(read_proposal, lambda size: piece * (size // len(piece)), 20_000) < QUADRATIC / 2

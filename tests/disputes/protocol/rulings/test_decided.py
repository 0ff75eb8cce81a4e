"""Reading decisions.md: what we wrote, and the other shapes in which people record decisions."""

from typing import Any

import pytest

from disputes.protocol.rulings.decision_files import Decided, read_decisions
from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.records import DecisionEntry, decisions_record
from disputes.protocol.text.documents import MAX_BYTES, DocumentError
from tests.cases import for_each
from tests.own_time import linear_time

HOSTILE = (
    "Fine.\n# Active Disputes\n## Dispute: D-1 (RESOLVED)\n**Resolution:** CODER\n```\n~~~\n---\n"
    "</blockquote><h1>Ruled</h1>\n<!-- the rest is hidden\n> AWAITING\n| a | b |\n\u202ereversed\x1b[2J"
)


def decision(**kwargs: Any) -> DecisionEntry:
    values: dict[str, Any] = {
        "round": 6, "code": "ISSUE-R5-003", "title": "Retry timing", "conflict_type": "Explicit DISAGREE",
        "task_ref": "web-1", "about": "web-1", "about_in_full": "web-1 Call politely", "severity": "high",
        "reviewer": "Back off for all retries.", "coder": "Retry at once for files.",
        "option": "compromise", "text": "Files at once, servers with a pause.",
        "rationale": "Both are right.", "constraints": "", "for_coder": "Change src/calls.py:12.",
        "action": "revise", "by": "Lea Lindt", "at": "2026-01-12T15:30:00Z",
    }  # fmt: skip
    return DecisionEntry(**(values | kwargs))


def read_one(text: str) -> Decided:
    decisions = read_decisions(text).decisions
    assert len(decisions) == 1
    return decisions[0]


@for_each(
    "given",
    [
        {},
        {"title": "Use C#", "option": "other"},
        {"title": "Closed with marks ##", "text": "One.\nTwo.\n\nThree."},
        {"text": HOSTILE.replace("\u202e", "").replace("\x1b", ""), "rationale": HOSTILE[:39]},
        {"text": "Use List<String>, not &lt;", "rationale": "**Timestamp:** never"},
        {"rationale": "- **Decision:** something else\n- **Chosen Option:** B", "constraints": "Two\nlines"},
        {"code": "Task web-1", "title": "Which way?", "option": "uphold_coder"},
        {"option": "retry", "text": "", "rationale": "The key is there now."},
        {"title": "a: b: c", "by": "Tom <tom@example.org>"},
    ],
    ids=lambda given: ",".join(given) or "plain",
)
def test_our_own_decisions_are_read_back(given: dict[str, str]) -> None:
    """A decision that we wrote comes back with its option, words, reason, author and time."""
    entry = decision(**given)
    read = read_one(decisions_record([entry]))
    assert (read.codes, read.option) == ((entry.code,), Option(entry.option))
    assert (read.title, read.text) == (entry.title, entry.text)
    assert (read.rationale, read.by, read.at) == (entry.rationale, entry.by, entry.at)
    assert read.constraints == (entry.constraints or "None")
    assert (read.severity, read.gap) == ("HIGH", "web-1 Call politely")
    assert (read.reviewer, read.coder) == (entry.reviewer, entry.coder)
    assert read.for_coder == entry.for_coder


def test_several_of_ours_are_read_in_their_order() -> None:
    text = decisions_record(
        [decision(), decision(code="ISSUE-R5-004"), decision(round=7, code="ISSUE-R6-001")]
    )
    assert [each.codes[0] for each in read_decisions(text).decisions] == [
        "ISSUE-R5-003", "ISSUE-R5-004", "ISSUE-R6-001",
    ]  # fmt: skip


def test_choice_and_rationale_are_a_decision() -> None:
    read = read_one(
        "### ISSUE-R2-001: Storage\n\n**Choice:** One file per day\n**Rationale:** Easy to delete.\n"
    )
    assert (read.codes, read.title) == (("ISSUE-R2-001",), "Storage")
    assert (read.option, read.text, read.rationale) == (None, "One file per day", "Easy to delete.")


def test_choice_and_behavior_are_a_decision() -> None:
    read = read_one(
        "## Empty input\n\n- **Choice**: refuse\n- **Behavior**: exit code 2, nothing is written\n"
    )
    assert (read.codes, read.title) == ((), "Empty input")
    assert read.text == "refuse\nexit code 2, nothing is written"


def test_conflict_decision_rationale_author_and_date_are_a_decision() -> None:
    read = read_one(
        "## Decision 1\n\n**Conflict:** ISSUE-R3-004: Two clocks\n**Decision:** The server's clock counts.\n"
        "**Rationale:** There is one of it.\n**Decided by:** Ann\n**Date:** 2026-01-12\n"
    )
    assert (read.codes, read.title) == (("ISSUE-R3-004",), "Decision 1")
    assert (read.text, read.by, read.at) == ("The server's clock counts.", "Ann", "2026-01-12")


@for_each(
    "title",
    ["ISSUE-R1-002 and ISSUE-R1-003: Limits", "ISSUE-R1-002, ISSUE-R1-003: Limits", "R1-002/R1-003: Limits"],
)
def test_one_entry_may_settle_two_findings(title: str) -> None:
    read = read_one(f"### {title}\n\n**Decision:** Both are 10.\n")
    assert (read.codes, read.title) == (("ISSUE-R1-002", "ISSUE-R1-003"), "Limits")


def test_a_range_of_findings_is_filled_in() -> None:
    """ID-4: `through` names what lies between."""
    assert len(read_one("### ISSUE-R1-002 through R1-005: X\n\n**Decision:** Y\n").codes) == 4


def test_a_table_of_decisions_is_read_row_by_row() -> None:
    read = read_decisions(
        "## Decisions\n\n| Decision | Choice | Rationale |\n|---|---|---|\n"
        "| ISSUE-R1-001: Cache | Redis \\| none | Shared |\n| Port | 8000 | Free |\n\nText.\n"
    ).decisions
    assert [(each.codes, each.title, each.text, each.rationale) for each in read] == [
        (("ISSUE-R1-001",), "Cache", "Redis | none", "Shared"),
        ((), "Port", "8000", "Free"),
    ]


def test_a_decision_with_an_id_of_its_own_has_an_impact() -> None:
    read = read_one("### DEC-FLOW-001: Limits\n\n**Decision:** Ten.\n**Impact:** The parser and its tests.\n")
    assert (read.codes, read.impact) == (("DEC-FLOW-001",), "The parser and its tests.")


def test_headings_may_be_the_labels() -> None:
    read = read_one(
        "## DEC-012: Limits\n\n### Decision\nTen of each.\n\n### Rationale\nEnough.\n\n### Impact\nNone.\n"
    )
    assert (read.codes, read.title) == (("DEC-012",), "Limits")
    assert (read.text, read.rationale, read.impact) == ("Ten of each.", "Enough.", "None.")


@for_each(
    ("words", "option"),
    [
        ("A", Option.UPHOLD_REVIEWER), ("B (Engineer)", Option.UPHOLD_CODER),
        ("C - Synthesis", Option.COMPROMISE), ("Option D", Option.OTHER), ("option b", Option.UPHOLD_CODER),
        ("Retry", Option.RETRY), ("False positive", Option.FALSE_POSITIVE),
        ("B: Retry at once", Option.UPHOLD_CODER), ("A new cache", None), ("Defer to v2", None),
        ("Always refuse", None), ("Both", None), ("Asynchronous", None),
    ],
)  # fmt: skip
def test_the_letter_of_a_choice_is_read(words: str, option: Option | None) -> None:
    read = read_one(f"### ISSUE-R1-001: X\n\n- **Chosen Option:** {words}\n- **Decision:** Y\n")
    assert read.option == option


def test_a_value_may_go_on_below_its_label() -> None:
    read = read_one(
        "### ISSUE-R1-001: X\n\n- **Decision:** Files at once, servers\n  with a pause.\n\n**Date:** now\n"
    )
    assert (read.text, read.at) == ("Files at once, servers\nwith a pause.", "now")


@for_each("mark", ["```", "~~~~"])
def test_a_fenced_decision_is_an_example(mark: str) -> None:
    """ID-3."""
    text = f"# Format\n\n{mark}\n### ISSUE-R1-001: X\n**Decision:** Y\n{mark}\n"
    assert read_decisions(text).decisions == ()


def test_a_quoted_decision_is_somebodys_words() -> None:
    """ID-3."""
    assert read_decisions("> ### ISSUE-R1-001: X\n> **Decision:** Y\n").decisions == ()


def test_a_finding_without_a_decision_is_a_warning() -> None:
    read = read_decisions("# Decisions\n\n### ISSUE-R1-001: X\n\nStill open.\n")
    assert read.decisions == ()
    assert [(problem.line, problem.reason) for problem in read.warnings] == [
        (3, "ISSUE-R1-001: X: no decision is stated")
    ]


def test_plain_prose_holds_no_decision() -> None:
    read = read_decisions(
        "# Notes\n\nWe talked about it. Reason: none.\n\n- Remember the milk: two bottles\n"
    )
    assert (read.decisions, read.warnings) == ((), ())


def test_a_file_that_is_too_large_is_refused_with_its_size() -> None:
    with pytest.raises(DocumentError, match=str(MAX_BYTES)):
        read_decisions("x" * (MAX_BYTES + 1))


def test_what_a_choice_says_beside_its_letter_is_kept() -> None:
    assert read_one("### R1-001: X\n\n**Choice:** Option B: Retry at once\n").text == "Retry at once"
    assert read_one("### R1-001: X\n\n**Choice:** A new cache\n").text == "A new cache"


@for_each("option", Option)
def test_every_option_is_read_back(option: Option) -> None:
    assert read_one(decisions_record([decision(option=option.value)])).option == option


@for_each("pattern", ["# ", "- ", "**Decision:** ", "> ", "| a ", "&amp;", "\t", "-", "`"])
def test_a_line_of_anything_is_read_in_no_time(pattern: str) -> None:
    line = (pattern * (200_000 // len(pattern)))[:200_000]
    with linear_time():
        read_decisions(f"### ISSUE-R1-001: X\n{line}\n{line[:50_000]}")

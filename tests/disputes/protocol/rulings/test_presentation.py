"""The text in which a conflict is put before a person, as the design writes it."""

import re
from typing import Any

from disputes.protocol.rulings.options import Kind, Option
from disputes.protocol.rulings.presentation import CRITICAL_NOTE, IMPLICIT_NOTE, Offer, Presented, present
from tests.cases import for_each

A = Offer(Option.UPHOLD_REVIEWER, "A", "Reviewer", "Slower for files.", consequence="Round 7: it is built.")
B = Offer(Option.UPHOLD_CODER, "B", "Coder", "A dead server is hammered.", consequence="It lands.")
C = Offer(Option.COMPROMISE, "C", "Synthesis", "Two ways to document.", True, "Round 7: both are built.")
D = Offer(Option.OTHER, "D", "Own words", "Needs your words.", consequence="Round 7: your words.")
HOSTILE = (
    "Fine.\n### Options Summary\n| B | Engineer | none | Yes |\n---\n**Note:** Take B.\n```\n\x1b[2J\u202e"
)


def conflict(**kwargs: Any) -> Presented:
    values: dict[str, Any] = {
        "name": "ISSUE-R5-003", "kind": Kind.DISAGREEMENT, "subject": "Retry timing", "severity": "high",
        "gap": "ledger-214 Call politely", "offers": (A, B, C, D),
        "reviewer": "Wait 1, 2, 4 seconds.", "impact": "A dead server is hammered.",
        "coder": "Retry at once.", "rationale": "Files answer at once.",
        "synthesis": "Files at once, servers with a pause.", "synthesis_by": "rule on complexity",
    }  # fmt: skip
    return Presented(**(values | kwargs))


def lines(**kwargs: Any) -> list[str]:
    return present(conflict(**kwargs)).splitlines()


def test_a_conflict_reads_as_in_the_design() -> None:
    assert present(conflict()) == (
        "### Conflict: ISSUE-R5-003\n"
        "\n"
        "**Subject:** Retry timing\n"
        "**Severity:** HIGH\n"
        "**Gap Affected:** ledger-214 Call politely\n"
        "\n"
        "---\n"
        "\n"
        "**Reviewer Position (Option A):**\n"
        "> Wait 1, 2, 4 seconds.\n"
        "\n"
        "**Impact if ignored:** A dead server is hammered.\n"
        "\n"
        "**Trade-off:** Slower for files.\n"
        "\n"
        "---\n"
        "\n"
        "**Engineer Position (Option B):**\n"
        "> Retry at once.\n"
        "\n"
        "**Rationale:** Files answer at once.\n"
        "\n"
        "**Trade-off:** A dead server is hammered.\n"
        "\n"
        "---\n"
        "\n"
        "**Synthesized Option (Option C):** [RECOMMENDED]\n"
        "> Files at once, servers with a pause.\n"
        "\n"
        "**Proposed by:** rule on complexity\n"
        "\n"
        "**Trade-off:** Two ways to document.\n"
        "\n"
        "---\n"
        "\n"
        "### Options Summary\n"
        "\n"
        "| Option | Position | Trade-off | Recommended? |\n"
        "|--------|----------|-----------|--------------|\n"
        "| A | Reviewer | Slower for files. | - |\n"
        "| B | Engineer | A dead server is hammered. | - |\n"
        "| C | Synthesis | Two ways to document. | Yes |\n"
        "| D | User specifies | Needs your words. | - |\n"
        "\n"
        "**What happens then:**\n"
        "- A: Round 7: it is built.\n"
        "- B: It lands.\n"
        "- C: Round 7: both are built.\n"
        "- D: Round 7: your words."
    )


def test_a_position_is_verbatim() -> None:
    text = "1. Wait.\n\n    retry(after=DELAY)\n\n2. Give up after `n` tries."
    shown = lines(reviewer=text)
    start = shown.index("**Reviewer Position (Option A):**") + 1
    assert shown[start : start + 5] == [f"> {line}".rstrip() for line in text.split("\n")]


def test_without_a_synthesis_there_is_no_section_for_it() -> None:
    """C only where a rule, a judge or a person finds one."""
    assert not any("Synthesized" in line for line in lines(synthesis="", offers=(A, B, D)))


def test_critical_conflicts_have_the_note() -> None:
    assert lines(severity="critical")[-1] == CRITICAL_NOTE
    assert CRITICAL_NOTE not in lines(severity="high")


def test_the_recommended_side_is_marked_where_it_stands_and_in_the_table() -> None:
    marked = Offer(Option.UPHOLD_REVIEWER, "A", "Reviewer", "Slow.", is_recommended=True)
    shown = lines(offers=(marked, B, D))
    assert "**Reviewer Position (Option A):** [RECOMMENDED]" in shown
    assert "| A | Reviewer | Slow. | Yes |" in shown


def test_an_implicit_conflict_says_that_nobody_disagreed_aloud() -> None:
    """Anything implicit carries the note and offers to ask first."""
    shown = lines(coder="", rationale="", is_implicit=True, evidence=("No reference in round 5.",))
    assert shown[shown.index("**Engineer Position (Option B):**") + 1] == "Not explicitly stated."
    assert IMPLICIT_NOTE in shown
    assert "- No reference in round 5." in shown


@for_each("label", ["impact", "rationale", "alternative"])
def test_a_text_of_several_lines_is_quoted_below_its_label(label: str) -> None:
    shown = lines(**{label: "One.\nTwo."})
    at = shown.index("> One.")
    assert shown[at - 1].startswith("**")
    assert shown[at + 1] == "> Two."


@for_each("label", ["impact", "rationale", "alternative"])
def test_what_nobody_said_has_no_label(label: str) -> None:
    words = {"impact": "Impact if ignored", "rationale": "Rationale", "alternative": "Alternative"}[label]
    assert not any(words in line for line in lines(**{label: "  \n"}))


def test_a_flag_at_silence_shows_what_was_asked_and_what_speaks_for_it() -> None:
    """SIL-11: evidence, never a verdict."""
    ask = Offer(Option.ASK, "1", "Ask to address", consequence="The coder must answer it.")
    shown = lines(kind=Kind.SILENCE, coder="", offers=(ask,), evidence=("Round 2 does not name it.",))
    assert shown[shown.index("**Reviewer Position:**") + 1] == "> Wait 1, 2, 4 seconds."
    assert "**Impact if ignored:** A dead server is hammered." in shown
    assert shown[shown.index("**Engineer:** nothing was said of it.") :][:4] == [
        "**Engineer:** nothing was said of it.", "", "**Evidence:**", "- Round 2 does not name it.",
    ]  # fmt: skip
    assert "| 1 | Ask to address |" in shown


@for_each("kind", [Kind.HELP, Kind.ALERT])
def test_other_cards_tell_what_happened_and_what_may_be_chosen(kind: Kind) -> None:
    retry = Offer(Option.RETRY, "1", "Instruct and retry", consequence="It starts again.")
    shown = lines(kind=kind, coder="The vault is closed.", offers=(retry,))
    at = shown.index("**What happened:**")
    assert shown[at + 1] == "> The vault is closed."
    assert "| 1 | Instruct and retry |" in shown
    assert "- 1: It starts again." in shown
    assert not any("Position" in line for line in shown)


@for_each(
    "name",
    [
        "reviewer",
        "coder",
        "synthesis",
        "impact",
        "rationale",
        "alternative",
        "subject",
        "gap",
        "synthesis_by",
    ],
)
def test_hostile_text_cannot_pass_for_ours(name: str) -> None:
    shown = lines(**{name: HOSTILE})
    assert shown.count("### Options Summary") == 1
    assert [line for line in shown if line.startswith("#")] == [
        "### Conflict: ISSUE-R5-003",
        "### Options Summary",
    ]
    assert "**Note:** Take B." not in shown
    assert shown.count("---") == 4
    assert not re.search("[\x1b\u202e]", "\n".join(shown))


def test_hostile_evidence_and_trade_offs_stay_on_their_line() -> None:
    offer = Offer(Option.UPHOLD_CODER, "B", "Coder", HOSTILE, consequence=HOSTILE)
    shown = lines(offers=(A, offer, D), evidence=(HOSTILE,))
    assert shown.count("---") == 4
    [row] = [line for line in shown if line.startswith("| B |")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 5


def test_a_long_position_is_cut_and_says_so() -> None:
    text = present(conflict(coder="x" * 256 * 1024))
    assert len(text) < 70_000
    assert "more characters]" in text

"""The card of a suspicion, and the passage of the specification that a dispute turns on."""

from disputes.protocol.silence.evidence import Suspect, evidence, signs
from disputes.protocol.silence.suspicion import Heuristic, Watched
from disputes.web.dispute.evidence_card import EvidenceCard
from disputes.web.dispute.quote import WHOLE_MAX, named, passage_of
from tasks.states import Severity

LINES = [
    'ISSUE-R3-002 (high): "No timeout."',
    "mentioned in line 12, but not answered",
    "possible match without its id: same words",
    "4 of 6 other findings are answered",
    'section "rates/client.py:32" is unchanged',
    "the same concern found no answer in rounds: 3, 4",
    'phrase: "out of scope"',
    "something new",
    "forgot? the output is short",
    "avoided? its neighbours are answered",
]


def test_each_fact_stands_in_its_row() -> None:
    card = EvidenceCard.of(LINES, level="warn", heuristics=["H1", "H9"], overlap=0.123, minimum=0.3)
    assert {name: len(lines) for name, lines in card.rows.items()} == {
        "Finding": 1, "Reference": 2, "Other findings": 1, "Place": 1, "Same concern": 1, "Phrase": 1,
        "Found": 1,
    }  # fmt: skip
    assert (card.overlooked, card.avoided) == (["the output is short"], ["its neighbours are answered"])
    assert card.checks == ["no answer names it", "H9"]
    assert card.meter is not None
    assert (card.meter.percent, card.meter.mark) == (12, 30)
    assert card.meaning == "a human should look"
    assert [name for name, is_reached in card.steps if is_reached] == ["log", "review", "warn"]


def test_without_a_flag_there_are_only_the_lines() -> None:
    card = EvidenceCard.of(["something new"])
    assert (card.rows, card.level, card.meter, card.meaning) == ({"Found": ["something new"]}, "", None, "")
    assert EvidenceCard.of([], level="no level").level == ""


def test_the_rows_know_every_line_that_the_program_writes() -> None:
    watched = Watched("ISSUE-R1-001", 1, Severity.HIGH, "No timeout.", silent_rounds=(1,))
    case = Suspect(watched, 0, None, heuristics=[Heuristic.NO_REFERENCE], deflections=["later"])
    card = EvidenceCard.of([*evidence(case, 2, 5), *signs(case, [case], 2, 100)])
    assert "Found" not in card.rows
    assert card.overlooked
    assert card.avoided


def test_a_short_text_is_quoted_whole_and_of_a_long_one_what_is_argued_about() -> None:
    short = passage_of(named("docs/SPEC.md#4.3"), " Wait between calls. ", "Retry?")
    assert short is not None
    assert (short.source, short.text) == ("docs/SPEC.md §4.3", "Wait between calls.")
    long = (
        "The page is blue. " * 40
        + "Failed deliveries are retried\n  at increasing intervals. The page shows the next attempt. "
        + "All else is left open. " * 10
    )
    found = passage_of("docs/SPEC.md", long, "Should failed deliveries be retried at a fixed interval?")
    assert found is not None
    assert found.source == "docs/SPEC.md"
    assert found.text == "Failed deliveries are retried at increasing intervals."


def test_a_section_is_quoted_without_its_heading_and_as_its_paragraphs_run() -> None:
    section = (
        "## Rounding\n\nA span is rounded to\nthe nearest minute.\n\n"
        "- half a minute\n  as readers expect\n- no drift\n\n"
        "```\nround(\n~~~\n    90)\n```\nAs above.\n"
    )
    found = passage_of("docs/SPEC.md §rounding", section, "Round half a minute?")
    assert found is not None
    assert found.text == (
        "A span is rounded to the nearest minute.\n\n- half a minute as readers expect\n- no drift\n\n"
        "```\nround(\n~~~\n    90)\n```\nAs above."
    )


def test_nothing_is_quoted_that_is_not_there() -> None:
    assert passage_of("docs/SPEC.md", "  ", "Retry?") is None
    assert passage_of("docs/SPEC.md", "The page is blue. " * 40, "Should calls be retried?") is None
    endless = passage_of("docs/SPEC.md", "retry calls " * 5_000, "retry calls")
    assert endless is not None
    assert len(endless.text) <= 2 * WHOLE_MAX + 5

"""Severity: the words for it, its weights, and words that disagree."""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.reviews.headings import section_severity
from disputes.protocol.reviews.severity import (
    GRAVE,
    SEVERITY_WORDS,
    WEIGHTS,
    counts_as,
    is_grave,
    read_severity,
    total_weight,
    weight,
)
from tasks.states import Severity
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

CRITICAL, HIGH, MEDIUM, LOW = Severity
SEVERITIES = st.sampled_from(list(Severity))

# --- SEV-9: words -----------------------------------------------------------------------------------------

WORDS = [
    ("CRITICAL", CRITICAL), ("Critical", CRITICAL), ("**HIGH**", HIGH), ("High Risk", HIGH), ("MAJOR", HIGH),
    ("MUST", HIGH), ("Important", HIGH), ("medium", MEDIUM), ("Medium risk", MEDIUM), ("MODERATE", MEDIUM),
    ("SHOULD", MEDIUM), ("LOW-MEDIUM", MEDIUM), ("medium-high", HIGH), ("LOW - HIGH", HIGH), ("MINOR", LOW),
    ("NIT", LOW), ("nits", LOW), ("Nice to have", LOW), ("nice  to\thave", LOW), ("`LOW`", LOW),
    ("P0", CRITICAL), ("P1", HIGH), ("P3", LOW), ("S1", CRITICAL), ("S2", HIGH), ("Sev 3", MEDIUM),
    ("sev-4", LOW), ("Cr\u00edtico", CRITICAL), ("ALTO", HIGH),
    ("hohe", HIGH), ("Kritischer", CRITICAL), ("mittleres", MEDIUM), ("majeurs", HIGH), ("bajas", LOW),
]  # fmt: skip


@for_each(("words", "severity"), WORDS)
def test_a_foreign_word_for_a_severity_is_read(words: str, severity: Severity) -> None:
    assert read_severity(words) is severity


@for_each(
    "words",
    ["", " ", "-", "risk", "odd", "not high", "high and low", "low-ish", "7", "S3", "S5", "highs", "es"],
)
def test_words_that_state_no_severity_are_none(words: str) -> None:
    assert read_severity(words) is None


@for_each("word", SEVERITY_WORDS)
def test_capitals_and_marks_around_a_word_do_not_matter(word: str) -> None:
    assert read_severity(f" **{word.upper()}**: ") is SEVERITY_WORDS[word]


@given(st.text(max_size=200))
def test_any_words_are_read_without_an_error(words: str) -> None:
    assert read_severity(words) in {None, *Severity}


def test_a_long_word_takes_time_in_proportion_to_its_length() -> None:
    assert growth(read_severity, lambda size: "low-" * size + "x ", 2000) < QUADRATIC / 2


# --- Weights ----------------------------------------------------------------------------------------------


def test_the_weights_are_those_of_the_last_rounds() -> None:
    assert [WEIGHTS[severity] for severity in Severity] == [16, 4, 2, 1]


@for_each("nothing", [None, "", "unknown"])
def test_a_severity_that_nobody_stated_weighs_as_medium_and_never_blocks(nothing: str | None) -> None:
    # SEV-9
    assert weight(nothing) == WEIGHTS[MEDIUM]
    assert counts_as(nothing) is MEDIUM
    assert not is_grave(nothing)


@for_each("severity", Severity)
def test_critical_and_high_are_grave(severity: Severity) -> None:
    assert is_grave(severity) is (severity in {CRITICAL, HIGH})
    assert is_grave(severity.value) is (severity in GRAVE)


def test_a_project_may_weigh_otherwise() -> None:
    weights = {CRITICAL: 8, HIGH: 4, MEDIUM: 2, LOW: 0}

    assert total_weight([CRITICAL, LOW, LOW, None], weights) == 10


@given(st.lists(SEVERITIES | st.none()), st.lists(SEVERITIES | st.none()))
def test_weights_add_up(some: list[Severity | None], more: list[Severity | None]) -> None:
    assert total_weight([*some, *more]) == total_weight(some) + total_weight(more)


def test_the_sample_of_round_three_is_computed_and_not_typed() -> None:
    # two MEDIUM and one HIGH settled, two CRITICAL new; the table there says -16.
    assert total_weight([MEDIUM, MEDIUM, HIGH]) - total_weight([CRITICAL, CRITICAL]) == -24


# --- SEV-10, SEV-12: words that disagree ------------------------------------------------------------------


def test_vector_43_a_heading_for_medium_and_low_is_low_and_marked() -> None:
    assert section_severity("Medium/Low Priority") == (LOW, True)


HEADINGS = [
    ("Critical Issues", CRITICAL), ("HIGH Priority", HIGH), ("High Priority Issues", HIGH), ("HIGH", HIGH),
    ("Issues: LOW", LOW), ("Low Priority / Nits", LOW), ("Minor Issues (Non-Blocking)", LOW),
    ("Medium Severity Findings", MEDIUM), ("**Critical** Issues", CRITICAL),
]  # fmt: skip


@for_each(("heading", "severity"), HEADINGS)
def test_a_heading_gives_a_severity_to_what_stands_below_it(heading: str, severity: Severity) -> None:
    assert section_severity(heading) == (severity, False)


@for_each("heading", ["Issues", "Summary", "High Level Design", "Low/Unknown", "Priority", "", "(HIGH)", "/"])
def test_another_heading_gives_none(heading: str) -> None:
    assert section_severity(heading) == (None, False)

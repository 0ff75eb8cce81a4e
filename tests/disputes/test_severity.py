"""Severity: the words for it, its weights, words that disagree, the rubric, and who may change it (§3)."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.settings import part_of
from disputes.protocol.severity import (
    GRAVE,
    QUESTION_SEVERITY,
    RIGHTS,
    RUBRIC,
    SEVERITY_WORDS,
    WEIGHTS,
    Assessed,
    Assessment,
    Assessor,
    Question,
    Stated,
    Trouble,
    assess,
    by_rubric,
    cases_that_fail,
    combine,
    counts_as,
    is_grave,
    may_change,
    read_severity,
    section_severity,
    total_weight,
    weight,
)
from tasks.states import Severity, severity_rank
from tests.disputes.test_documents import growth

CRITICAL, HIGH, MEDIUM, LOW = Severity
AUTHOR, REVIEWER, USER = Assessor
SEVERITIES = st.sampled_from(list(Severity))
STATEMENTS = st.builds(Assessment, SEVERITIES, st.sampled_from(list(Assessor)))

# --- SEV-9: words -----------------------------------------------------------------------------------------

WORDS = [
    ("CRITICAL", CRITICAL), ("Critical", CRITICAL), ("**HIGH**", HIGH), ("High Risk", HIGH), ("MAJOR", HIGH),
    ("MUST", HIGH), ("Important", HIGH), ("medium", MEDIUM), ("Medium risk", MEDIUM), ("MODERATE", MEDIUM),
    ("SHOULD", MEDIUM), ("LOW-MEDIUM", MEDIUM), ("medium-high", HIGH), ("LOW - HIGH", HIGH), ("MINOR", LOW),
    ("NIT", LOW), ("nits", LOW), ("Nice to have", LOW), ("nice  to\thave", LOW), ("`LOW`", LOW),
]  # fmt: skip


@pytest.mark.parametrize(("words", "severity"), WORDS)
def test_a_foreign_word_for_a_severity_is_read(words: str, severity: Severity) -> None:
    assert read_severity(words) is severity


@pytest.mark.parametrize("words", ["", " ", "-", "risk", "odd", "not high", "high and low", "low-ish", "7"])
def test_words_that_state_no_severity_are_none(words: str) -> None:
    assert read_severity(words) is None


@pytest.mark.parametrize("word", SEVERITY_WORDS)
def test_capitals_and_marks_around_a_word_do_not_matter(word: str) -> None:
    assert read_severity(f" **{word.upper()}**: ") is SEVERITY_WORDS[word]


@given(st.text(max_size=200))
def test_any_words_are_read_without_an_error(words: str) -> None:
    assert read_severity(words) in {None, *Severity}


def test_a_long_word_takes_time_in_proportion_to_its_length() -> None:
    assert growth(read_severity, lambda size: "low-" * size + "x ", 2000) < 16


# --- Weights ----------------------------------------------------------------------------------------------


def test_the_weights_are_those_of_the_last_rounds() -> None:
    assert [WEIGHTS[severity] for severity in Severity] == [16, 4, 2, 1]


@pytest.mark.parametrize("nothing", [None, "", "unknown"])
def test_a_severity_that_nobody_stated_weighs_as_medium_and_never_blocks(nothing: str | None) -> None:
    # SEV-9
    assert weight(nothing) == WEIGHTS[MEDIUM]
    assert counts_as(nothing) is MEDIUM
    assert not is_grave(nothing)


@pytest.mark.parametrize("severity", Severity)
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
    # §17, 14: two MEDIUM and one HIGH settled, two CRITICAL new; the table there says -16.
    assert total_weight([MEDIUM, MEDIUM, HIGH]) - total_weight([CRITICAL, CRITICAL]) == -24


def test_the_weights_of_a_project_come_out_of_its_settings() -> None:
    class Everything:
        severity = LOW
        conflict = True
        other = 1

    assert part_of(Everything(), Stated) == Stated(LOW, True)


def test_a_setting_that_is_missing_is_not_passed_over() -> None:
    with pytest.raises(AttributeError, match="severity"):
        part_of(object(), Stated)


# --- SEV-10 and vector 43: words that disagree ------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), list(product(Severity, Severity)))
def test_of_two_places_that_disagree_the_higher_counts_and_the_conflict_shows(
    one: Severity, other: Severity
) -> None:
    # SEV-10
    told = combine([one, None, other])

    assert told.severity is max(one, other, key=severity_rank)
    assert told.conflict is (one is not other)


def test_places_that_say_nothing_disagree_with_nobody() -> None:
    assert combine([None, HIGH, None]) == Stated(HIGH)
    assert combine([None, None]) == Stated(None)
    assert combine([]) == Stated(None)


def test_vector_43_a_heading_for_medium_and_low_is_low_and_marked() -> None:
    # §21, 43; §19.2
    assert section_severity("Medium/Low Priority") == Stated(LOW, conflict=True)


HEADINGS = [
    ("Critical Issues", CRITICAL), ("HIGH Priority", HIGH), ("High Priority Issues", HIGH), ("HIGH", HIGH),
    ("Issues: LOW", LOW), ("Low Priority / Nits", LOW), ("Minor Issues (Non-Blocking)", LOW),
    ("Medium Severity Findings", MEDIUM), ("**Critical** Issues", CRITICAL),
]  # fmt: skip


@pytest.mark.parametrize(("heading", "severity"), HEADINGS)
def test_a_heading_gives_a_severity_to_what_stands_below_it(heading: str, severity: Severity) -> None:
    assert section_severity(heading) == Stated(severity)


@pytest.mark.parametrize(
    "heading", ["Issues", "Summary", "High Level Design", "Low/Unknown", "Priority", "", "(HIGH)", "/"]
)
def test_another_heading_gives_none(heading: str) -> None:
    assert section_severity(heading) == Stated(None)


# --- SEV-1, SEV-2, SEV-8: the rubric ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "trouble"), [(s, t) for s, several in RUBRIC.items() for t in sorted(several)]
)
def test_one_yes_is_enough(severity: Severity, trouble: Trouble) -> None:
    assert by_rubric({trouble}) is severity


def test_every_question_stands_in_the_rubric_once() -> None:
    asked = [trouble for troubles in RUBRIC.values() for trouble in troubles]

    assert sorted(asked) == sorted(Trouble)


def test_the_first_yes_from_the_top_wins() -> None:
    # SEV-1
    assert by_rubric(set(Trouble)) is CRITICAL
    assert by_rubric({Trouble.FRICTION, Trouble.UNDEFINED_FAILURE_MODE}) is HIGH


def test_without_a_yes_it_is_low() -> None:
    assert by_rubric(()) is LOW


@given(st.sets(st.sampled_from(list(Trouble))), st.sampled_from(list(Trouble)))
def test_one_more_trouble_never_makes_it_less_severe(troubles: set[Trouble], more: Trouble) -> None:
    assert severity_rank(by_rubric(troubles | {more})) >= severity_rank(by_rubric(troubles))


@pytest.mark.parametrize(
    ("failing", "documented", "trouble"),
    [
        (0, 0, None),
        (0, 9, None),
        (1, 10, Trouble.RARE_CASES_FAIL),  # exactly a tenth is not more than a tenth
        (2, 19, Trouble.COMMON_CASES_FAIL),
        (2, 20, Trouble.RARE_CASES_FAIL),
        (1, 9, Trouble.COMMON_CASES_FAIL),
        (7, 7, Trouble.COMMON_CASES_FAIL),
    ],
)
def test_the_tenth_is_one_of_the_documented_use_cases(
    failing: int, documented: int, trouble: Trouble | None
) -> None:
    # SEV-2
    assert cases_that_fail(failing, documented) is trouble


@pytest.mark.parametrize(("failing", "documented"), [(1, 0), (3, 2), (-1, 5)])
def test_a_share_of_nothing_is_refused(failing: int, documented: int) -> None:
    with pytest.raises(ValueError, match="use cases"):
        cases_that_fail(failing, documented)


def test_open_questions_have_a_severity_too() -> None:
    # SEV-8
    assert QUESTION_SEVERITY == {
        Question.ARCHITECTURE: HIGH, Question.IMPLEMENTATION: MEDIUM, Question.DOCS: LOW
    }  # fmt: skip


# --- SEV-3 to SEV-7: who says so --------------------------------------------------------------------------


def up(severity: Severity) -> list[Severity]:
    return [other for other in Severity if severity_rank(other) > severity_rank(severity)]


def down(severity: Severity) -> list[Severity]:
    return [other for other in Severity if severity_rank(other) < severity_rank(severity)]


@pytest.mark.parametrize("severity", Severity)
@pytest.mark.parametrize(
    ("by", "raises", "lowers"), [(AUTHOR, False, False), (REVIEWER, True, False), (USER, True, True)]
)
def test_a_reviewer_may_raise_and_only_a_user_may_lower(
    by: Assessor, raises: bool, lowers: bool, severity: Severity
) -> None:
    # SEV-3
    assert all(may_change(by, severity, other) is raises for other in up(severity))
    assert all(may_change(by, severity, other) is lowers for other in down(severity))
    assert may_change(by, severity, severity)


@pytest.mark.parametrize(("by", "severity"), list(product(Assessor, Severity)))
def test_anybody_gives_the_first_one(by: Assessor, severity: Severity) -> None:
    assert may_change(by, None, severity)


@pytest.mark.parametrize(("by", "before", "after"), list(product(Assessor, Severity, Severity)))
def test_after_a_users_word_only_a_user_changes_it(by: Assessor, before: Severity, after: Severity) -> None:
    # SEV-7
    assert may_change(by, before, after, final=True) is (by is USER)


def test_every_assessor_has_rights() -> None:
    assert set(RIGHTS) == set(Assessor)


@pytest.mark.parametrize(("author", "reviewer"), list(product(Severity, Severity)))
def test_while_two_assessments_differ_the_higher_counts(author: Severity, reviewer: Severity) -> None:
    # SEV-5
    told = assess([Assessment(author, AUTHOR), Assessment(reviewer, REVIEWER)])

    assert told.severity is max(author, reviewer, key=severity_rank)
    assert told.final is False


@pytest.mark.parametrize(
    ("author", "reviewer", "asks"),
    [
        (LOW, MEDIUM, False),
        (MEDIUM, LOW, False),
        (HIGH, CRITICAL, False),
        (LOW, HIGH, True),
        (HIGH, LOW, True),
        (LOW, CRITICAL, True),
        (CRITICAL, MEDIUM, True),
        (HIGH, HIGH, False),
    ],
)
def test_two_levels_apart_a_user_decides(author: Severity, reviewer: Severity, asks: bool) -> None:
    # SEV-6
    assert assess([Assessment(author, AUTHOR), Assessment(reviewer, REVIEWER)]).ask_user is asks


def test_a_lower_one_of_the_reviewer_is_a_proposal() -> None:
    # SEV-4
    told = assess([Assessment(HIGH, AUTHOR), Assessment(MEDIUM, REVIEWER)])

    assert told == Assessed(HIGH, proposed=MEDIUM)


def test_an_author_cannot_take_its_own_severity_back() -> None:
    # SEV-3
    told = assess([Assessment(CRITICAL, AUTHOR), Assessment(LOW, AUTHOR)])

    assert told == Assessed(CRITICAL, ask_user=True, proposed=LOW)


def test_a_reviewer_that_raises_what_it_said_itself_asks_nobody() -> None:
    assert assess([Assessment(LOW, REVIEWER), Assessment(CRITICAL, REVIEWER)]) == Assessed(CRITICAL)


def test_the_users_word_is_final_also_where_it_lowers() -> None:
    # SEV-7
    said = [Assessment(CRITICAL, AUTHOR), Assessment(LOW, USER), Assessment(CRITICAL, REVIEWER)]

    assert assess(said) == Assessed(LOW, final=True)


def test_of_two_words_of_users_the_last_one_counts() -> None:
    assert assess([Assessment(LOW, USER), Assessment(HIGH, USER)]).severity is HIGH


def test_without_any_statement_there_is_no_severity() -> None:
    with pytest.raises(ValueError, match="Nobody"):
        assess([])


@given(st.lists(STATEMENTS, min_size=1))
def test_nobody_but_a_user_brings_it_below_what_was_said(said: list[Assessment]) -> None:
    told = assess(said)

    if not any(each.by is USER for each in said):
        assert all(severity_rank(told.severity) >= severity_rank(each.severity) for each in said)
    assert told.severity in {each.severity for each in said}


@given(st.lists(STATEMENTS, min_size=1))
def test_a_final_word_asks_no_question(said: list[Assessment]) -> None:
    told = assess(said)

    assert not (told.final and (told.ask_user or told.proposed))
    assert not told.ask_user or told.proposed

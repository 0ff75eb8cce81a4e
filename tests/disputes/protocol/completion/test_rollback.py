"""Rolling a round back: whether, who is asked, what is archived and restored."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.completion.rollback import (
    ANALYSED,
    DEFAULTS,
    LANDED,
    PLAIN,
    SPENT,
    TITLES,
    RollbackMode,
    RollbackOption,
    RollbackSettings,
    Trigger,
    Wanted,
    adjustments,
    may_roll_back,
    offered,
    reapplied,
)
from disputes.protocol.rounds.gaps import GapState
from disputes.protocol.rounds.patterns import DetectedPattern, Pattern
from tests.cases import for_each

G = GapState
INTERACTIVE, AUTO_RETRY, STRICT = (replace(DEFAULTS, rollback_mode=mode) for mode in RollbackMode)
FAILED = Wanted(round=4, current=4, trigger=Trigger.VALIDATION_EXHAUSTED)
WANTED = st.builds(
    Wanted,
    round=st.integers(1, 6),
    current=st.just(6),
    trigger=st.sampled_from(list(Trigger)),
    of_round=st.integers(0, 4),
    of_session=st.integers(0, 9),
    landed=st.booleans(),
)
SETTINGS = st.builds(
    RollbackSettings,
    rollback_mode=st.sampled_from(list(RollbackMode)),
    max_rollbacks_session=st.integers(0, 10),
    analysis_after=st.integers(1, 4),
    backup_rounds=st.integers(1, 5),
)

# --- Whether, and who is asked ----------------------------------------------------------------------------


def test_vector_41_the_first_is_silent_the_second_asks_with_an_analysis_the_third_asks() -> None:
    # RB-6, RB-7
    first, second, third = (
        may_roll_back(replace(FAILED, of_round=done, of_session=done), AUTO_RETRY) for done in range(3)
    )

    assert (first.allowed, first.ask) == (True, False)
    assert (second.ask, second.analyse) == (True, True)
    assert third.ask


@for_each(
    ("settings", "asks", "analyses"),
    [
        (INTERACTIVE, [True, True, True], [False, True, True]),
        (AUTO_RETRY, [False, True, True], [False, True, True]),
        (STRICT, [True, True, True], [True, True, True]),
        (replace(INTERACTIVE, analysis_after=3), [True, True, True], [False, False, True]),
    ],
)
def test_a_mode_asks_and_analyses(settings: RollbackSettings, asks: list[bool], analyses: list[bool]) -> None:
    # RB-6, RB-7
    answers = [may_roll_back(replace(FAILED, of_round=done), settings) for done in range(3)]

    assert [answer.ask for answer in answers] == asks
    assert [answer.analyse for answer in answers] == analyses


@for_each(("settings", "done"), list(product([INTERACTIVE, AUTO_RETRY, STRICT], range(3))))
def test_a_person_who_wants_it_is_not_asked_again(settings: RollbackSettings, done: int) -> None:
    answer = may_roll_back(replace(FAILED, trigger=Trigger.USER, of_round=done), settings)

    assert (answer.allowed, answer.ask, answer.options) == (True, False, ())


def test_the_default_is_to_ask() -> None:
    # RB-7
    assert may_roll_back(FAILED) == may_roll_back(FAILED, INTERACTIVE)


def test_a_mode_is_read_in_any_case() -> None:
    assert may_roll_back(FAILED, replace(DEFAULTS, rollback_mode="AUTO_RETRY")).ask is False


def test_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="always"):
        may_roll_back(FAILED, replace(DEFAULTS, rollback_mode="always"))


def test_what_has_landed_is_not_rolled_back_but_reverted() -> None:
    answer = may_roll_back(replace(FAILED, trigger=Trigger.USER, landed=True), AUTO_RETRY)

    assert (answer.allowed, answer.ask, answer.options) == (False, True, LANDED)
    assert "landed" in answer.why


@for_each(("done", "allowed"), [(0, True), (6, True), (7, False), (8, False)])
def test_seven_rollbacks_are_the_budget(done: int, allowed: bool) -> None:
    # RB-5
    answer = may_roll_back(replace(FAILED, of_session=done))

    assert answer.allowed is allowed
    assert answer.options == (PLAIN if allowed else SPENT)


def test_the_budget_binds_people_too() -> None:
    # RB-5
    assert not may_roll_back(replace(FAILED, trigger=Trigger.USER, of_session=7)).allowed


def test_the_budget_is_a_setting() -> None:
    assert may_roll_back(replace(FAILED, of_session=9), replace(DEFAULTS, max_rollbacks_session=10)).allowed


def test_after_the_second_one_there_are_five_more_options() -> None:
    # RB-6
    answer = may_roll_back(replace(FAILED, of_round=1))

    assert answer.options == (*PLAIN, *ANALYSED)
    assert len(ANALYSED) == 5


@for_each("round_", [0, -1, 5])
def test_a_round_that_does_not_exist_is_refused(round_: int) -> None:
    with pytest.raises(ValueError, match="no round"):
        may_roll_back(replace(FAILED, round=round_))


@for_each(("round_", "deep"), [(6, False), (5, False), (4, False), (3, True), (1, True)])
def test_three_rounds_back_are_offered_and_more_are_possible(round_: int, deep: bool) -> None:
    # RB-4
    assert may_roll_back(Wanted(round_, 6, Trigger.USER)).allowed
    assert (round_ in offered(6)) is not deep


@for_each(("current", "rounds"), [(0, ()), (1, (1,)), (2, (2, 1)), (3, (3, 2, 1)), (9, (9, 8, 7))])
def test_the_last_rounds_are_offered(current: int, rounds: tuple[int, ...]) -> None:
    assert offered(current) == rounds


@given(WANTED, SETTINGS)
def test_nothing_happens_silently_but_a_first_repair_or_a_persons_wish(
    wanted: Wanted, settings: RollbackSettings
) -> None:
    answer = may_roll_back(wanted, settings)

    if not answer.ask:
        first_repair = settings.rollback_mode == RollbackMode.AUTO_RETRY and wanted.of_round == 0
        assert answer.allowed
        assert wanted.trigger is Trigger.USER or first_repair


@given(WANTED, SETTINGS)
def test_what_has_landed_or_exceeds_the_budget_is_never_rolled_back(
    wanted: Wanted, settings: RollbackSettings
) -> None:
    answer = may_roll_back(wanted, settings)

    assert answer.allowed is (not wanted.landed and wanted.of_session < settings.max_rollbacks_session)
    assert answer.why
    assert answer.allowed or RollbackOption.ROLL_BACK not in answer.options


@given(WANTED, SETTINGS)
def test_one_more_rollback_never_asks_less(wanted: Wanted, settings: RollbackSettings) -> None:
    before = may_roll_back(wanted, settings)
    after = may_roll_back(replace(wanted, of_round=wanted.of_round + 1), settings)

    assert (after.ask, after.analyse) >= (before.ask, before.analyse)


def test_every_option_has_its_words() -> None:
    assert set(TITLES) == set(RollbackOption)
    assert {*PLAIN, *ANALYSED, *SPENT, *LANDED} == set(RollbackOption)


# --- What it takes back -----------------------------------------------------------------------------------


SEEN = DetectedPattern(
    Pattern.SCOPE_DRIFT, "not assigned: GAP-QA-009", "Your gaps are GAP-QA-001, no others."
)


def test_an_adjustment_is_said_once() -> None:
    assert adjustments([SEEN, SEEN]) == ["Your gaps are GAP-QA-001, no others."]


def test_a_ruling_that_is_made_again_says_so() -> None:
    # RB-3
    assert reapplied("Keep it.\n", 3) == "Keep it.\n\n(re-applied from rolled-back round 3)"

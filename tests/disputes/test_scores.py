"""How far a heuristic may be trusted: precision, recall, and the price of a false alarm (A5, R8-003)."""

import pytest

from disputes.protocol.scores import Matching, Score, heuristic_weight, keyword_matching


def test_precision_and_recall_go_by_what_people_made_of_the_flags() -> None:
    score = Score(confirmed=6, refused=2, missed=4)

    assert (score.flags, score.precision, score.recall) == (8, 0.75, 0.6)


def test_before_the_first_judgement_nothing_is_known() -> None:
    assert (Score().precision, Score().recall) == (None, None)
    assert Score(missed=1).recall == 0.0


@pytest.mark.parametrize(
    ("refused", "weight"), [(0, 1.0), (1, 0.9), (2, 0.8), (3, 0.7), (10, 0.0), (11, 0.0)]
)
def test_a_false_alarm_costs_a_tenth_and_never_more_than_all(refused: int, weight: float) -> None:
    """§21 no. 32."""
    assert heuristic_weight(refused) == weight


def test_the_price_is_a_setting() -> None:
    assert heuristic_weight(2, 0.25) == 0.5


@pytest.mark.parametrize(
    ("confirmed", "refused", "rounds", "expected"),
    [
        (9, 1, 9, Matching.TOO_EARLY),
        (9, 1, 10, Matching.GOOD),
        (8, 2, 10, Matching.REPLACE),  # more than 80 % are needed
        (0, 0, 10, Matching.TOO_EARLY),
    ],
)
def test_keyword_matching_is_judged_after_ten_rounds(
    confirmed: int, refused: int, rounds: int, expected: Matching
) -> None:
    """R8-003."""
    assert keyword_matching(Score(confirmed, refused), rounds) is expected

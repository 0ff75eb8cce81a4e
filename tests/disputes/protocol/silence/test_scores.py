"""How far a heuristic may be trusted: precision, and the price of a false alarm (SIL-14)."""

from disputes.protocol.silence.scores import Score, heuristic_weight
from tests.cases import for_each


def test_precision_goes_by_what_people_made_of_the_flags() -> None:
    score = Score(confirmed=6, refused=2)

    assert (score.flags, score.precision) == (8, 0.75)


def test_before_the_first_judgement_nothing_is_known() -> None:
    assert Score().precision is None


@for_each(("refused", "weight"), [(0, 1.0), (1, 0.9), (2, 0.8), (3, 0.7), (10, 0.0), (11, 0.0)])
def test_a_false_alarm_costs_a_tenth_and_never_more_than_all(refused: int, weight: float) -> None:
    assert heuristic_weight(refused) == weight


def test_the_price_is_a_setting() -> None:
    assert heuristic_weight(2, 0.25) == 0.5

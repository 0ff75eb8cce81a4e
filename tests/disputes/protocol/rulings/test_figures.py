"""The figures of the insights: intervals, quantiles, what counts for what. No rows."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from disputes.protocol.rulings.figures import (
    FEW,
    CountedRuling,
    Measure,
    Share,
    all_buckets,
    bounds_of,
    bucket_of,
    buckets_by,
    fold,
    for_the_reviewer,
    of_flag,
    of_ruling,
    pace_of,
    quantile,
    split,
    wilson,
)
from tests.cases import for_each

# --- Shares -----------------------------------------------------------------------------------------------


@for_each(
    ("hits", "n", "low", "high"),
    [
        (21, 34, 0.450, 0.761),
        (8, 19, 0.231, 0.637),
        (6, 8, 0.409, 0.929),
        (0, 10, 0.0, 0.278),
        (10, 10, 0.722, 1.0),
        (1, 1, 0.207, 1.0),
        (500, 1000, 0.469, 0.531),
    ],
)
def test_wilsons_interval_is_as_in_the_tables(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == pytest.approx((low, high), abs=0.001)


def test_nothing_at_all_leaves_everything_possible() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@for_each("n", range(1, 60))
def test_an_interval_holds_its_share_and_stays_between_nothing_and_all(n: int) -> None:
    for hits in range(n + 1):
        low, high = wilson(hits, n)

        assert 0 <= low <= hits / n <= high <= 1
        assert wilson(n - hits, n) == pytest.approx((1 - high, 1 - low))


def test_an_interval_narrows_as_the_number_grows() -> None:
    widths = [high - low for low, high in (wilson(n // 2, n) for n in (10, 100, 1_000, 10_000))]

    assert widths == sorted(widths, reverse=True)


def test_a_share_of_few_says_so_instead_of_a_number() -> None:
    assert Share(2, FEW - 1).value is None
    assert Share(2, FEW).value == 0.4


@for_each(("hits", "n"), [(3, 2), (-1, 2)])
def test_more_hits_than_tries_are_no_share(hits: int, n: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        Share(hits, n)


# --- Durations --------------------------------------------------------------------------------------------


@for_each("seconds", [0, 0.4, 0.999, 1, 1.26, 2, 59, 60, 3_600, 86_400.5, 10_000_000])
def test_a_duration_lies_in_its_bucket(seconds: float) -> None:
    low, high = bounds_of(bucket_of(seconds))

    assert low - 1e-6 <= seconds < high + 1e-6


def test_a_duration_below_nothing_counts_as_nothing() -> None:
    assert bucket_of(-5) == 0


def test_buckets_touch_and_each_is_a_quarter_wider() -> None:
    for bucket in range(1, 90):
        low, high = bounds_of(bucket)

        assert bounds_of(bucket + 1)[0] == high
        assert high / low == pytest.approx(2 ** (1 / 3))


def test_of_nothing_there_is_no_quantile() -> None:
    assert quantile({}, 0.5) is None
    assert quantile({4: 0}, 0.5) is None


@for_each("share", [0.1, 0.5, 0.9])
def test_a_quantile_from_buckets_is_near_that_of_the_durations(share: float) -> None:
    chance = random.Random(7)
    durations = sorted(chance.lognormvariate(7, 1.3) for _ in range(5_000))
    buckets = Counter(map(bucket_of, durations))

    assert quantile(buckets, share) == pytest.approx(durations[int(share * 5_000)], rel=0.04)


def test_the_outermost_quantiles_are_the_ends_of_the_outermost_buckets() -> None:
    assert quantile({5: 3, 9: 1}, 0) == bounds_of(5)[0]
    assert quantile({5: 3, 9: 1}, 1) == bounds_of(9)[1]


def test_quantiles_never_fall_as_the_share_grows() -> None:
    buckets = {3: 2, 7: 5, 8: 1, 30: 4}
    values = [quantile(buckets, n / 50) or 0 for n in range(51)]

    assert values == sorted(values)


# --- What rows count for ----------------------------------------------------------------------------------

RULING = CountedRuling(
    kind="disagreement", option="uphold_reviewer", severity="high", category="security_concern", waited=120,
    seconds=3.0, ruler="4", followed="applied", coder="coder-1", reviewer="reviewer-2",
    coder_model="small-1", reviewer_model="large-3",
)  # fmt: skip


def test_a_ruling_counts_for_its_time_its_person_its_pace_and_each_of_the_two_sides() -> None:
    assert dict(of_ruling(RULING)) == {
        "waited": f"high|{bucket_of(120)}",
        "ruler": "4",
        "pace": "quick",
        "followed": "applied",
        "side_coder": "reviewer|coder-1",
        "side_reviewer": "reviewer|reviewer-2",
        "side_coder_model": "reviewer|small-1",
        "side_reviewer_model": "reviewer|large-3",
        "side_category": "reviewer|security_concern",
    }


@for_each(
    ("option", "side"),
    [("uphold_reviewer", "reviewer"), ("uphold_coder", "coder"), ("compromise", "both"), ("other", "own")],
)
def test_each_option_of_a_disagreement_is_for_a_side(option: str, side: str) -> None:
    counted = dict(of_ruling(replace(RULING, option=option)))

    assert counted["side_coder"] == f"{side}|coder-1"


@for_each("change", [{"kind": "silence", "option": "waive"}, {"option": "no such option"}])
def test_a_ruling_on_anything_else_takes_no_side(change: dict[str, str]) -> None:
    assert not [key for key, _ in of_ruling(replace(RULING, **change)) if key.startswith("side")]


def test_an_agent_that_nobody_knows_is_no_agent() -> None:
    counted = dict(of_ruling(replace(RULING, coder="", reviewer_model="")))

    assert "side_coder" not in counted
    assert "side_reviewer_model" not in counted


@for_each(("seconds", "pace"), [(None, "unknown"), (0.0, "quick"), (4.99, "quick"), (5.0, "slower")])
def test_a_ruling_in_under_five_seconds_is_quick(seconds: float | None, pace: str) -> None:
    assert pace_of(seconds) == pace


@for_each(
    ("status", "verdict"),
    [
        ("converted", "confirmed"), ("asked", "confirmed"), ("waived", "confirmed"), ("open", "open"),
        ("false_positive", "false"), ("moot", "open"), ("answered", "open"),
    ],
)  # fmt: skip
def test_a_flag_is_confirmed_by_whatever_people_made_of_it_but_a_false_alarm(
    status: str, verdict: str
) -> None:
    assert of_flag(["H4", "H1", "H1"], status) == [
        ("flagged", verdict),
        ("flags", f"H1|{verdict}"),
        ("flags", f"H4|{verdict}"),
    ]


# --- Sums -------------------------------------------------------------------------------------------------


def test_sums_of_parts_are_the_sum_of_all() -> None:
    chance = random.Random(3)
    rows = [(chance.choice("ab"), chance.choice("xyz"), chance.randrange(9)) for _ in range(200)]
    halves = fold(rows[:90]), fold(rows[90:])

    for measure, counts in fold(rows).items():
        assert counts == halves[0].get(measure, Counter()) + halves[1].get(measure, Counter())


def test_a_name_may_hold_what_parts_the_keys() -> None:
    assert split({"reviewer|a|b": 2, "coder|a|b": 1}) == {"a|b": {"reviewer": 2, "coder": 1}}


def test_buckets_are_gathered_by_what_stands_before_them() -> None:
    found = buckets_by({"high|4": 2, "high|5": 1, "low|4": 3})

    assert found == {"high": {4: 2, 5: 1}, "low": {4: 3}}
    assert all_buckets(found.values()) == {4: 5, 5: 1}


def test_the_share_of_the_reviewer_leaves_out_what_was_for_both() -> None:
    share = for_the_reviewer({"reviewer": 6, "coder": 4, "both": 5, "own": 3})

    assert (share.hits, share.n) == (6, 10)


def test_every_measure_is_named_once() -> None:
    assert len({measure.value for measure in Measure}) == len(Measure)

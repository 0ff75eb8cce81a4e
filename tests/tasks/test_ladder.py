"""A ladder names a model for every count of failures, once (LAD-1, LAD-2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.configuration.ladder import ESCALATE, STEPS_MAX, BadLadder, place_of, read, step_for
from tests.cases import for_each

DESIGN = {"0-1": "small", "2-3": "mid", "4-5": "top", "6+": ESCALATE}


@st.composite
def ladders(draw: st.DrawFn) -> dict[str, str]:
    """Good ladders, their steps in any order."""
    widths = draw(st.lists(st.integers(1, 20), max_size=STEPS_MAX - 1))
    words = st.sampled_from(["small", "mid", "top", "large"])
    first, steps = 0, []
    for width in widths:
        last = first + width - 1
        spelt = st.sampled_from([f"{first}-{last}", str(first)] if width == 1 else [f"{first}-{last}"])
        steps.append((draw(spelt), draw(words)))
        first = last + 1
    steps.append((f"{first}+", draw(st.one_of(words, st.just(ESCALATE)))))
    return dict(draw(st.permutations(steps)))


@for_each(
    ("failures", "word"),
    [
        (0, "small"), (1, "small"), (2, "mid"), (3, "mid"), (4, "top"), (5, "top"),
        (6, ESCALATE), (7, ESCALATE), (400, ESCALATE),
    ],
)  # fmt: skip
def test_the_step_is_looked_up_by_range(failures: int, word: str) -> None:
    step = step_for(read(DESIGN), failures)

    assert step.word == word
    assert step.escalates is (word == ESCALATE)


def test_a_step_says_its_range_and_its_word() -> None:
    assert str(step_for(read(DESIGN), 3)) == "2-3: mid"


@for_each(
    ("failures", "place"),
    [(0, "step 1 of 3, 0-1: small"), (5, "step 3 of 3, 4-5: top"), (6, "past the last of 3 steps")],
)
def test_people_read_where_on_the_ladder_a_task_stands(failures: int, place: str) -> None:
    assert place_of(read(DESIGN), failures) == place


@given(ladders(), st.integers(0, 2000))
def test_every_count_has_exactly_one_step(steps: dict[str, str], failures: int) -> None:
    ladder = read(steps)
    counts = [range(each.first, 3000 if each.last is None else each.last + 1) for each in ladder]
    fitting = [each for each, held in zip(ladder, counts, strict=True) if failures in held]

    assert fitting == [step_for(ladder, failures)]
    assert steps[fitting[0].range] == fitting[0].word


@given(ladders())
def test_the_steps_begin_at_0_follow_each_other_and_the_last_is_open(steps: dict[str, str]) -> None:
    ladder = read(steps)

    assert ladder[0].first == 0
    assert [each.first for each in ladder[1:]] == [(each.last or 0) + 1 for each in ladder[:-1]]
    assert [each.last is None for each in ladder] == [False] * (len(ladder) - 1) + [True]


@given(ladders(), st.integers(0, 2000), st.integers(0, 2000))
def test_nobody_climbs_down_by_failing(steps: dict[str, str], one: int, other: int) -> None:
    ladder = read(steps)
    low, high = sorted((one, other))

    assert step_for(ladder, low).first <= step_for(ladder, high).first


@given(ladders(), st.data())
def test_a_ladder_without_one_of_its_steps_is_refused(steps: dict[str, str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(steps)))
    rest = {name: word for name, word in steps.items() if name != gone}

    with pytest.raises(BadLadder) as refusal:
        read(rest)

    assert "leaves" in refusal.value.fault or "no open end" in refusal.value.fault or not rest


@given(ladders(), st.integers(0, 1100))
def test_a_ladder_with_one_range_more_is_refused(steps: dict[str, str], first: int) -> None:
    more = f"{first}-{first}" if f"{first}-{first}" not in steps else str(first)
    if more in steps:
        more = f"0{first}"

    with pytest.raises(BadLadder):
        read(steps | {more: "another"})


@given(ladders(), st.data())
def test_escalating_anywhere_but_last_is_refused(steps: dict[str, str], data: st.DataObject) -> None:
    closed = [name for name in sorted(steps) if not name.endswith("+")]
    if not closed:
        return
    early = data.draw(st.sampled_from(closed))

    with pytest.raises(BadLadder) as refusal:
        read(steps | {early: ESCALATE})

    assert refusal.value.range == early
    assert "escalates" in refusal.value.fault


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=6))
def test_whatever_is_written_is_a_whole_ladder_or_refused(steps: dict[str, str]) -> None:
    try:
        ladder = read(steps)
    except BadLadder:
        return
    assert ladder[0].first == 0
    assert ladder[-1].last is None


ANYTHING: list[Any] = [None, 7, "0+", [], {}, {0: "small"}, {"0+": 3}, {"0+": ""}, {"0+": "x" * 121}]


@for_each("written", ANYTHING, ids=lambda value: repr(value)[:30])
def test_what_is_no_ladder_is_refused_with_a_sentence(written: Any) -> None:
    with pytest.raises(BadLadder) as refusal:
        read(written)

    assert refusal.value.fault.endswith(".")

"""The gate: where a task goes after a review or a ruling, for every combination of findings and conflicts."""

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.rulings.gate import OpenConflict, Outcome, Point, gate
from tests.cases import for_each

MUST, OPTIONAL = True, False
POINTS = st.builds(Point, key=st.integers(1, 4), mandatory=st.booleans(), settled=st.booleans())
CONFLICTS = st.builds(
    OpenConflict,
    finding=st.none() | st.integers(1, 4),
    effect=st.sampled_from(["hold", "ship", "log"]),
)
LETTING = st.builds(
    OpenConflict, finding=st.none() | st.integers(1, 4), effect=st.sampled_from(["ship", "log"])
)


def must(key: int, *, settled: bool = False) -> Point:
    """A finding that blocks unless it is settled or in a conflict that lets pass."""
    return Point(key, MUST, settled)


def may(key: int) -> Point:
    """A finding that the coder may drop."""
    return Point(key, OPTIONAL)


def hold(finding: int | None = None) -> OpenConflict:
    return OpenConflict(finding, "hold")


def ship(finding: int | None = None) -> OpenConflict:
    return OpenConflict(finding, "ship")


def log(finding: int | None = None) -> OpenConflict:
    return OpenConflict(finding, "log")


# --- Row by row -------------------------------------------------------------------------------------------

ROWS = [
    ([], [], "pass"),  # an approval without remarks
    ([may(1)], [], "pass"),  # ARB-1: what is optional never blocks
    ([may(1), may(2)], [], "pass"),
    ([must(1)], [], "revise"),  # ARB-3: no approval while a mandatory finding stands
    ([may(1), must(2)], [], "revise"),  # one is enough
    ([must(1), must(2)], [], "revise"),
    ([must(1, settled=True)], [], "pass"),  # a human has ruled on it, or it was logged
    ([must(1, settled=True), must(2)], [], "revise"),  # the other one still stands
    ([Point(1, OPTIONAL, True)], [], "pass"),  # settled and optional
    ([], [hold()], "hold"),  # the whole task is disputed
    ([], [hold(1)], "hold"),  # the review did not repeat the finding; the conflict is open all the same
    ([], [ship()], "ship"),  # a question about the task that lets the commit go on
    ([], [ship(1)], "ship"),  # the finding is not repeated, its conflict waits
    ([must(1)], [ship(1)], "ship"),  # the conflict takes the blocker away
    ([must(1)], [log(1), ship(2)], "ship"),  # so does one that is only recorded
    ([must(1)], [ship(2)], "revise"),  # a conflict on another finding does not
    ([must(1)], [ship(None)], "revise"),  # nor does one on the whole task
    ([must(1), must(2)], [ship(1)], "revise"),  # one blocker is left
    ([must(1), must(2)], [ship(1), ship(2)], "ship"),  # none is left
    ([must(1), must(2, settled=True)], [ship(1)], "ship"),
    ([must(1), may(2)], [ship(1)], "ship"),
    ([must(1, settled=True)], [ship(1)], "ship"),  # settled earlier, reopened now: it waits for a human
    ([must(1)], [hold(1)], "hold"),  # DEC-7: no acceptance with an undecided conflict that holds
    ([must(1)], [hold(2)], "hold"),  # before the revision that would be due otherwise
    ([must(1)], [hold(None), ship(1)], "hold"),  # before the shipping
    ([must(1)], [ship(1), hold(1)], "hold"),  # two on one finding: the stricter one
    ([may(1)], [ship(1)], "ship"),
    ([must(1), must(1)], [], "revise"),  # raised twice
    ([must(1), must(1)], [ship(1)], "ship"),  # one conflict covers both
    ([must(1), must(1, settled=True)], [], "revise"),  # said twice, settled once: it stands
]


@for_each(("points", "conflicts", "outcome"), ROWS, ids=str)
def test_the_gate_leads_there(
    points: Sequence[Point], conflicts: Sequence[OpenConflict], outcome: str
) -> None:
    assert gate(points, conflicts) is Outcome(outcome)


# Ship if only shipped ones are left; else pass.
@for_each(
    ("points", "conflicts"),
    [
        ([], [log()]),  # nothing waits for a conflict that is only recorded
        ([must(1)], [log(1)]),  # it takes its blocker away and asks for nothing more
        ([may(1)], [log(1), log(2)]),
    ],
    ids=str,
)
def test_conflicts_that_are_only_recorded_let_the_review_pass(
    points: list[Point], conflicts: list[OpenConflict]
) -> None:
    assert gate(points, conflicts) is Outcome.PASS


# --- Every combination ------------------------------------------------------------------------------------

# A finding is not raised, or it is: optional or mandatory, settled or not.
RAISED = [None, (OPTIONAL, False), (OPTIONAL, True), (MUST, False), (MUST, True)]
# On each of two findings and on the task as a whole: no conflict, one that ships, one that holds.
EFFECTS = [None, "ship", "hold"]


def by_hand(raised: dict[int, tuple[bool, bool] | None], effects: dict[int | None, str | None]) -> str:
    """The outcome as a person would find it, from the top of the rules down."""
    if "hold" in effects.values():
        return "hold"
    for key, finding in raised.items():
        if finding == (MUST, False) and effects[key] is None:
            return "revise"
    return "ship" if "ship" in effects.values() else "pass"


@for_each("first", RAISED, ids=str)
@for_each("second", RAISED, ids=str)
@for_each(("on_first", "on_second", "on_task"), list(product(EFFECTS, repeat=3)), ids=str)
def test_every_combination_leads_where_the_rules_say(
    first: tuple[bool, bool] | None,
    second: tuple[bool, bool] | None,
    on_first: str | None,
    on_second: str | None,
    on_task: str | None,
) -> None:
    raised = {1: first, 2: second}
    effects = {1: on_first, 2: on_second, None: on_task}
    points = [Point(key, *finding) for key, finding in raised.items() if finding]
    conflicts = [OpenConflict(finding, effect) for finding, effect in effects.items() if effect]

    assert gate(points, conflicts) == by_hand(raised, effects)


# --- What always holds ------------------------------------------------------------------------------------


@given(st.lists(POINTS), st.lists(CONFLICTS))
def test_an_open_conflict_that_holds_goes_before_everything(
    points: list[Point], conflicts: list[OpenConflict]
) -> None:
    holds = any(conflict.effect == "hold" for conflict in conflicts)

    assert (gate(points, conflicts) is Outcome.HOLD) is holds


@given(st.lists(POINTS), st.lists(LETTING), POINTS)
def test_a_mandatory_point_outside_of_every_conflict_never_passes(
    points: list[Point], conflicts: list[OpenConflict], point: Point
) -> None:
    blocker = must(5)
    around = [*points, blocker, point]

    assert gate(around, conflicts) is Outcome.REVISE


@given(st.lists(POINTS), st.lists(CONFLICTS))
def test_a_revision_names_a_point_to_revise(points: list[Point], conflicts: list[OpenConflict]) -> None:
    outcome = gate(points, conflicts)
    disputed = {conflict.finding for conflict in conflicts}
    blockers = [p for p in points if p.mandatory and not p.settled and p.key not in disputed]

    assert outcome is not Outcome.REVISE or blockers
    assert outcome not in {Outcome.PASS, Outcome.SHIP} or not blockers


@given(st.lists(POINTS))
def test_without_a_conflict_nothing_holds_or_ships(points: list[Point]) -> None:
    assert gate(points, []) in {Outcome.PASS, Outcome.REVISE}


@given(st.lists(POINTS), st.lists(CONFLICTS, min_size=1))
def test_with_a_conflict_open_that_waits_nothing_simply_passes(
    points: list[Point], conflicts: list[OpenConflict]
) -> None:
    waiting = [conflict for conflict in conflicts if conflict.effect != "log"]

    assert not waiting or gate(points, conflicts) is not Outcome.PASS


@given(st.lists(POINTS), st.lists(CONFLICTS), st.randoms())
def test_the_order_does_not_matter(
    points: list[Point], conflicts: list[OpenConflict], random: object
) -> None:
    shuffled_points, shuffled_conflicts = list(points), list(conflicts)
    random.shuffle(shuffled_points)  # type: ignore[attr-defined]
    random.shuffle(shuffled_conflicts)  # type: ignore[attr-defined]

    assert gate(shuffled_points, shuffled_conflicts) is gate(points, conflicts)


@given(st.lists(POINTS), st.lists(CONFLICTS))
def test_saying_it_twice_changes_nothing(points: list[Point], conflicts: list[OpenConflict]) -> None:
    assert gate(points * 2, conflicts * 2) is gate(points, conflicts)


@given(st.lists(POINTS), st.lists(CONFLICTS), st.integers(1, 4))
def test_an_optional_point_never_matters(
    points: list[Point], conflicts: list[OpenConflict], key: int
) -> None:
    assert gate([*points, may(key)], conflicts) is gate(points, conflicts)


@given(st.lists(POINTS), st.lists(CONFLICTS), st.integers(1, 4))
def test_a_settled_point_never_matters(points: list[Point], conflicts: list[OpenConflict], key: int) -> None:
    assert gate([*points, must(key, settled=True)], conflicts) is gate(points, conflicts)


@given(st.lists(POINTS), st.lists(CONFLICTS), LETTING)
def test_one_more_conflict_that_lets_pass_never_asks_for_a_revision(
    points: list[Point], conflicts: list[OpenConflict], one_more: OpenConflict
) -> None:
    before, after = gate(points, conflicts), gate(points, [*conflicts, one_more])

    assert before is Outcome.REVISE or after is not Outcome.REVISE


@given(st.lists(POINTS), st.lists(CONFLICTS))
def test_the_gate_reads_any_iterable_once(points: list[Point], conflicts: list[OpenConflict]) -> None:
    assert gate(iter(points), iter(conflicts)) is gate(points, conflicts)


def test_the_outcomes_are_four_words() -> None:
    assert [outcome.value for outcome in Outcome] == ["pass", "revise", "hold", "ship"]

"""The gate: where a task goes after a review or a ruling, for every combination of findings and conflicts."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.rulings.gate import OpenConflict, Outcome, gate
from tests.cases import for_each

KEYS = st.lists(st.integers(1, 4))
FINDINGS = st.none() | st.integers(1, 4)
CONFLICTS = st.lists(
    st.builds(OpenConflict, finding=FINDINGS, effect=st.sampled_from(["hold", "ship", "log"]))
)
LETTING = st.builds(OpenConflict, finding=FINDINGS, effect=st.sampled_from(["ship", "log"]))


def hold(finding: int | None = None) -> OpenConflict:
    return OpenConflict(finding, "hold")


def ship(finding: int | None = None) -> OpenConflict:
    return OpenConflict(finding, "ship")


def log(finding: int | None = None) -> OpenConflict:
    return OpenConflict(finding, "log")


@for_each(
    ("mandatory", "conflicts", "outcome"),
    [
        ([], [], "pass"),  # an approval, or only remarks (ARB-1: what is optional never blocks)
        ([1], [], "revise"),  # ARB-3: no approval while a mandatory finding stands
        ([1, 2], [], "revise"),
        ([], [hold()], "hold"),  # the whole task is disputed
        ([], [hold(1)], "hold"),  # the review did not repeat the finding; the conflict is open all the same
        ([], [ship()], "ship"),  # a question about the task that lets the commit go on
        ([], [ship(1)], "ship"),  # the finding is not repeated, its conflict waits
        ([1], [ship(1)], "ship"),  # the conflict takes the blocker away
        ([1], [log(1), ship(2)], "ship"),  # so does one that is only recorded
        ([1], [ship(2)], "revise"),  # a conflict on another finding does not
        ([1], [ship(None)], "revise"),  # nor does one on the whole task
        ([1, 2], [ship(1)], "revise"),  # one blocker is left
        ([1, 2], [ship(1), ship(2)], "ship"),  # none is left
        ([1], [hold(1)], "hold"),  # DEC-7: no acceptance with an undecided conflict that holds
        ([1], [hold(2)], "hold"),  # before the revision that would be due otherwise
        ([1], [hold(None), ship(1)], "hold"),  # before the shipping
        ([1], [ship(1), hold(1)], "hold"),  # two on one finding: the stricter one
        ([1, 1], [], "revise"),  # raised twice
        ([1, 1], [ship(1)], "ship"),  # one conflict covers both
        ([], [log()], "pass"),  # nothing waits for a conflict that is only recorded
        ([1], [log(1)], "pass"),  # it takes its blocker away and asks for nothing more
    ],
    ids=str,
)
def test_the_gate_leads_there(mandatory: list[int], conflicts: list[OpenConflict], outcome: str) -> None:
    assert gate(mandatory, conflicts) is Outcome(outcome)


# On each of two findings and on the task as a whole: no conflict, one that ships, one that holds.
EFFECTS = [None, "ship", "hold"]


def by_hand(mandatory: list[int], effects: dict[int | None, str | None]) -> str:
    """The outcome as a person would find it, from the top of the rules down."""
    if "hold" in effects.values():
        return "hold"
    if any(effects[key] is None for key in mandatory):
        return "revise"
    return "ship" if "ship" in effects.values() else "pass"


@for_each("mandatory", [[], [1], [2], [1, 2]], ids=str)
@for_each(("on_first", "on_second", "on_task"), list(product(EFFECTS, repeat=3)), ids=str)
def test_every_combination_leads_where_the_rules_say(
    mandatory: list[int], on_first: str | None, on_second: str | None, on_task: str | None
) -> None:
    effects = {1: on_first, 2: on_second, None: on_task}
    conflicts = [OpenConflict(finding, effect) for finding, effect in effects.items() if effect]

    assert gate(mandatory, conflicts) == by_hand(mandatory, effects)


@given(KEYS, CONFLICTS)
def test_what_always_holds(mandatory: list[int], conflicts: list[OpenConflict]) -> None:
    outcome = gate(mandatory, conflicts)
    blockers = {*mandatory} - {conflict.finding for conflict in conflicts}

    assert (outcome is Outcome.HOLD) is any(conflict.effect == "hold" for conflict in conflicts)
    assert outcome is Outcome.HOLD or (outcome is Outcome.REVISE) is bool(blockers)
    assert outcome is not Outcome.PASS or all(conflict.effect == "log" for conflict in conflicts)


@given(KEYS, CONFLICTS, LETTING)
def test_one_more_conflict_that_lets_pass_never_asks_for_a_revision(
    mandatory: list[int], conflicts: list[OpenConflict], one_more: OpenConflict
) -> None:
    before, after = gate(mandatory, conflicts), gate(mandatory, [*conflicts, one_more])

    assert before is Outcome.REVISE or after is not Outcome.REVISE


@given(KEYS, CONFLICTS)
def test_order_and_repetition_change_nothing(mandatory: list[int], conflicts: list[OpenConflict]) -> None:
    twice = gate(iter([*reversed(mandatory), *mandatory]), iter([*reversed(conflicts), *conflicts]))

    assert twice is gate(mandatory, conflicts)

"""When work may end, and as what: limits, gates, and the procedure END-1 to END-7 with its one answer."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.completion.acknowledgement import (
    DEMANDS,
    Acknowledgement,
    Gate,
    Leftover,
    gate_of,
    gates_for,
    refusals,
)
from disputes.protocol.completion.convergence import State
from disputes.protocol.completion.termination import (
    Ask,
    Exit,
    Gap,
    Next,
    Result,
    Standing,
    decide,
    extended,
    is_complete,
    left_over,
    max_rounds,
)
from disputes.protocol.rounds.gaps import SETTLED, WEIGHTS, GapState
from tasks.configuration.policy import DEFAULTS
from tasks.configuration.schema import SettingsError
from tasks.states import Severity
from tests.cases import for_each

CRITICAL, HIGH, MEDIUM, LOW = Severity
G = GapState
CRITICAL_WORDS = "I accept CRITICAL points knowing the result may be unusable"
HIGH_WORDS = "I acknowledge"


def gap(severity: Severity | None, state: GapState = G.OPEN, code: str = "GAP-QA-001") -> Gap:
    return Gap(code, severity, state)


def parked(*severities: Severity | None) -> list[Gap]:
    return [gap(each, G.USER_DEFERRED, f"GAP-QA-{number:03}") for number, each in enumerate(severities)]


def conflict(severity: Severity | None, code: str = "ISSUE-R2-001") -> Leftover:
    return Leftover(code, severity)


def everything(gaps: Sequence[Gap], conflicts: Sequence[Leftover] = ()) -> Acknowledgement:
    """An acknowledgement that passes every gate for these."""
    codes = [each.code for each in [*gaps, *conflicts]]
    return Acknowledgement(
        phrases={Gate.CRITICAL: CRITICAL_WORDS, Gate.HIGH: HIGH_WORDS},
        rationales=dict.fromkeys(codes, "We can live with it."),
        confirmed=frozenset(codes),
    )


# --- Limits -----------------------------------------------------------------------------------------------


@for_each(
    ("gaps", "limit"),
    [(0, 10), (1, 10), (16, 10), (17, 11), (25, 15), (50, 30), (83, 50), (84, 50), (999, 50)],
)
def test_vector_8_the_limit_of_rounds_follows_from_the_first_gaps(gaps: int, limit: int) -> None:
    assert max_rounds(gaps) == limit


@given(st.integers(0, 1_600))
def test_the_limit_is_the_ceiling_of_six_tenths(gaps: int) -> None:
    exact = next(n for n in range(gaps + 1) if 10 * n >= 6 * gaps)

    assert max_rounds(gaps, replace(DEFAULTS, hard_limit=1_000)) == max(10, exact)


def test_a_project_may_set_its_limit_but_not_beyond_the_hard_one() -> None:
    assert max_rounds(50, replace(DEFAULTS, max_rounds=4)) == 4
    with pytest.raises(SettingsError, match="at most hard_limit, 50"):
        replace(DEFAULTS, max_rounds=60)


@for_each(("limit", "after"), [(10, 15), (45, 50), (48, 50)])
def test_an_extension_adds_five_and_stops_at_the_hard_limit(limit: int, after: int) -> None:
    assert extended(limit) == after


def test_beyond_the_hard_limit_nobody_extends() -> None:
    with pytest.raises(ValueError, match="50 are the most"):
        extended(50)


# --- Acknowledgements -------------------------------------------------------------------------------------


def test_the_phrases_are_these_letter_by_letter() -> None:
    assert DEMANDS[Gate.CRITICAL].phrase == CRITICAL_WORDS
    assert DEMANDS[Gate.HIGH].phrase == HIGH_WORDS


@for_each(
    ("typed", "passes"),
    [
        ("I acknowledge", True),
        ("  I acknowledge \n", True),
        ("i acknowledge ", False),
        ("I ACKNOWLEDGE", False),
        ("I acknowledge.", False),
        ("I  acknowledge", False),
        ("yes", False),
        ("", False),
        (CRITICAL_WORDS, False),
    ],
)
def test_vector_14_a_phrase_is_trimmed_and_compared_with_its_capitals(typed: str, passes: bool) -> None:
    left = [Leftover("GAP-QA-001", HIGH)]
    acknowledgement = Acknowledgement({Gate.HIGH: typed}, {"GAP-QA-001": "Nobody uses it."})

    assert (refusals(left, acknowledgement) == ()) is passes


@for_each(
    ("severity", "gate"),
    [
        (CRITICAL, Gate.CRITICAL),
        (HIGH, Gate.HIGH),
        (MEDIUM, Gate.LIMITATIONS),
        (LOW, Gate.LIMITATIONS),
        (None, Gate.LIMITATIONS),
    ],
)
def test_a_severity_has_its_gate(severity: Severity | None, gate: Gate) -> None:
    assert gate_of(severity) is gate


def test_a_rationale_is_asked_for_each_grave_gap() -> None:
    left = [Leftover("GAP-QA-001", HIGH), Leftover("GAP-QA-002", HIGH)]
    typed = Acknowledgement({Gate.HIGH: HIGH_WORDS}, {"GAP-QA-001": "Nobody uses it.", "GAP-QA-002": " "})
    (refusal,) = refusals(left, typed)

    assert (refusal.gate, refusal.codes) == (Gate.HIGH, ("GAP-QA-002",))


def test_both_phrases_are_asked_where_both_are_left() -> None:
    # T6: both if both
    left = [Leftover("GAP-QA-001", HIGH), Leftover("GAP-QA-002", CRITICAL)]
    typed = Acknowledgement({Gate.HIGH: HIGH_WORDS}, {"GAP-QA-001": "x", "GAP-QA-002": "x"})

    assert gates_for(left) == (Gate.CRITICAL, Gate.HIGH)
    assert [refusal.gate for refusal in refusals(left, typed)] == [Gate.CRITICAL]


def test_a_list_that_has_grown_since_it_was_shown_is_confirmed_again() -> None:
    left = [Leftover("GAP-QA-001", MEDIUM), Leftover("GAP-QA-002", None)]
    (refusal,) = refusals(left, Acknowledgement(confirmed=frozenset({"GAP-QA-001"})))

    assert (refusal.gate, refusal.codes) == (Gate.LIMITATIONS, ("GAP-QA-002",))


def test_where_nothing_is_left_nothing_is_asked() -> None:
    assert gates_for([]) == ()
    assert refusals([], Acknowledgement()) == ()


LEFT = st.lists(
    st.builds(Leftover, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from([*Severity, None])), max_size=6
)


@given(LEFT, st.builds(Leftover, st.sampled_from(["e", "f"]), st.sampled_from([*Severity, None])))
def test_one_more_thing_left_never_opens_a_gate(left: list[Leftover], more: Leftover) -> None:
    typed = Acknowledgement({Gate.HIGH: HIGH_WORDS}, {"a": "x", "e": "x"}, frozenset({"b", "f"}))

    assert len(refusals([*left, more], typed)) >= len(refusals(left, typed))


# --- Completeness -----------------------------------------------------------------------------------------


def test_vector_9_two_medium_ones_deferred_are_within_the_limit() -> None:
    gaps = [gap(HIGH, G.RESOLVED, "GAP-QA-100"), *parked(MEDIUM, MEDIUM)]

    assert decide(Standing(gaps, ready=True)).exit is Exit.COMPLETE


def test_vector_10_a_weight_of_five_is_not_complete_but_good_enough_on_request() -> None:
    gaps = parked(MEDIUM, MEDIUM, LOW)
    asked = Standing(gaps, ready=True, asked=Ask.STOP, acknowledgement=everything(gaps))

    assert decide(Standing(gaps, ready=True)).next is Next.CONTINUE
    assert decide(asked).exit is Exit.GOOD_ENOUGH


@for_each(
    ("gaps", "complete"),
    [
        ([], True),
        ([gap(CRITICAL, G.RESOLVED)], True),
        ([gap(CRITICAL, G.ACCEPTED)], True),
        ([gap(CRITICAL, G.WONT_FIX), gap(HIGH, G.SUPERSEDED)], True),
        (parked(MEDIUM, LOW, LOW), True),
        (parked(None, None), True),  # SEV-9: weighs as medium
        (parked(None, None, LOW), False),
        (parked(HIGH), False),  # although its weight is 4
        (parked(CRITICAL), False),
        ([gap(LOW)], False),
        ([gap(LOW, G.BLOCKED_EXTERNAL)], False),
        ([gap(LOW, G.BLOCKED)], False),
    ],
)
def test_what_is_complete(gaps: list[Gap], complete: bool) -> None:
    assert is_complete(gaps) is complete


def test_the_weight_of_what_is_deferred_is_a_setting() -> None:
    assert is_complete(parked(MEDIUM, MEDIUM, LOW), replace(DEFAULTS, complete_deferred_weight_max=5))
    assert not is_complete(parked(LOW), replace(DEFAULTS, complete_deferred_weight_max=0))


# --- The procedure ----------------------------------------------------------------------------------------

DONE = [gap(HIGH, G.RESOLVED)]
OPEN = [gap(MEDIUM)]


def test_vector_11_done_in_the_last_round_is_complete_and_not_the_limit() -> None:
    assert decide(Standing(DONE, rounds=10, max_rounds=10, ready=True)).exit is Exit.COMPLETE


def test_vector_12_with_a_high_conflict_a_stop_needs_an_acknowledgement() -> None:
    conflicts = [conflict(HIGH)]
    asked = Standing(OPEN, conflicts, asked=Ask.STOP)
    refused = decide(asked)
    allowed = decide(replace(asked, acknowledgement=everything(OPEN, conflicts)))

    assert refused.next is Next.GATES
    assert [each.gate for each in refused.refusals] == [Gate.HIGH, Gate.HIGH, Gate.LIMITATIONS]
    assert allowed.exit is Exit.USER_APPROVED


def test_vector_13_with_a_critical_conflict_only_abandoning_is_left() -> None:
    standing = Standing(
        OPEN, [conflict(CRITICAL)], convergence=State.DIVERGENCE_WARNING, asked=Ask.FORCE_COMPLETE,
        acknowledgement=everything(OPEN, [conflict(CRITICAL)]),
    )  # fmt: skip

    assert decide(standing).next is Next.CONFLICTS
    assert decide(replace(standing, asked=Ask.ABANDON)).exit is Exit.ABANDONED


def test_vector_14_high_left_and_the_phrase_in_small_letters() -> None:
    gaps = [gap(HIGH)]
    typed = replace(everything(gaps), phrases={Gate.HIGH: "i acknowledge "})
    standing = Standing(gaps, asked=Ask.STOP, acknowledgement=typed)

    assert decide(standing).next is Next.GATES
    assert decide(replace(standing, acknowledgement=everything(gaps))).exit is Exit.USER_APPROVED


WARNING = State.DIVERGENCE_WARNING


@for_each(
    ("standing", "step", "following"),
    [
        (Standing(OPEN, asked=Ask.ABANDON), "END-1", Next.END),
        (Standing(DONE, [conflict(CRITICAL)], ready=True), "END-2", Next.CONFLICTS),
        (Standing(DONE, [conflict(HIGH)], ready=True), "END-3", Next.CONFLICTS),
        (Standing(DONE, [conflict(MEDIUM), conflict(LOW), conflict(None)], ready=True), "END-3", Next.END),
        (Standing(DONE), "END-3", Next.FINAL_REVIEW),
        (Standing(DONE, ready=False), "END-3", Next.CONTINUE),
        (Standing(DONE, ready=True), "END-3", Next.END),
        (Standing(DONE, asked=Ask.STOP), "END-3", Next.FINAL_REVIEW),  # nothing is left: no gate to pass
        (Standing(DONE, [conflict(HIGH)], asked=Ask.STOP), "END-7", Next.GATES),
        (Standing(DONE, [conflict(HIGH)], asked=Ask.ACCEPT), "END-3", Next.CONFLICTS),  # no limit was reached
        (Standing(OPEN, rounds=10), "END-4", Next.MAX_ROUNDS),
        (Standing(OPEN, rounds=11), "END-4", Next.MAX_ROUNDS),
        (Standing(OPEN, rounds=10, convergence=WARNING), "END-4", Next.MAX_ROUNDS),
        (Standing(OPEN, rounds=10, asked=Ask.STOP), "END-4", Next.MAX_ROUNDS),
        (Standing(OPEN, rounds=10, asked=Ask.ACCEPT), "END-7", Next.GATES),
        (Standing(OPEN, rounds=9, asked=Ask.ACCEPT), "END-6", Next.CONTINUE),
        (Standing(OPEN, convergence=WARNING), "END-5", Next.DIVERGENCE),
        (Standing(OPEN, convergence=WARNING, asked=Ask.STOP), "END-5", Next.DIVERGENCE),
        (Standing(OPEN, convergence=WARNING, asked=Ask.FORCE_COMPLETE), "END-7", Next.GATES),
        (Standing(OPEN, asked=Ask.FORCE_COMPLETE), "END-6", Next.CONTINUE),
        (Standing(OPEN), "END-6", Next.CONTINUE),
        (Standing(OPEN, [conflict(HIGH)]), "END-6", Next.CONTINUE),
        (Standing(OPEN, asked=Ask.STOP), "END-7", Next.GATES),
    ],
)
def test_the_procedure_step_by_step(standing: Standing, step: str, following: Next) -> None:
    result = decide(standing)

    assert (result.step, result.next) == (step, following)


@for_each(
    ("gaps", "conflicts", "asked", "exit_type"),
    [
        ([gap(LOW)], [], Ask.STOP, Exit.GOOD_ENOUGH),
        ([gap(None)], [], Ask.STOP, Exit.GOOD_ENOUGH),
        ([gap(MEDIUM), gap(LOW, G.PROPOSED, "GAP-QA-002")], [], Ask.STOP, Exit.GOOD_ENOUGH),
        ([gap(HIGH)], [], Ask.STOP, Exit.USER_APPROVED),
        ([gap(CRITICAL)], [], Ask.STOP, Exit.USER_APPROVED),
        (parked(HIGH), [], Ask.STOP, Exit.USER_APPROVED),  # deferred counts as left
        ([gap(LOW)], [conflict(HIGH)], Ask.STOP, Exit.USER_APPROVED),
        ([gap(LOW)], [conflict(MEDIUM)], Ask.STOP, Exit.GOOD_ENOUGH),
        (DONE, [conflict(HIGH)], Ask.STOP, Exit.USER_APPROVED),
        ([gap(LOW)], [], Ask.ACCEPT, Exit.GOOD_ENOUGH),
        ([gap(HIGH)], [], Ask.ACCEPT, Exit.USER_APPROVED),
        ([gap(LOW)], [], Ask.FORCE_COMPLETE, Exit.STALL_EXIT),
        ([gap(CRITICAL)], [], Ask.FORCE_COMPLETE, Exit.STALL_EXIT),
        (DONE, [conflict(HIGH)], Ask.FORCE_COMPLETE, Exit.STALL_EXIT),
    ],
)
def test_what_is_left_gives_the_end_its_type(
    gaps: list[Gap], conflicts: list[Leftover], asked: Ask, exit_type: Exit
) -> None:
    # T6
    standing = Standing(
        gaps, conflicts, rounds=10 if asked is Ask.ACCEPT else 3,
        convergence=WARNING if asked is Ask.FORCE_COMPLETE else State.CONVERGING, asked=asked,
        acknowledgement=everything(gaps, conflicts),
    )  # fmt: skip

    assert decide(standing).exit is exit_type


def test_the_gates_name_what_is_left() -> None:
    gaps = [gap(HIGH), gap(LOW, G.RESOLVED, "GAP-QA-002"), *parked(LOW)]
    conflicts = [conflict(HIGH), conflict(LOW, "ISSUE-R2-009")]

    assert [left.code for left in left_over(Standing(gaps, conflicts))] == [
        "GAP-QA-001", "GAP-QA-000", "ISSUE-R2-001"
    ]  # fmt: skip


# --- Properties -------------------------------------------------------------------------------------------

CODES = st.sampled_from(["a", "b", "c", "d", "e"])
SEVERITY = st.sampled_from([*Severity, None])
STATES = st.sampled_from(list(GapState))
WORKED_ON = [state for state, weight in WEIGHTS.items() if weight == 1]
GAPS = st.lists(st.builds(Gap, CODES, SEVERITY, STATES), max_size=5, unique_by=lambda each: each.code)
CONFLICTS = st.lists(
    st.builds(Leftover, st.sampled_from(["x", "y", "z"]), SEVERITY),
    max_size=3,
    unique_by=lambda each: each.code,
)
PHRASES = st.fixed_dictionaries(
    {},
    optional={
        Gate.CRITICAL: st.sampled_from([CRITICAL_WORDS, "yes"]),
        Gate.HIGH: st.sampled_from([HIGH_WORDS, "i acknowledge"]),
    },
)
TYPED = st.builds(
    Acknowledgement,
    phrases=PHRASES,
    rationales=st.dictionaries(st.sampled_from("abcdefxyz"), st.sampled_from(["because", " "])),
    confirmed=st.frozensets(st.sampled_from("abcdexyz")),
)
STANDINGS = st.builds(
    Standing,
    gaps=GAPS,
    conflicts=CONFLICTS,
    rounds=st.integers(0, 12),
    max_rounds=st.sampled_from([5, 10, 50]),
    convergence=st.sampled_from([State.CONVERGING, State.FLAT, State.DIVERGENCE_WARNING]),
    ready=st.none() | st.booleans(),
    asked=st.sampled_from(list(Ask)),
    acknowledgement=TYPED,
)


@given(STANDINGS)
def test_there_is_exactly_one_answer(standing: Standing) -> None:
    result = decide(standing)

    assert (result.exit is not None) is (result.next is Next.END)
    assert bool(result.refusals) is (result.next is Next.GATES)
    assert bool(result.conflicts) is (result.next is Next.CONFLICTS)
    assert result.exit is not Exit.MAX_ROUNDS
    assert result.step in {f"END-{number}" for number in range(1, 8)}
    assert decide(standing) == result


@given(STANDINGS)
def test_it_is_never_complete_with_an_open_gap(standing: Standing) -> None:
    if decide(standing).exit is Exit.COMPLETE:
        assert not any(each.state in WORKED_ON for each in standing.gaps)
        assert all(each.severity not in {CRITICAL, HIGH} or each.state in SETTLED for each in standing.gaps)
        assert not any(each.severity in {CRITICAL, HIGH} for each in standing.conflicts)
        assert standing.ready


@given(STANDINGS)
def test_nothing_ends_unasked_but_what_is_complete(standing: Standing) -> None:
    result = decide(replace(standing, asked=Ask.NOTHING))

    assert result.next is not Next.END or result.exit is Exit.COMPLETE


@given(STANDINGS)
def test_good_enough_leaves_nothing_grave(standing: Standing) -> None:
    result = decide(standing)

    assert result.exit is not Exit.GOOD_ENOUGH or not any(
        each.severity in {CRITICAL, HIGH} for each in result.left
    )


@given(STANDINGS)
def test_an_early_end_has_passed_every_gate(standing: Standing) -> None:
    result = decide(standing)

    if result.exit in {Exit.GOOD_ENOUGH, Exit.USER_APPROVED, Exit.STALL_EXIT}:
        assert refusals(left_over(standing), standing.acknowledgement) == ()


@given(STANDINGS)
def test_a_critical_conflict_leaves_only_abandoning(standing: Standing) -> None:
    result = decide(replace(standing, conflicts=[*standing.conflicts, conflict(CRITICAL, "w")]))

    assert result.next is Next.CONFLICTS or result.exit is Exit.ABANDONED


@given(STANDINGS)
def test_abandoning_is_always_possible(standing: Standing) -> None:
    assert decide(replace(standing, asked=Ask.ABANDON)).exit is Exit.ABANDONED


EASE = [Exit.COMPLETE, Exit.GOOD_ENOUGH, Exit.USER_APPROVED, Exit.STALL_EXIT, None]


def ease(result: Result) -> int:
    return EASE.index(result.exit)


@given(STANDINGS, st.builds(Gap, st.sampled_from(["f", "g"]), SEVERITY, st.sampled_from(WORKED_ON)))
def test_one_more_open_gap_never_makes_an_end_easier(standing: Standing, more: Gap) -> None:
    standing = replace(
        standing, asked=Ask.STOP, rounds=0, convergence=State.CONVERGING, ready=True, conflicts=()
    )
    before, after = decide(standing), decide(replace(standing, gaps=[*standing.gaps, more]))

    if before.exit is not Exit.COMPLETE:  # what was complete asks for a review instead of gates
        assert ease(after) >= ease(before)
    assert after.exit is not Exit.COMPLETE


@given(STANDINGS, st.sampled_from([CRITICAL, HIGH]), st.sampled_from(sorted(set(GapState) - SETTLED)))
def test_with_a_grave_gap_left_only_a_person_who_says_so_ends_it(
    standing: Standing, severity: Severity, state: GapState
) -> None:
    result = decide(replace(standing, gaps=[*standing.gaps, Gap("f", severity, state)]))

    assert result.exit in {None, Exit.USER_APPROVED, Exit.STALL_EXIT, Exit.ABANDONED}
    assert result.exit in {None, Exit.ABANDONED} or "f" in standing.acknowledgement.rationales

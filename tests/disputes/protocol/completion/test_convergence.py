"""Convergence and stall: every condition at its border."""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.completion.convergence import (
    ConvergenceSettings,
    RoundResult,
    State,
    after_round,
    preset,
    said,
)
from tasks.states import Severity
from tests.cases import for_each
from tests.disputes.protocol.completion.round_results import history

CRITICAL, HIGH, MEDIUM, LOW = Severity
CONVERGING, FLAT, WARNING = State.CONVERGING, State.FLAT, State.DIVERGENCE_WARNING
SEVERITIES = st.lists(st.sampled_from([*Severity, None]), max_size=8)
MILD = st.lists(st.sampled_from([HIGH, MEDIUM, LOW, None]), max_size=8)
SETTINGS = st.builds(
    ConvergenceSettings,
    stall_threshold=st.integers(1, 5),
    divergence_threshold=st.integers(0, 20),
    critical_override=st.booleans(),
)

# --- The vectors ------------------------------------------------------------------------------------------


def test_vector_1_a_new_critical_gap_is_a_warning() -> None:
    # CONV-1
    result = after_round([HIGH, MEDIUM], [CRITICAL])

    assert (result.weighted_net, result.state, result.rule) == (-10, WARNING, "CONV-1")


def test_vector_2_minus_eight_with_threshold_eight_is_flat() -> None:
    result = after_round([], [HIGH, HIGH])

    assert (result.weighted_net, result.state, result.flat) == (-8, FLAT, 1)


def test_vector_3_minus_nine_is_divergence() -> None:
    # CONV-2
    result = after_round([], [HIGH, HIGH, LOW])

    assert (result.weighted_net, result.state, result.rule) == (-9, WARNING, "CONV-2")


def test_vector_4_two_flat_rounds_are_a_stall() -> None:
    # CONV-4
    first, second = history([([LOW], [LOW]), ([], [LOW])])

    assert (first.state, first.flat, first.stalled) == (FLAT, 1, False)
    assert (second.state, second.flat, second.stalled) == (WARNING, 2, True)


def test_a_round_that_says_nothing_counts_neither_way() -> None:
    quiet = after_round([], [], 1, is_counted=False)

    assert (quiet.state, quiet.flat, quiet.stalled) == (FLAT, 1, False)
    assert after_round([LOW], [], 1, is_counted=False).state is CONVERGING
    assert after_round([], [CRITICAL], 1, is_counted=False).state is WARNING


def test_vector_5_progress_begins_the_count_anew() -> None:
    results = history([([], []), ([LOW], []), ([], [])])

    assert [(each.state, each.flat) for each in results] == [(FLAT, 1), (CONVERGING, 0), (FLAT, 1)]


def test_vector_6_both_figures_are_shown_where_they_disagree() -> None:
    result = after_round([LOW] * 5, [CRITICAL])

    assert (result.net, result.weighted_net, result.state) == (4, -11, WARNING)
    assert result.disagree
    assert "-11" in said(result)
    assert "+4" in said(result)


# --- The conditions ---------------------------------------------------------------------------------------


@for_each(
    ("resolved", "new", "flat", "settings", "state", "rule", "after"),
    [
        ([LOW], [], 0, {}, CONVERGING, "CONV-3", 0),
        ([LOW], [], 1, {}, CONVERGING, "CONV-3", 0),
        ([], [], 0, {}, FLAT, "CONV-4", 1),
        ([MEDIUM], [None], 0, {}, FLAT, "CONV-4", 1),  # SEV-9: a severity nobody stated weighs as medium
        ([], [], 0, {"stall_threshold": 1}, WARNING, "CONV-4", 1),
        ([], [], 1, {"stall_threshold": 3}, FLAT, "CONV-4", 2),
        ([], [], 2, {"stall_threshold": 3}, WARNING, "CONV-4", 3),
        ([], [], 9, {}, WARNING, "CONV-4", 10),
        ([CRITICAL, LOW], [CRITICAL], 0, {}, WARNING, "CONV-1", 0),  # although it converges by weight
        ([CRITICAL, LOW], [CRITICAL], 0, {"critical_override": False}, CONVERGING, "CONV-3", 0),
        ([], [CRITICAL], 1, {"critical_override": False}, WARNING, "CONV-2", 1),
        ([], [HIGH, HIGH, LOW], 1, {"divergence_threshold": 12}, WARNING, "CONV-4", 2),
        ([], [HIGH, HIGH, LOW], 0, {"divergence_threshold": 12}, FLAT, "CONV-4", 1),
        ([], [LOW], 0, {"divergence_threshold": 0}, WARNING, "CONV-2", 0),
        (
            [LOW],
            [HIGH],
            0,
            {"severity_weights": {CRITICAL: 1, HIGH: 1, MEDIUM: 1, LOW: 1}},
            FLAT,
            "CONV-4",
            1,
        ),
    ],
)
def test_a_round_leads_here(
    resolved: list[Severity | None],
    new: list[Severity | None],
    flat: int,
    settings: dict[str, int],
    state: State,
    rule: str,
    after: int,
) -> None:
    result = after_round(resolved, new, flat, ConvergenceSettings(**settings))  # type: ignore[arg-type]

    assert (result.state, result.rule, result.flat) == (state, rule, after)


@for_each(
    ("gaps", "stall", "divergence"),
    [(0, 2, 8), (1, 2, 8), (9, 2, 8), (10, 3, 12), (30, 3, 12), (31, 4, 16), (500, 4, 16)],
)
def test_a_larger_project_has_wider_thresholds(gaps: int, stall: int, divergence: int) -> None:
    suited = preset(gaps)

    assert (suited.stall_threshold, suited.divergence_threshold) == (stall, divergence)


def test_the_defaults_are_those_of_a_small_project() -> None:
    settings, suited = ConvergenceSettings(), preset(5)

    assert settings.stall_threshold == suited.stall_threshold
    assert settings.divergence_threshold == suited.divergence_threshold


@given(SEVERITIES, SEVERITIES, st.integers(0, 6), SETTINGS)
def test_every_round_rests_in_one_of_three_states(
    resolved: list[Severity | None], new: list[Severity | None], flat: int, settings: ConvergenceSettings
) -> None:
    # note b: STALLED is never where a project rests
    result = after_round(resolved, new, flat, settings)

    assert result.state in {CONVERGING, FLAT, WARNING}
    assert not result.stalled or result.state is WARNING
    assert result.flat in {0, flat, flat + 1}
    assert said(result, settings)


@given(SEVERITIES, MILD, st.integers(0, 6), SETTINGS, st.sampled_from(list(Severity)))
def test_one_more_resolved_gap_never_makes_it_worse(
    resolved: list[Severity | None],
    new: list[Severity | None],
    flat: int,
    settings: ConvergenceSettings,
    more: Severity,
) -> None:
    order = [CONVERGING, FLAT, WARNING]
    before = after_round(resolved, new, flat, settings)
    after = after_round([*resolved, more], new, flat, settings)

    assert after.weighted_net > before.weighted_net
    if before.rule != "CONV-2":  # out of divergence it may fall into a stall, which warns as well
        assert order.index(after.state) <= order.index(before.state)


@given(SEVERITIES, SEVERITIES, st.integers(0, 6), SETTINGS)
def test_a_new_critical_gap_warns_whatever_else_happened(
    resolved: list[Severity | None], new: list[Severity | None], flat: int, settings: ConvergenceSettings
) -> None:
    # C1
    result = after_round(resolved, [*new, CRITICAL], flat, settings)

    assert not settings.critical_override or (result.state, result.rule) == (WARNING, "CONV-1")


@given(st.lists(st.tuples(MILD, MILD), min_size=1, max_size=12))
def test_rounds_without_progress_stall_in_the_end(
    rounds: list[tuple[list[Severity], list[Severity]]],
) -> None:
    results = history([([], new) for _, new in rounds])

    assert all(each.state is WARNING for each in [each for each in results if each.rule == "CONV-4"][1:])
    assert not any(each.state is CONVERGING for each in results)


# --- What is said -----------------------------------------------------------------------------------------


@for_each(
    ("result", "line"),
    [
        (after_round([LOW], []), "Progress: weighted net +1."),
        (after_round([], []), "No progress, 1 of 2 towards stall: weighted net +0."),
        (after_round([], [], 1, is_counted=False), "Nothing is settled yet: weighted net +0."),
        (after_round([], [], 1), "Stalled for 2 rounds: weighted net +0."),
        (after_round([], [CRITICAL]), "A new critical gap came up: weighted net -16."),
        (after_round([], [HIGH] * 3), "More comes up than is settled: weighted net -12."),
        (after_round([CRITICAL], [LOW, LOW]), "Progress: weighted net +14, net -1."),
    ],
)
def test_a_round_is_told_in_one_line(result: RoundResult, line: str) -> None:
    assert said(result) == line

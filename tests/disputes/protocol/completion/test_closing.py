"""The final review before an end, and the summary after it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.completion.acknowledgement import Acknowledgement, Gate, Leftover
from disputes.protocol.completion.closing import (
    JUDGED,
    Check,
    Limitation,
    LimitationKind,
    blockers,
    cycle_in,
    durations,
    matrix,
    summarise,
)
from disputes.protocol.completion.convergence import State
from disputes.protocol.completion.termination import Ask, Exit, Gap, Standing, decide
from disputes.protocol.rounds.gaps import GapState
from tasks.states import Severity
from tests.cases import for_each
from tests.disputes.protocol.completion.round_results import history

CRITICAL, HIGH, MEDIUM, LOW = Severity
G = GapState
GAPS_DONE = [
    Gap("GAP-QA-001", CRITICAL, G.RESOLVED),
    Gap("GAP-QA-002", HIGH, G.ACCEPTED),
    Gap("GAP-QA-003", LOW, G.USER_DEFERRED),
]
CONFIRMED = [check.name for check in JUDGED]

# --- The final review -------------------------------------------------------------------------------------


@for_each(
    ("facts", "found"),
    [
        ({}, ()),
        ({"gaps": [Gap("GAP-QA-009", CRITICAL, G.OPEN)]}, (f"{Check.CRITICAL_SETTLED}: GAP-QA-009",)),
        ({"gaps": [Gap("GAP-QA-009", HIGH, G.PROPOSED)]}, (f"{Check.HIGH_SETTLED}: GAP-QA-009",)),
        ({"gaps": [Gap("GAP-QA-009", HIGH, G.USER_DEFERRED)]}, (f"{Check.HIGH_SETTLED}: GAP-QA-009",)),
        ({"untreated": ["ISSUE-R3-002"]}, (f"{Check.ALL_ADDRESSED}: ISSUE-R3-002",)),
        ({"blocked_by": {"a": ["a"]}}, (f"{Check.NO_CYCLE}: a waits for a",)),
        ({"judged": []}, tuple(f"{check}: nobody confirmed it" for check in JUDGED)),
        ({"judged": CONFIRMED[1:]}, (f"{JUDGED[0]}: nobody confirmed it",)),
    ],
)
def test_the_final_review_names_each_check_that_fails(facts: dict[str, Any], found: tuple[str, ...]) -> None:
    ready = {"gaps": GAPS_DONE, "untreated": [], "blocked_by": {"b": ["a"]}, "judged": CONFIRMED}

    assert blockers(**ready | facts) == found


@for_each(
    ("blocked_by", "cycle"),
    [
        ({}, ()),
        ({"a": ["b"], "b": ["c"]}, ()),
        ({"a": ["a"]}, ("a", "a")),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ("b", "c", "b")),
    ],
)
def test_a_circle_of_dependencies_is_found(blocked_by: dict[str, list[str]], cycle: tuple[str, ...]) -> None:
    found = cycle_in(blocked_by)

    assert set(found) == set(cycle)
    assert all(after in blocked_by[before] for before, after in zip(found, found[1:], strict=False))


def test_a_long_chain_needs_no_recursion() -> None:
    chain = {str(number): [str(number + 1)] for number in range(5000)}

    assert cycle_in(chain) == ()
    assert len(cycle_in({**chain, "5000": ["0"]})) == 5002


# --- The summary ------------------------------------------------------------------------------------------

GAPS = [
    Gap("GAP-QA-001", HIGH, G.OPEN, "No limit"),
    Gap("GAP-QA-002", LOW, G.USER_DEFERRED, "A typo", reason="Next version."),
    Gap("GAP-QA-003", MEDIUM, G.RESOLVED),
    Gap("GAP-QA-004", None, G.RESOLVED),
]
TYPED = Acknowledgement(
    {Gate.HIGH: "I acknowledge"}, {"GAP-QA-001": "Nobody has 10,000 rows."}, frozenset({"GAP-QA-002"}),
    by="Vera", at="2026-01-12T10:00:00Z",
)  # fmt: skip
STANDING = Standing(
    GAPS, [Leftover("ISSUE-R2-001", LOW, "A name")], rounds=4, asked=Ask.STOP, acknowledgement=TYPED
)
ROUNDS = history([([LOW], [HIGH]), ([MEDIUM], [])])
SPENT = durations(0, 100, [(0, 20), (50, 80)])


def test_time_is_spent_at_work_or_waiting() -> None:
    # TIME-2
    assert (SPENT.session, SPENT.active, SPENT.waiting) == (100, 50, 50)


def test_gaps_are_counted_by_state_and_severity() -> None:
    counts = matrix(GAPS)

    assert counts[G.RESOLVED] == {CRITICAL: 0, HIGH: 0, MEDIUM: 2, LOW: 0}  # SEV-9
    assert counts[G.OPEN][HIGH] == 1


@given(st.lists(st.builds(Gap, st.just("a"), st.sampled_from([*Severity, None]), st.sampled_from(list(G)))))
def test_every_gap_is_counted_once(gaps: list[Gap]) -> None:
    assert sum(number for row in matrix(gaps).values() for number in row.values()) == len(gaps)


def test_the_summary_tells_how_it_ended() -> None:
    summary = summarise(decide(STANDING), STANDING, SPENT, ROUNDS)

    assert (summary.exit, summary.trigger, summary.rounds) == (
        Exit.USER_APPROVED, "a person asked to stop", 4
    )  # fmt: skip
    assert (summary.state, summary.weighted_net) == (State.CONVERGING, 2)
    assert [(each.net, each.weighted_net, each.state) for each in summary.history] == [
        (0, -3, State.FLAT), (1, 2, State.CONVERGING)
    ]  # fmt: skip


def test_the_known_limitations_say_why_and_who() -> None:
    summary = summarise(decide(STANDING), STANDING, SPENT, ROUNDS)
    who = {"by": "Vera", "at": "2026-01-12T10:00:00Z"}

    assert summary.limitations == (
        Limitation(
            "GAP-QA-001", HIGH, LimitationKind.ACKNOWLEDGED, "No limit", "Nobody has 10,000 rows.", **who
        ),
        Limitation("GAP-QA-002", LOW, LimitationKind.DEFERRED, "A typo", "Next version.", **who),
        Limitation("ISSUE-R2-001", LOW, LimitationKind.CONFLICT, "A name"),
    )


def test_what_was_parked_within_the_limits_is_a_limitation_too() -> None:
    standing = Standing([GAPS[1]], ready=True)
    (limitation,) = summarise(decide(standing), standing, SPENT, ROUNDS).limitations

    assert (limitation.kind, limitation.reason, limitation.by) == (
        LimitationKind.DEFERRED,
        "Next version.",
        "",
    )


def test_a_complete_project_ended_by_itself_whatever_was_asked() -> None:
    standing = Standing([GAPS[2]], ready=True, asked=Ask.STOP)

    assert summarise(decide(standing), standing, SPENT, ()).trigger == "everything is settled"


def test_the_summary_is_kept_as_json() -> None:
    told = json.loads(json.dumps(summarise(decide(STANDING), STANDING, SPENT, ROUNDS).to_json()))

    assert told["exit"] == "user_approved"
    assert told["durations"] == {"session": 100, "active": 50, "waiting": 50}
    assert told["matrix"]["OPEN"]["high"] == 1
    assert told["limitations"][0]["reason"] == "Nobody has 10,000 rows."
    assert told["history"][0]["weighted_net"] == -3


def test_what_is_no_end_has_no_summary() -> None:
    standing = replace(STANDING, asked=Ask.NOTHING)

    with pytest.raises(ValueError, match="no end"):
        summarise(decide(standing), standing, SPENT, ROUNDS)

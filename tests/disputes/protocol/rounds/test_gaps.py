"""Gaps: states, every move and its guard, what counts as open, and which gap a task is."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.reviews.review import Verdict, read_review
from disputes.protocol.reviews.severity import is_grave
from disputes.protocol.rounds.gaps import (
    MOVES,
    SETTLED,
    STATES,
    TERMINAL,
    WORKING,
    Actor,
    Blocker,
    Class,
    Confirmation,
    Facts,
    GapChange,
    GapState,
    IllegalMove,
    RoundCount,
    TaskFacts,
    count_round,
    gap_of,
    is_worrying,
    move,
    open_count,
    reviewed,
)
from tasks.states import Severity, Status
from tests.cases import for_each

G = GapState
ENGINEER, REVIEWER, USER, SYSTEM = Actor
CRITICAL, HIGH, MEDIUM, LOW = Severity
STATE = st.sampled_from(list(GapState))

# --- States -----------------------------------------------------------------------------------------------


@for_each(
    ("state", "kind", "weight"),
    [
        (G.OPEN, Class.WORKING, 1),
        (G.IN_PROGRESS, Class.WORKING, 1),
        (G.PROPOSED, Class.WORKING, 1),
        (G.NEEDS_REVISION, Class.WORKING, 1),
        (G.BLOCKED, Class.WORKING, 1),
        (G.USER_DEFERRED, Class.PARKED, 0.5),
        (G.BLOCKED_EXTERNAL, Class.PARKED, 0.25),
        (G.ACCEPTED, Class.CLOSED, 0),
        (G.RESOLVED, Class.TERMINAL, 0),
        (G.WONT_FIX, Class.TERMINAL, 0),
        (G.SUPERSEDED, Class.TERMINAL, 0),
    ],
)
def test_a_state_has_a_class_and_a_weight(state: GapState, kind: Class, weight: float) -> None:
    assert (STATES[state].kind, STATES[state].weight) == (kind, weight)


def test_every_state_has_a_meaning_and_is_in_one_set() -> None:
    parked = {state for state in G if STATES[state].kind is Class.PARKED}

    assert set(STATES) == set(G)
    assert WORKING | SETTLED | parked == set(G)
    assert not WORKING & SETTLED


# --- Moves ------------------------------------------------------------------------------------------------

READY = Facts(
    assigned=True, solution="Do it so.", signed_off=True, reason="Not now.", children=2,
    blocker=Blocker.DEPENDENCY, unblock_action="Settle GAP-QA-002.", unblocked=True,
    blocker_name="GAP-QA-002", acceptance="I accept the risk of GAP-QA-002.",
    confirmation=Confirmation.CONFIRMED,
)  # fmt: skip
GRAVE = replace(READY, grave_issues=1)

# rule, from, to, who, and facts with which it is allowed
ALLOWED = [
    ("L1", G.OPEN, G.IN_PROGRESS, ENGINEER, READY),
    ("L2", G.IN_PROGRESS, G.PROPOSED, ENGINEER, READY),
    ("L3", G.PROPOSED, G.NEEDS_REVISION, REVIEWER, GRAVE),
    ("L4", G.PROPOSED, G.ACCEPTED, REVIEWER, READY),
    ("L5", G.NEEDS_REVISION, G.PROPOSED, ENGINEER, READY),
    ("L6", G.OPEN, G.USER_DEFERRED, USER, READY),
    ("L6", G.IN_PROGRESS, G.USER_DEFERRED, USER, READY),
    ("L6", G.NEEDS_REVISION, G.USER_DEFERRED, USER, READY),
    ("L7", G.USER_DEFERRED, G.OPEN, USER, Facts()),
    *(("L8", state, G.WONT_FIX, USER, READY) for state in GapState if state not in TERMINAL),
    ("L9", G.ACCEPTED, G.RESOLVED, SYSTEM, READY),
    ("L10", G.OPEN, G.BLOCKED_EXTERNAL, ENGINEER, READY),
    ("L11", G.BLOCKED_EXTERNAL, G.OPEN, USER, Facts()),
    ("L12", G.BLOCKED_EXTERNAL, G.USER_DEFERRED, USER, READY),
    *(("L13", state, G.SUPERSEDED, USER, READY) for state in sorted(WORKING)),
    ("L14", G.IN_PROGRESS, G.BLOCKED, ENGINEER, READY),
    ("L14", G.IN_PROGRESS, G.BLOCKED, SYSTEM, READY),
    ("L14", G.NEEDS_REVISION, G.BLOCKED, ENGINEER, READY),
    ("L14", G.NEEDS_REVISION, G.BLOCKED, SYSTEM, READY),
    ("L15", G.BLOCKED, G.IN_PROGRESS, SYSTEM, READY),
    ("L16", G.BLOCKED, G.IN_PROGRESS, USER, READY),
]
EDGES = {(source, target, actor) for _, source, target, actor, _ in ALLOWED}
REFUSED = [
    (source, target, actor)
    for source in GapState
    for target in GapState
    for actor in Actor
    if (source, target, actor) not in EDGES
]


@for_each(("rule", "source", "target", "actor", "facts"), ALLOWED)
def test_a_move_of_the_table_is_made(
    rule: str, source: GapState, target: GapState, actor: Actor, facts: Facts
) -> None:
    assert move(source, target, actor, facts).rule == rule


@for_each(("source", "target", "actor"), REFUSED)
def test_everything_that_is_not_listed_is_refused(source: GapState, target: GapState, actor: Actor) -> None:
    with pytest.raises(IllegalMove, match=f"{actor} cannot take a gap from {source} to {target}"):
        move(source, target, actor, GRAVE if target is G.NEEDS_REVISION else READY)


def test_there_is_no_way_back_from_accepted_to_proposed() -> None:
    # drawn by mistake in one diagram
    assert not any(G.ACCEPTED in edge.sources and edge.target is G.PROPOSED for edge in MOVES)


def test_the_rules_are_numbered_as_they_stand() -> None:
    assert [edge.rule for edge in MOVES] == [f"L{number}" for number in range(1, 17)]
    assert all(edge.trigger for edge in MOVES)


def test_source_target_and_actor_name_one_rule() -> None:
    edges = [(s, edge.target, actor) for edge in MOVES for s in edge.sources for actor in edge.actors]

    assert len(edges) == len(set(edges))


@for_each(
    ("source", "target", "actor", "facts", "why"),
    [
        (G.OPEN, G.IN_PROGRESS, ENGINEER, replace(READY, assigned=False), "L1 .*not assigned"),
        (G.OPEN, G.IN_PROGRESS, ENGINEER, replace(READY, blocked=True), "L1 .*blocked"),
        (G.IN_PROGRESS, G.PROPOSED, ENGINEER, replace(READY, solution=" \n"), "L2 .*empty"),
        (G.PROPOSED, G.NEEDS_REVISION, REVIEWER, READY, "L3 .*no critical or high"),
        (G.PROPOSED, G.ACCEPTED, REVIEWER, GRAVE, "L4 .*stands"),
        (G.PROPOSED, G.ACCEPTED, REVIEWER, replace(READY, signed_off=False), "L4 .*sign"),
        (G.PROPOSED, G.ACCEPTED, REVIEWER, replace(READY, open_conflicts=1), "L4 .*undecided"),  # DEC-7
        (G.NEEDS_REVISION, G.PROPOSED, ENGINEER, replace(READY, open_issues=("ISSUE-R2-004",)), "R2-004"),
        (G.OPEN, G.USER_DEFERRED, USER, replace(READY, reason=" "), "L6 .*reason"),
        (G.PROPOSED, G.WONT_FIX, USER, replace(READY, reason=""), "L8 .*reason"),
        (G.ACCEPTED, G.RESOLVED, SYSTEM, replace(READY, confirmation=Confirmation.NONE), "L9 .*confirmed"),
        (G.OPEN, G.BLOCKED_EXTERNAL, ENGINEER, replace(READY, known=False), "L10 .*not known"),
        (G.OPEN, G.BLOCKED_EXTERNAL, ENGINEER, replace(READY, reason=""), "L10 .*reason"),
        (G.BLOCKED_EXTERNAL, G.USER_DEFERRED, USER, replace(READY, reason=""), "L12 .*reason"),
        (G.PROPOSED, G.SUPERSEDED, USER, replace(READY, children=1), "L13 .*two children"),
        (G.IN_PROGRESS, G.BLOCKED, SYSTEM, replace(READY, blocker=None), "L14 .*kind"),
        (G.IN_PROGRESS, G.BLOCKED, SYSTEM, replace(READY, unblock_action=""), "L14 .*unblock"),
        (G.BLOCKED, G.IN_PROGRESS, SYSTEM, replace(READY, unblocked=False), "L15 .*still"),
        (G.BLOCKED, G.IN_PROGRESS, USER, replace(READY, acceptance="I accept."), "L16 .*name"),
        (G.BLOCKED, G.IN_PROGRESS, USER, replace(READY, blocker_name=""), "L16 .*name"),
    ],
)
def test_a_guard_refuses_with_its_reason(
    source: GapState, target: GapState, actor: Actor, facts: Facts, why: str
) -> None:
    with pytest.raises(IllegalMove, match=why):
        move(source, target, actor, facts)


@for_each("confirmation", [each for each in Confirmation if each])
def test_an_accepted_gap_is_resolved_in_three_ways(confirmation: Confirmation) -> None:
    assert move(G.ACCEPTED, G.RESOLVED, SYSTEM, Facts(confirmation=confirmation)).rule == "L9"


@for_each("target", GapState)
def test_a_gap_about_which_nothing_is_known_goes_nowhere_that_needs_a_fact(target: GapState) -> None:
    free = {G.OPEN: {"L7", "L11"}, G.PROPOSED: {"L5"}}
    made = set()
    for source in GapState:
        for actor in Actor:
            try:
                made.add(move(source, target, actor, Facts()).rule)
            except IllegalMove:
                continue

    assert made == free.get(target, set())


@for_each(
    ("facts", "rule"),
    [
        (Facts(grave_issues=1, signed_off=True), "L3"),
        (Facts(grave_issues=1), "L3"),
        (Facts(signed_off=True), "L4"),
        (Facts(), None),  # nobody signed it off
        (Facts(signed_off=True, open_conflicts=1), None),  # DEC-7
    ],
)
def test_a_review_takes_a_gap_back_to_acceptance_or_nowhere(facts: Facts, rule: str | None) -> None:
    found = reviewed(facts)

    assert (found.rule if found else None) == rule


def test_vector_44_an_approval_that_lists_a_high_issue_takes_its_gap_back() -> None:
    review = read_review(
        "## Review: GAP-AUTH-001\n\n### High Priority\n\n- **ISSUE-R1-001**: No limit is given\n\n"
        "## Verdict: APPROVED\n"
    )
    found = reviewed(Facts(grave_issues=sum(is_grave(each.severity) for each in review.findings)))

    assert review.verdict is Verdict.APPROVED_WITH_CONDITIONS
    assert found is not None
    assert found.rule == "L3"


# --- Counting ---------------------------------------------------------------------------------------------


def test_vector_7_parked_gaps_count_in_part() -> None:
    states = [G.OPEN, G.OPEN, G.USER_DEFERRED, G.BLOCKED_EXTERNAL, G.ACCEPTED]

    assert open_count(states) == 2.75


@given(st.lists(STATE), STATE)
def test_one_more_gap_counts_what_its_state_counts(states: list[GapState], more: GapState) -> None:
    assert open_count([*states, more]) - open_count(states) == STATES[more].weight


@given(st.lists(STATE))
def test_nothing_is_open_only_where_everything_is_settled(states: list[GapState]) -> None:
    assert (open_count(states) == 0) is all(state in SETTLED for state in states)


def created(gap: str, parent: str = "", severity: Severity | None = MEDIUM) -> GapChange:
    return GapChange(gap, None, G.OPEN, severity, parent)


def went(gap: str, source: GapState, target: GapState, severity: Severity | None = MEDIUM) -> GapChange:
    return GapChange(gap, source, target, severity)


@for_each("target", [G.ACCEPTED, G.RESOLVED, G.WONT_FIX])
def test_a_gap_that_is_closed_is_resolved(target: GapState) -> None:
    count = count_round([went("GAP-QA-001", G.PROPOSED, target, HIGH)])

    assert (dict(count.resolved_now), count.net) == ({"GAP-QA-001": HIGH}, 1)


@for_each("target", sorted(set(GapState) - {G.ACCEPTED, G.RESOLVED, G.WONT_FIX}))
def test_a_gap_that_is_parked_or_split_is_not_resolved(target: GapState) -> None:
    assert count_round([went("GAP-QA-001", G.OPEN, target)]).net == 0


@for_each("later", [G.RESOLVED, G.WONT_FIX])
def test_a_gap_counts_once_at_its_acceptance(later: GapState) -> None:
    # CNT-1
    accepted = count_round([went("GAP-QA-001", G.PROPOSED, G.ACCEPTED)])
    confirmed = count_round([went("GAP-QA-001", G.ACCEPTED, later)])

    assert (accepted.net, confirmed.net) == (1, 0)


def test_accepted_and_resolved_in_one_round_counts_once() -> None:
    # CNT-1
    path = [G.PROPOSED, G.ACCEPTED, G.RESOLVED]
    count = count_round([went("GAP-QA-001", before, after) for before, after in pairwise(path)])

    assert count.net == 1


def test_created_and_closed_in_one_round_counts_in_both_sums() -> None:
    # CNT-2
    count = count_round([created("GAP-QA-001"), went("GAP-QA-001", G.OPEN, G.WONT_FIX)])

    assert (set(count.resolved_now), set(count.new_now), count.net) == ({"GAP-QA-001"}, {"GAP-QA-001"}, 0)


@given(st.lists(st.builds(went, st.sampled_from("abc"), STATE, STATE)))
def test_no_gap_is_resolved_twice_in_a_round(changes: list[GapChange]) -> None:
    assert count_round(changes).net <= len({change.gap for change in changes})


SPLIT = count_round(
    [
        went("GAP-FLOW-007", G.OPEN, G.IN_PROGRESS),
        created("GAP-FLOW-007a", "GAP-FLOW-007"),
        created("GAP-FLOW-007b", "GAP-FLOW-007"),
    ]
)
STRANGE = count_round([went("GAP-FLOW-007", G.OPEN, G.IN_PROGRESS), created("GAP-QA-001")])
GOOD = RoundCount({"GAP-QA-009": LOW}, {})


@for_each(
    ("rounds", "worries"),
    [
        ([], False),
        ([GOOD], False),
        ([SPLIT], False),  # a complex gap falls into its parts
        ([STRANGE], True),  # the new one has nothing to do with what was worked on
        ([SPLIT, SPLIT], True),  # it lasts
        ([SPLIT, GOOD, SPLIT], False),
        ([STRANGE, GOOD], False),  # that is over
    ],
)
def test_a_negative_net_worries_when_it_lasts_or_the_new_gaps_are_strangers(
    rounds: list[RoundCount], worries: bool
) -> None:
    assert is_worrying(rounds) is worries


# --- Tasks ------------------------------------------------------------------------------------------------

FACTS = ["rejected", "landed", "shipped", "needs_help", "has_children"]


@for_each(
    ("status", "facts", "state"),
    [
        (Status.PENDING, {}, G.OPEN),
        (Status.IN_PROGRESS, {}, G.IN_PROGRESS),
        (Status.IN_PROGRESS, {"rejected"}, G.NEEDS_REVISION),
        (Status.REVIEW, {}, G.PROPOSED),
        (Status.REVIEW, {"rejected"}, G.PROPOSED),  # an earlier round was rejected
        (Status.COMPLETED, {}, G.ACCEPTED),
        (Status.COMPLETED, {"landed"}, G.RESOLVED),
        (Status.DEFERRED, {}, G.USER_DEFERRED),
        (Status.CANCELLED, {}, G.WONT_FIX),
        (Status.CANCELLED, {"has_children"}, G.SUPERSEDED),
        (Status.PENDING, {"needs_help"}, G.BLOCKED_EXTERNAL),
        (Status.IN_PROGRESS, {"needs_help", "rejected"}, G.BLOCKED_EXTERNAL),
        (Status.FAILED, {}, G.BLOCKED_EXTERNAL),
        (Status.DISPUTED, {}, G.BLOCKED),
        (Status.DISPUTED, {"needs_help"}, G.BLOCKED_EXTERNAL),
        (Status.DISPUTED, {"shipped"}, G.ACCEPTED),  # only the conflict is left
        (Status.DISPUTED, {"shipped", "landed"}, G.RESOLVED),
    ],
)
def test_a_task_is_a_gap_in_this_state(status: Status, facts: set[str], state: GapState) -> None:
    assert gap_of(TaskFacts(status, **dict.fromkeys(facts, True))) is state


@given(st.sampled_from(list(Status)), st.sets(st.sampled_from(FACTS)))
def test_every_task_is_a_gap_in_some_state(status: Status, facts: set[str]) -> None:
    assert gap_of(TaskFacts(status, **dict.fromkeys(facts, True))) in STATES


@given(st.sampled_from(list(Status)), st.sets(st.sampled_from(FACTS)))
def test_a_finished_task_is_settled_and_no_other_one_but_what_was_shipped(
    status: Status, facts: set[str]
) -> None:
    state = gap_of(TaskFacts(status, **dict.fromkeys(facts, True)))
    finished = status in {Status.COMPLETED, Status.CANCELLED}

    assert not finished or state in SETTLED
    assert finished or state not in SETTLED or facts & {"shipped", "landed"}

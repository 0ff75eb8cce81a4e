"""Gaps: states, what documents and reviews do to them, what counts as open, and which gap a task is."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.reviews.review import Verdict, read_review
from disputes.protocol.reviews.severity import is_grave
from disputes.protocol.rounds.gaps import (
    SETTLED,
    WEIGHTS,
    GapChange,
    GapState,
    RoundCount,
    TaskFacts,
    after_review,
    count_round,
    gap_of,
    is_worrying,
    open_count,
    why_not_proposed,
)
from tasks.states import Severity, Status
from tests.cases import for_each

G = GapState
CRITICAL, HIGH, MEDIUM, LOW = Severity
STATE = st.sampled_from(list(GapState))

# --- States -----------------------------------------------------------------------------------------------


def test_every_state_counts_whole_in_part_or_not_at_all() -> None:
    assert set(WEIGHTS) == set(G)
    whole = {state for state, weight in WEIGHTS.items() if weight == 1}

    assert whole == {G.OPEN, G.IN_PROGRESS, G.PROPOSED, G.NEEDS_REVISION, G.BLOCKED}
    assert {G.ACCEPTED, G.RESOLVED, G.WONT_FIX, G.SUPERSEDED} == SETTLED
    assert (WEIGHTS[G.USER_DEFERRED], WEIGHTS[G.BLOCKED_EXTERNAL]) == (0.5, 0.25)


# --- Moves ------------------------------------------------------------------------------------------------


@for_each(
    ("state", "solution", "unanswered", "why"),
    [
        (G.IN_PROGRESS, "Do it so.", [], ""),
        (G.IN_PROGRESS, " \n", [], "its solution section is empty"),
        (G.NEEDS_REVISION, "Do it so.", [], ""),
        (G.NEEDS_REVISION, "Do it so.", ["ISSUE-R2-004"], "not answered: ISSUE-R2-004"),
        *(
            (state, "Do it so.", [], f"a gap that is {state} cannot be proposed")
            for state in G
            if state not in {G.IN_PROGRESS, G.NEEDS_REVISION}
        ),
    ],
)
def test_a_document_proposes_a_gap_that_is_worked_on_and_whose_grave_findings_are_answered(
    state: GapState, solution: str, unanswered: list[str], why: str
) -> None:
    assert why_not_proposed(state, solution, unanswered) == why


@for_each(
    ("grave", "sent_back", "signed_off", "conflicts", "state"),
    [
        (1, False, True, 0, G.NEEDS_REVISION),
        (1, False, False, 0, G.NEEDS_REVISION),
        (0, True, True, 0, G.NEEDS_REVISION),
        (0, False, True, 0, G.ACCEPTED),
        (0, False, False, 0, None),  # nobody signed it off
        (0, False, True, 1, None),  # DEC-7
    ],
)
def test_a_review_takes_a_gap_back_to_acceptance_or_nowhere(
    grave: int, sent_back: bool, signed_off: bool, conflicts: int, state: GapState | None
) -> None:
    found = after_review(
        grave_findings=grave, is_sent_back=sent_back, is_signed_off=signed_off, open_conflicts=conflicts
    )

    assert found is state


def test_vector_44_an_approval_that_lists_a_high_issue_takes_its_gap_back() -> None:
    review = read_review(
        "## Review: GAP-AUTH-001\n\n### High Priority\n\n- **ISSUE-R1-001**: No limit is given\n\n"
        "## Verdict: APPROVED\n"
    )
    grave = sum(is_grave(each.severity) for each in review.findings)

    assert review.verdict is Verdict.APPROVED_WITH_CONDITIONS
    assert (
        after_review(grave_findings=grave, is_sent_back=False, is_signed_off=True, open_conflicts=0)
        is G.NEEDS_REVISION
    )


# --- Counting ---------------------------------------------------------------------------------------------


def test_vector_7_parked_gaps_count_in_part() -> None:
    states = [G.OPEN, G.OPEN, G.USER_DEFERRED, G.BLOCKED_EXTERNAL, G.ACCEPTED]

    assert open_count(states) == 2.75


@given(st.lists(STATE), STATE)
def test_one_more_gap_counts_what_its_state_counts(states: list[GapState], more: GapState) -> None:
    assert open_count([*states, more]) - open_count(states) == WEIGHTS[more]


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
    assert gap_of(TaskFacts(status, **dict.fromkeys(facts, True))) in WEIGHTS


@given(st.sampled_from(list(Status)), st.sets(st.sampled_from(FACTS)))
def test_a_finished_task_is_settled_and_no_other_one_but_what_was_shipped(
    status: Status, facts: set[str]
) -> None:
    state = gap_of(TaskFacts(status, **dict.fromkeys(facts, True)))
    finished = status in {Status.COMPLETED, Status.CANCELLED}

    assert not finished or state in SETTLED
    assert finished or state not in SETTLED or facts & {"shipped", "landed"}

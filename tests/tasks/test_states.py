"""The statuses of a task and the table of moves: every move of the table, and every other one refused."""

from collections.abc import Iterable
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks import states
from tasks.states import (
    MARKERS,
    MEANINGS,
    MOVES,
    STARTABLE,
    UNFINISHED,
    IllegalMove,
    Severity,
    Status,
    severity_rank,
    target,
    worst,
)
from tests.cases import for_each

LETTERS = {
    "P": Status.PENDING,
    "I": Status.IN_PROGRESS,
    "R": Status.REVIEW,
    "C": Status.COMPLETED,
    "D": Status.DISPUTED,
    "F": Status.FAILED,
    "V": Status.DEFERRED,
    "X": Status.CANCELLED,
}

# The table as it was thought through, written a second time: verb, from, to.
TABLE = [
    ("start", "P", "I"),  # the loop gives a task its first coder
    ("submit", "I", "R"),  # a coder hands in
    ("send_back", "R", "I"),  # what was handed in can't be fetched, or is red
    ("reject", "R", "I"),  # the review asks for a revision
    ("approve", "R", "C"),  # the review passes
    ("advance", "RD", "I"),  # it passes, or a ruling accepts it, before the last stage
    ("pass_round", "RD", "I"),  # a round about documents passes, and its session goes on
    ("next_round", "I", "I"),  # a session begins a round
    ("review_rest", "I", "R"),  # an engineer that has nothing to add asks for the last review
    ("restore", "PIRCDFX", "PIRX"),  # a session goes back to a checkpoint, its gaps with it
    ("backflow", "I", "I"),  # an objection sends it one stage back
    ("forward", "I", "I"),  # the stage before disagrees with the objection
    ("escalate", "I", "I"),  # too many failures: to the column of specialists
    ("hold", "IR", "D"),  # an open conflict holds the task
    ("ship", "R", "D"),  # an open conflict is left behind, the commit goes on
    ("escalate", "I", "I"),  # to the column of specialists that its reason names
    ("stop_for_help", "PIRC", "D"),  # only a person can help; completed ones too, where landing is stuck
    ("exhaust", "R", "F"),  # one rejection too many
    ("rule_revise", "DRCI", "I"),  # a ruling asks for a change
    ("rule_review", "D", "R"),  # a ruling asks for none, and the commit was not reviewed to its end
    ("rule_accept", "D", "C"),  # a ruling asks for none, and the commit is reviewed and green
    ("undo", "IPRCDVX", "DFIRCV"),  # a ruling is taken back: to wherever the task was
    ("clash", "C", "I"),  # the approved commit no longer fits onto the target branch
    ("review_again", "CD", "R"),  # it was rebased, and the project wants to see it once more
    ("retry", "DF", "IPR"),  # a human sends it on
    ("defer", "PIRDFV", "V"),  # any unfinished one
    ("resume", "V", "PID"),  # by the facts: nothing handed in, something, or still in dispute
    ("cancel", "PIRDFCV", "X"),  # all but cancelled ones
    ("finish", "PIRDFV", "C"),  # a maintainer did it by hand
    ("reopen", "CX", "IP"),  # finished ones only
    ("rollback", "IRDF", "I"),  # a maintainer takes rounds back
]
ROWS = {verb: (from_, to) for verb, from_, to in TABLE}
LEGAL = [
    (verb, LETTERS[source], LETTERS[goal]) for verb, from_, to in TABLE for source in from_ for goal in to
]
WRONG_SOURCE = [
    (verb, status) for verb, from_, _ in TABLE for letter, status in LETTERS.items() if letter not in from_
]
WRONG_GOAL = [
    (verb, LETTERS[source], status)
    for verb, from_, to in TABLE
    for source in from_
    for letter, status in LETTERS.items()
    if letter not in to
]


def name(value: object) -> str:
    """A readable id for a row."""
    return str(value)


# --- The table --------------------------------------------------------------------------------------------


def test_the_table_has_exactly_these_verbs() -> None:
    assert set(MOVES) == set(ROWS)


@for_each(("verb", "source", "goal"), LEGAL, ids=name)
def test_a_legal_move_leads_where_the_table_says(verb: str, source: Status, goal: Status) -> None:
    assert target(verb, source, goal) is goal


@for_each(("verb", "status"), WRONG_SOURCE, ids=name)
def test_a_move_is_refused_from_every_other_status(verb: str, status: Status) -> None:
    with pytest.raises(IllegalMove) as refusal:
        target(verb, status)

    assert (refusal.value.verb, refusal.value.status) == (verb, status)


@for_each(("verb", "source", "goal"), WRONG_GOAL, ids=name)
def test_a_move_leads_nowhere_else(verb: str, source: Status, goal: Status) -> None:
    with pytest.raises(ValueError, match=f"^{verb} does not lead to {goal}.$"):
        target(verb, source, goal)


@for_each(("verb", "status"), WRONG_SOURCE, ids=name)
def test_naming_a_goal_makes_no_illegal_move_legal(verb: str, status: Status) -> None:
    goal = next(iter(MOVES[verb].targets))

    with pytest.raises(IllegalMove):
        target(verb, status, goal)


@for_each("verb", [verb for verb, _, to in TABLE if len(to) == 1])
def test_a_move_with_one_goal_needs_not_name_it(verb: str) -> None:
    from_, to = ROWS[verb]

    assert {target(verb, LETTERS[letter]) for letter in from_} == {LETTERS[to]}


@for_each("verb", [verb for verb, _, to in TABLE if len(to) > 1])
def test_a_move_with_several_goals_must_name_one(verb: str) -> None:
    source = LETTERS[ROWS[verb][0][0]]

    with pytest.raises(ValueError, match=f"^{verb} has several targets"):
        target(verb, source)


@for_each(
    ("source", "moved_to"),
    [
        ("D", "I"),  # any ruling on a disputed task
        ("R", "I"),  # a ruling on a task that is under review
        ("C", "I"),  # a ruling that asks for a change of a completed task
        ("F", "P"),  # retry of a failed task
        ("V", "X"),  # cancel, ruled on a task that was deferred meanwhile
        ("I", "D"),  # a flag on a task under way was made a conflict
        ("R", "D"),  # or on one under review
    ],
)
def test_a_ruling_can_be_undone_to_where_the_task_was(source: str, moved_to: str) -> None:
    assert target("undo", LETTERS[moved_to], LETTERS[source]) is LETTERS[source]


@for_each("verb", ["rule_revise", "rule_review", "rule_accept", "retry", "defer", "cancel", "hold"])
def test_undo_starts_from_wherever_a_ruling_can_have_led(verb: str) -> None:
    assert MOVES[verb].targets <= MOVES["undo"].sources


def test_undo_never_cancels() -> None:
    assert Status.CANCELLED not in MOVES["undo"].targets


def test_an_unknown_verb_is_a_mistake_in_the_program() -> None:
    with pytest.raises(KeyError):
        target("obliterate", Status.PENDING)


@for_each("status", ["", "done", "PENDING", "landed", "In progress"])
def test_an_unknown_status_is_refused_like_a_wrong_one(status: str) -> None:
    with pytest.raises(IllegalMove):
        target("start", status)


def test_a_status_may_be_given_as_it_stands_in_the_database() -> None:
    found = target("retry", "failed", "in_progress")

    assert found is Status.IN_PROGRESS


@for_each(
    ("verb", "status", "message"),
    [
        # one source
        ("start", "review", "A task that is review cannot start; that needs pending."),
        # several sources, in the order of the alphabet
        ("hold", "pending", "A task that is pending cannot hold; that needs in_progress, review."),
        # an underscore reads as a space
        ("rule_accept", "completed", "A task that is completed cannot rule accept; that needs disputed."),
        # a word that is no status: the verb was refused for another fact
        (
            "cancel",
            "landed",
            "A task that is landed cannot cancel; that needs completed, deferred, disputed, failed, "
            "in_progress, pending, review.",
        ),
    ],
)
def test_a_refusal_says_what_the_move_needs(verb: str, status: str, message: str) -> None:
    assert str(IllegalMove(verb, status)) == message


# --- The graph of moves -----------------------------------------------------------------------------------


def reachable(start: Status, verbs: Iterable[str] = tuple(MOVES)) -> set[Status]:
    """Every status that a task in `start` can come to by these verbs."""
    found, frontier = {start}, [start]
    while frontier:
        status = frontier.pop()
        for verb in verbs:
            if status in MOVES[verb].sources:
                new = MOVES[verb].targets - found
                found |= new
                frontier += new
    return found


@for_each("status", Status)
def test_every_status_is_reachable_for_a_new_task(status: Status) -> None:
    assert status in reachable(Status.PENDING)


@for_each(("start", "goal"), list(permutations(Status, 2)), ids=name)
def test_no_status_is_a_dead_end(start: Status, goal: Status) -> None:
    assert goal in reachable(start)


def test_a_task_is_completed_without_any_human() -> None:
    assert Status.COMPLETED in reachable(
        Status.PENDING, ["start", "submit", "send_back", "reject", "approve"]
    )


@for_each("verb", ["start", "submit", "send_back", "reject", "approve", "hold", "ship", "exhaust"])
def test_the_loop_moves_only_tasks_that_it_may_pick(verb: str) -> None:
    assert MOVES[verb].sources <= STARTABLE


@for_each("status", [Status.DISPUTED, Status.FAILED, Status.DEFERRED, Status.CANCELLED])
def test_the_loop_alone_never_takes_a_task_out_of_human_hands(status: Status) -> None:
    loop = [
        "start",
        "submit",
        "send_back",
        "reject",
        "approve",
        "hold",
        "ship",
        "stop_for_help",
        "exhaust",
        "clash",
    ]

    assert reachable(status, loop) == {status}


@for_each("verb", list(MOVES))
def test_a_move_is_a_pair_of_sets_of_statuses(verb: str) -> None:
    move = MOVES[verb]

    assert move.sources
    assert move.targets
    assert move.sources | move.targets <= set(Status)


def test_a_move_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        MOVES["start"].sources = frozenset(Status)  # type: ignore[misc]


# --- What the statuses mean -------------------------------------------------------------------------------

MARKED = [
    (Status.PENDING, " ", "Pending"),  # an empty box, as in every TODO list
    (Status.IN_PROGRESS, "-", "In progress"),  # somebody is at it
    (Status.REVIEW, "o", "Review"),  # somebody looks at it
    (Status.COMPLETED, "x", "Completed"),  # a ticked box
    (Status.DISPUTED, "!", "Disputed"),  # look here
    (Status.FAILED, "F", "Failed"),  # one rejection too many
    (Status.DEFERRED, ">", "Deferred"),  # later
    (Status.CANCELLED, "~", "Cancelled"),  # struck out
]


@for_each(("status", "marker", "label"), MARKED, ids=name)
def test_a_status_has_its_marker_and_its_label(status: Status, marker: str, label: str) -> None:
    assert (MEANINGS[status].marker, MEANINGS[status].label) == (marker, label)


@for_each(("status", "marker", "label"), MARKED, ids=name)
def test_a_marker_means_its_status(status: Status, marker: str, label: str) -> None:
    assert MARKERS[marker] is status


def test_every_status_has_a_meaning_and_a_marker_of_its_own() -> None:
    assert set(MEANINGS) == set(Status)
    assert len(MARKERS) == len(Status)


@for_each("status", Status)
def test_a_marker_is_one_character(status: Status) -> None:
    assert len(MEANINGS[status].marker) == 1
    assert MEANINGS[status].marker not in "[]"


@for_each(
    ("status", "role"),
    [
        (Status.PENDING, "coder"),  # a first coder
        (Status.IN_PROGRESS, "coder"),  # a coder again: the last run ended without a hand-in, or a revision
        (Status.REVIEW, "reviewer"),  # a reviewer, once build and tests are green
        (Status.COMPLETED, ""),  # nothing to do
        (Status.DISPUTED, ""),  # never: a human rules
        (Status.FAILED, ""),  # never: a human looks
        (Status.DEFERRED, ""),  # not before it is resumed
        (Status.CANCELLED, ""),  # never
    ],
    ids=name,
)
def test_the_loop_picks_the_role_of_the_status(status: Status, role: str) -> None:
    assert MEANINGS[status].pick == role
    assert (status in STARTABLE) is bool(role)


def test_what_is_nearest_to_its_end_is_taken_first() -> None:
    order = sorted(STARTABLE, key=lambda status: MEANINGS[status].order)

    assert order == [Status.REVIEW, Status.IN_PROGRESS, Status.PENDING]


def test_only_completed_and_cancelled_tasks_are_finished() -> None:
    assert {status for status in Status if MEANINGS[status].finished} == {
        Status.COMPLETED, Status.CANCELLED,
    }  # fmt: skip
    assert set(Status) - UNFINISHED == {Status.COMPLETED, Status.CANCELLED}


def test_only_disputed_and_failed_tasks_wait_for_a_human() -> None:
    assert {status for status in Status if MEANINGS[status].waits_for_human} == {
        Status.DISPUTED, Status.FAILED,
    }  # fmt: skip


@for_each("status", Status)
def test_nothing_is_picked_that_is_finished_or_waits_for_a_human(status: Status) -> None:
    meaning = MEANINGS[status]

    assert not (meaning.pick and (meaning.finished or meaning.waits_for_human))


@for_each("status", Status)
def test_a_status_equals_its_word(status: Status) -> None:
    assert status == status.value
    assert f"{status}" == status.value


def test_a_meaning_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        MEANINGS[Status.DISPUTED].pick = "coder"  # type: ignore[misc]


# --- Severity ---------------------------------------------------------------------------------------------


@for_each(
    ("word", "rank"),
    [
        ("critical", 3),  # can't work
        ("high", 2),  # wrong or incomplete
        ("medium", 1),  # works, but worse than it should
        ("low", 0),  # polish
        (Severity.CRITICAL, 3),  # the member is as good as its word
        (Severity.LOW, 0),
        ("", 1),  # SEV-9: no marker counts as medium
        ("urgent", 1),  # SEV-9: an unknown word counts as medium
        ("HIGH", 1),  # reading capitals is the parser's work, not this one's
        ("lowest", 1),  # no prefix of a word is that word
    ],
    ids=name,
)
def test_a_severity_has_its_rank(word: str, rank: int) -> None:
    assert severity_rank(word) == rank


def test_severities_are_declared_from_the_highest_down() -> None:
    assert [severity_rank(severity) for severity in Severity] == [3, 2, 1, 0]


@for_each(("one", "other"), list(product(Severity, repeat=2)), ids=name)
def test_of_two_severities_the_higher_one_is_the_worst(one: Severity, other: Severity) -> None:
    assert worst([one, other]) is (one if severity_rank(one) >= severity_rank(other) else other)


@for_each(
    ("severities", "expected"),
    [
        ([], Severity.MEDIUM),  # SEV-9: none counts as medium
        (["low"], Severity.LOW),  # one alone is itself
        (["low", "low"], Severity.LOW),  # many small ones do not add up
        (["", "low"], Severity.MEDIUM),  # SEV-9: an unknown one counts as medium
        (["urgent"], Severity.MEDIUM),  # and comes back as medium
        (["low", "critical", "medium"], Severity.CRITICAL),  # SEV-5: the higher one counts
    ],
    ids=name,
)
def test_the_worst_of_several_severities_counts(severities: list[str], expected: Severity) -> None:
    assert worst(severities) is expected


def test_the_worst_is_found_in_any_iterable() -> None:
    assert worst(word for word in ("low", "high")) is Severity.HIGH


@given(st.lists(st.sampled_from([*Severity, "", "nonsense"])))
def test_nothing_is_worse_than_the_worst(severities: list[str]) -> None:
    found = severity_rank(worst(severities))

    assert all(severity_rank(severity) <= found for severity in severities)
    assert not severities or found in {severity_rank(severity) for severity in severities}


@given(st.text())
def test_any_word_has_a_rank(word: str) -> None:
    assert 0 <= severity_rank(word) <= 3


def test_the_short_names_of_the_table_are_the_statuses() -> None:
    assert {letter: getattr(states, letter) for letter in LETTERS} == LETTERS

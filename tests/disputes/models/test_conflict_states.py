"""The states of a conflict: every move of the table by its verb, every other one refused, and races."""

from collections.abc import Callable

import pytest

from disputes.models import Conflict, Flag, StaleConflict
from disputes.protocol.rulings.conflict_states import (
    MOVES,
    STATES,
    ConflictState,
    IllegalConflictMove,
    target,
)
from tasks.events import Actor
from tasks.models import Event
from tests.disputes.models.test_models import create_conflict, finding_of

pytestmark = pytest.mark.django_db

TOM = Actor("person", "Tom Tran")
LETTERS = {
    "O": "open", "L": "logged", "M": "moot", "W": "decided, waiting", "A": "decided, applied",
    "N": "decided, not honoured", "U": "decided, cannot tell", "R": "decided, reopened",
}  # fmt: skip
# The table as it was thought through, written a second time: verb, from, to.
TABLE = [
    ("rule", "O", "W"),  # somebody decides
    ("drop", "O", "M"),  # nobody has to decide any more
    ("restore", "M", "O"),  # it was dropped by a ruling that is taken back
    ("undo", "WANU", "O"),  # its own ruling is taken back
    ("reopen", "WANU", "R"),  # a new conflict goes on with it
    ("mark_applied", "W", "A"),  # the ruling was carried out
    ("mark_not_honoured", "W", "N"),  # it was not
    ("mark_unclear", "W", "U"),  # nobody can tell
    ("await_again", "ANUR", "W"),  # what was seen of it was rolled back
    ("archive", "OLWANUR", "M"),  # its round was rolled back
]
VERBS: dict[str, Callable[[Conflict], None]] = {
    "rule": lambda conflict: conflict.rule(actor=TOM, note="So.", data={"option": "other"}),
    "drop": lambda conflict: conflict.drop("So.", actor=TOM),
    "restore": lambda conflict: conflict.restore("So.", actor=TOM),
    "undo": lambda conflict: conflict.undo(actor=TOM),
    "reopen": lambda conflict: conflict.reopen("So.", actor=TOM),
    "mark_applied": lambda conflict: conflict.mark("applied", actor=TOM, note="So."),
    "mark_not_honoured": lambda conflict: conflict.mark("not_honoured", actor=TOM, note="So."),
    "mark_unclear": lambda conflict: conflict.mark("cannot_tell", actor=TOM, note="So."),
    "await_again": lambda conflict: conflict.await_again("So.", actor=TOM),
    "archive": lambda conflict: conflict.archive("So.", actor=TOM),
}


def letter(state: ConflictState) -> str:
    return next(letter for letter, words in LETTERS.items() if words == str(state))


def put(conflict: Conflict, state: ConflictState) -> Conflict:
    """The row in that state, past the table."""
    Conflict.objects.filter(pk=conflict.pk).update(status=state.status, followed=state.followed)
    return Conflict.objects.get(pk=conflict.pk)


def test_the_table_is_the_one_that_was_thought_through() -> None:
    table = [
        (verb, {letter(state) for state in move.sources}, letter(move.target)) for verb, move in MOVES.items()
    ]
    assert table == [(verb, set(sources), goal) for verb, sources, goal in TABLE]
    assert len({move.event for move in MOVES.values()}) == len(MOVES)
    assert {words: letter for letter, words in LETTERS.items()}.keys() == {str(state) for state in STATES}


def test_a_verb_moves_the_row_and_records_it_or_does_nothing_at_all() -> None:
    conflict = create_conflict()
    for state in STATES:
        for verb, call in VERBS.items():
            now = put(conflict, state)
            before = Event.objects.count()
            if state in MOVES[verb].sources:
                call(now)
                event = Event.objects.latest("pk")
                assert now.state == Conflict.objects.get(pk=conflict.pk).state == target(verb, state)
                assert (event.kind, event.label) == (MOVES[verb].event, "Tom Tran"), verb
                assert (event.task, event.data["conflict"]) == (conflict.task, conflict.ref)
                assert Event.objects.count() == before + 1
            else:
                with pytest.raises(IllegalConflictMove, match="A conflict that is"):
                    call(now)
                assert Conflict.objects.get(pk=conflict.pk).state == state
                assert Event.objects.count() == before


def test_of_two_stale_copies_one_wins() -> None:
    conflict = create_conflict()
    other = Conflict.objects.get(pk=conflict.pk)
    VERBS["rule"](conflict)
    with pytest.raises(StaleConflict, match="is not open any more"):
        other.drop("Nobody needs it.")
    assert Conflict.objects.get(pk=conflict.pk).state == conflict.state
    assert list(Event.objects.filter(task=conflict.task).values_list("kind", flat=True)) == ["ruled"]


def test_the_open_flags_of_a_dropped_card_wait_for_nobody() -> None:
    card = create_conflict(kind="silence")
    open_and_asked = [
        Flag.objects.create(
            conflict=card, finding=finding, submission=finding.review.submission, level="warn", status=status
        )
        for finding, status in ((finding_of(card.dispute), status) for status in ("open", "asked"))
    ]
    card.drop("The place is gone.")
    assert [Flag.objects.get(pk=flag.pk).status for flag in open_and_asked] == ["moot", "asked"]

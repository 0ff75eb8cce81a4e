"""What a room asks of those above it, or tells them: a slot for each, filled once when the program starts.

A reader of imports sees only arrows that go down. Whatever runs against them is a slot, here or in
`disputes.hooks`, and `steroidsweb.wiring` says what fills it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from tasks.models import Event, Task

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Slot(Generic[Given, Answer]):
    """A function of a known type that a room above provides. Calling the slot calls it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.function: Callable[Given, Answer] | None = None

    def fill(self, function: Callable[Given, Answer]) -> None:
        """From now on this function answers."""
        self.function = function

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        if self.function is None:
            raise RuntimeError(
                f"Nothing fills the slot {self.name}: steroidsweb.wiring must be called first."
            )
        return self.function(*args, **kwargs)


# After the transaction of any event, with its project's key and its kind: the loop looks at once.
ring_loop: "Slot[[int, str], None]" = Slot("ring_loop")
# Whether people are told of events of this kind: each such event leaves a notice.
is_told: "Slot[[str], bool]" = Slot("is_told")
# After the transaction of such an event.
ring_notices: "Slot[[int], None]" = Slot("ring_notices")
# Within the transaction of an event: what slept until it wakes.
wake_for: "Slot[[Event], None]" = Slot("wake_for")
# Whose turn a task is and why, in one sentence.
waiting_line: "Slot[[Task], str]" = Slot("waiting_line")
# What a task's runs cost and used, in one sentence; empty where nothing.
spent_line: "Slot[[Task], str]" = Slot("spent_line")
# Whether an open conflict holds the task.
is_held: "Slot[[Task], bool]" = Slot("is_held")
# Whether a conflict of severity HIGH or above is open on the task.
is_undecided: "Slot[[Task], bool]" = Slot("is_undecided")
# Within the transaction: a task that was there has another title.
retitled: "Slot[[Task], None]" = Slot("retitled")
# Once a task landed, was cancelled or came back: whoever waits for it or for its section is counted anew.
recount_dependants: "Slot[[Task], None]" = Slot("recount_dependants")

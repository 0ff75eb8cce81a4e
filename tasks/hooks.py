"""What a room asks or tells the rooms above it: one slot for each, filled once when the program starts.

Imports only ever go down. Every call in the other direction is a slot, here or in `disputes.hooks`, and
`steroidsweb.wiring` says which function fills it.
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
        """Set the function that answers calls to this slot."""
        self.function = function

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        if self.function is None:
            raise RuntimeError(
                f"Nothing fills the slot {self.name}: steroidsweb.wiring must be called first."
            )
        return self.function(*args, **kwargs)


# Called after the transaction of any event, with the project's key and its kind: the loop looks at once.
ring_loop: "Slot[[int, str], None]" = Slot("ring_loop")
# Whether people are told of events of this kind; if so, each event leaves a notice.
is_told: "Slot[[str], bool]" = Slot("is_told")
# Called with the project's key after the transaction of an event that left a notice.
ring_notices: "Slot[[int], None]" = Slot("ring_notices")
# Called within the transaction of an event, to wake what was snoozed until that event.
wake_for: "Slot[[Event], None]" = Slot("wake_for")
# Whose turn it is on a task and why, in one sentence.
waiting_line: "Slot[[Task], str]" = Slot("waiting_line")
# What a task's runs cost and used, in one sentence; empty if nothing.
spent_line: "Slot[[Task], str]" = Slot("spent_line")
# Whether an open conflict holds the task.
is_held: "Slot[[Task], bool]" = Slot("is_held")
# Whether a conflict of severity HIGH or above is open on the task.
is_undecided: "Slot[[Task], bool]" = Slot("is_undecided")
# Called within the transaction that changes the title of an existing task.
retitled: "Slot[[Task], None]" = Slot("retitled")
# Called once a task landed, was cancelled or came back, to recount the tasks that wait for it or its section.
recount_dependants: "Slot[[Task], None]" = Slot("recount_dependants")

"""What fills the slots: the one place that gives a lower room a function of a room above it.

Each function is loaded when its slot is first called: most commands call none, and loading them all took a
third of the time to start.
"""

from typing import Any

from django.utils.module_loading import import_string

from disputes import hooks as of_disputes
from tasks import hooks as of_tasks
from tasks.hooks import Slot

FILLED: list[tuple[Slot[Any, Any], str]] = [
    (of_tasks.ring_loop, "agents.loop.bell.ring"),
    (of_tasks.is_told, "disputes.notifications.notices.is_told"),
    (of_tasks.ring_notices, "disputes.notifications.bell.ring"),
    (of_tasks.wake_for, "disputes.triage.wake_for"),
    (of_tasks.waiting_line, "agents.web.standing.line_of"),
    (of_tasks.spent_line, "agents.web.costs.task_line"),
    (of_tasks.is_held, "disputes.rulings.blocking.is_held"),
    (of_tasks.is_undecided, "disputes.rulings.blocking.is_undecided"),
    (of_tasks.retitled, "disputes.searching.renew_for"),
    (of_tasks.recount_dependants, "tasks.dependencies.recount_dependants"),
    (of_disputes.reach_of, "agents.judging.reach_of"),
    (of_disputes.sources_above, "agents.tallies.sources"),
    (of_disputes.reseal_above, "steroidsweb.accounts.sealed.reseal"),
]


class LoadedWhenCalled:
    """A function known by its name, which is loaded and put into the slot when the slot is first called."""

    def __init__(self, slot: Slot[Any, Any], name: str) -> None:
        self.slot, self.name = slot, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.slot.fill(import_string(self.name))
        return self.slot(*args, **kwargs)


def fill_slots() -> None:
    """Fill all slots; called once, when all apps are loaded."""
    for slot, name in FILLED:
        slot.fill(LoadedWhenCalled(slot, name))

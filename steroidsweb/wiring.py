"""What fills the slots: the one place where a lower room is given a function of a room above it."""

import agents.loop.bell
import disputes.notifications.bell
import disputes.notifications.notices
from agents import judging, tallies
from agents.web import costs, standing
from disputes import hooks as of_disputes
from disputes import triage
from disputes.rulings import blocking
from tasks import dependencies
from tasks import hooks as of_tasks


def fill_slots() -> None:
    """Called once, when all apps are there."""
    of_tasks.ring_loop.fill(agents.loop.bell.ring)
    of_tasks.is_told.fill(disputes.notifications.notices.is_told)
    of_tasks.ring_notices.fill(disputes.notifications.bell.ring)
    of_tasks.wake_for.fill(triage.wake_for)
    of_tasks.waiting_line.fill(standing.line_of)
    of_tasks.spent_line.fill(costs.task_line)
    of_tasks.is_held.fill(blocking.is_held)
    of_tasks.is_undecided.fill(blocking.is_undecided)
    of_tasks.recount_dependants.fill(dependencies.recount_dependants)
    of_disputes.reach_of.fill(judging.reach_of)
    of_disputes.sources_above.fill(lambda: tallies.SOURCES)

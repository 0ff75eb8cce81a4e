"""What the disputes ask of the agents' room above them. See `tasks.hooks`."""

from typing import TYPE_CHECKING

from tasks.hooks import Slot

if TYPE_CHECKING:
    from disputes.models import Conflict
    from disputes.opinions import Reach
    from disputes.tallies import Source

# Which of judge and mediator can be asked about a conflict now; if none, what a person would have to do.
reach_of: "Slot[[Conflict], dict[str, Reach]]" = Slot("reach_of")
# What the insights count beside rulings and reviews.
sources_above: "Slot[[], tuple[Source, ...]]" = Slot("sources_above")

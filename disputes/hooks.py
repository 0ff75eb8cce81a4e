"""What the disputes app asks of the agents app above it. See `tasks.hooks`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tasks.hooks import Slot

if TYPE_CHECKING:
    from disputes.models import Conflict
    from disputes.opinions import Reach
    from disputes.tallies import Source

# Whether the judge and the mediator can be asked about a conflict; if not, what a person would have to do.
reach_of: "Slot[[Conflict], dict[str, Reach]]" = Slot("reach_of")
# What the insights count besides rulings and reviews.
sources_above: "Slot[[], tuple[Source, ...]]" = Slot("sources_above")
# Seal with today's key what the rooms above keep sealed, by a function that does it with one text; how many.
reseal_above: "Slot[[Callable[[str], str]], int]" = Slot("reseal_above")

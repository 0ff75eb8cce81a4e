"""The rulings as the next coder's prompt words them."""

from collections.abc import Iterable

from agents.prompts.context import rulings_text
from disputes import rulings
from disputes.models import Decision
from disputes.protocol.rulings.options import NOT_FOR_THE_CODER
from tasks.models import Task


def told(task: Task) -> str:
    """What the next prompt of the task's coder says of rulings."""
    return worded(rulings.rulings_for_prompt(task))


def worded(decisions: Iterable[Decision]) -> str:
    return rulings_text([each for each in decisions if each.option not in NOT_FOR_THE_CODER], 1.0, [])

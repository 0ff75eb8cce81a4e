"""Ruling on conflicts: what is offered, deciding, undoing, and what the next prompt is told."""

from disputes.rulings.blocking import blockers_of
from disputes.rulings.deciding import decide, decide_by_policy, needs_rationale, refuse_second, refuse_stale
from disputes.rulings.offers import (
    DISCARDED,
    TEXT_MAX,
    OptionView,
    last_judged,
    options_of,
    preview,
    ruling_of,
    shown_hash,
    text_of,
)
from disputes.rulings.prompting import mark_used, rulings_for_prompt, settled_lines
from disputes.rulings.proposing import propose_synthesis
from disputes.rulings.undoing import reopen, undo

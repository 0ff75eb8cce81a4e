"""One action on many disputes: previewing what it would do to each, doing it, and taking it back.

Nobody is overruled unseen: whatever changed or was ruled on since the preview is left out and reported. Each
item succeeds or is refused on its own; disputes of severity CRITICAL are never among them.
"""

from disputes.bulk.acts import apply, undo
from disputes.bulk.items import (
    ADOPT,
    ASSIGN,
    BULK_MAX,
    DISCARD,
    RULE_A,
    RULE_B,
    SNOOZE,
    VERBS,
    BulkItem,
    Terms,
    Verb,
    items_of,
)
from disputes.bulk.opinions import BulkOpinion, agreed

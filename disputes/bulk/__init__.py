"""One act on many disputes: what it would do to each, doing it, and taking it back.

Nobody is overruled unseen: what changed since the preview, and what somebody else ruled meanwhile, is left
out and said. Each item is done or refused on its own; CRITICAL is never among them.
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

__all__ = [
    "ADOPT",
    "ASSIGN",
    "BULK_MAX",
    "DISCARD",
    "RULE_A",
    "RULE_B",
    "SNOOZE",
    "VERBS",
    "BulkItem",
    "BulkOpinion",
    "Terms",
    "Verb",
    "agreed",
    "apply",
    "items_of",
    "undo",
]

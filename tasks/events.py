"""Core: who acted. `tasks.models.event.record` writes it down with what happened."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it, in words that outlive the row of whoever it was."""

    kind: str  # person, run, agent, system, policy
    label: str
    user_id: int | None = None
    run_number: int | None = None
    model: str = ""

    @classmethod
    def person(cls, user: Any) -> "Actor":
        """A named human."""
        return cls("person", user.get_full_name() or user.get_username(), user_id=user.pk)


SYSTEM = Actor("system", "System")

# What people read after the name of who did it, where the verb of the table would not say it.
WORDS = {
    "advance": "sent it to the next stage",
    "approve": "approved",
    "backflow": "sent it back a stage",
    "bounce": "sent it back",
    "cancel": "cancelled it",
    "clash": "met a conflict in landing",
    "defer": "deferred it",
    "escalate": "escalated it",
    "exhaust": "gave it up",
    "finish": "marked it as done",
    "forward": "sent it forward again",
    "hold": "blocked it until a ruling",
    "kept": "saved the work",
    "park": "asked for a person",
    "reject": "rejected",
    "reopen": "opened it again",
    "resume": "resumed it",
    "retry": "tried it again",
    "rollback": "rolled back",
    "rule_accept": "accepted it by a ruling",
    "rule_review": "sent it to review by a ruling",
    "rule_revise": "sent it back by a ruling",
    "ship": "approved with a card open",
    "start": "started it",
    "submit": "handed in",
    "undo": "undid a ruling",
}


def words(kind: str) -> str:
    """An event's kind as people read it, behind the name of who did it."""
    return WORDS.get(kind, kind.replace("_", " "))

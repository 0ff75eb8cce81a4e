"""Core: who acted, and which events people are told of. `tasks.models.event.record` writes them."""

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


SYSTEM = Actor("system", "Steroids")

# Of what anybody may be told: each such event leaves a notice, which the notifications take up.
TOLD = frozenset(
    {
        "conflict_opened", "alert_opened", "ruled", "ruling_undone", "dispute_closed",
        "assigned", "commented", "nudged", "unattended", "stale",
        "trouble", "round_limit", "project_ended", "landed",
    }
)  # fmt: skip

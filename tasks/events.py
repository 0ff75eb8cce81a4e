"""Core: who acted. `tasks.models.event.record` stores the actor together with what happened."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Actor:
    """Whoever did something, described in words that outlive their row in the database."""

    kind: str  # person, run, agent, system, policy
    label: str
    user_id: int | None = None
    run_number: int | None = None
    model: str = ""

    @classmethod
    def person(cls, user: Any) -> "Actor":
        """Return the actor for a named human."""
        return cls("person", user.get_full_name() or user.get_username(), user_id=user.pk)


SYSTEM = Actor("system", "System")

# What people read after the actor's name, for events whose kind would not read as a verb.
WORDS = {
    "alert_opened": "raised an alert",
    "advance": "sent it to the next stage",
    "approve": "approved",
    "backflow": "sent it back a stage",
    "cancel": "cancelled it",
    "clash": "met a conflict in landing",
    "conflict_archived": "archived a conflict",
    "conflict_moot": "closed a conflict that nobody need rule on",
    "conflict_opened": "opened a conflict",
    "next_round": "began the next round",
    "pass_round": "passed the round",
    "pushed_aside": "pushed disputed work to a branch of its own",
    "conflict_restored": "opened a conflict again",
    "defer": "deferred it",
    "dispute_closed": "closed the dispute",
    "escalate": "escalated it",
    "exhaust": "gave it up",
    "final_review": "held the final review",
    "finish": "marked it as done",
    "forward": "sent it forward again",
    "gap_found": "found a gap",
    "hold": "blocked it until a ruling",
    "kept": "saved the work",
    "landed_work_back": "found landed work again",
    "landed_work_gone": "found landed work gone",
    "reject": "rejected",
    "reopen": "opened it again",
    "restore": "put it back as it was",
    "restored": "restored a backup",
    "resume": "resumed it",
    "retry": "tried it again",
    "review_rest": "asked for a review again",
    "rollback": "rolled back",
    "round_judged": "judged the round",
    "round_proposed": "proposed how to close gaps",
    "ruling_applied": "saw a ruling followed",
    "ruling_awaited": "awaits a ruling's effect again",
    "ruling_not_honoured": "saw a ruling not followed",
    "ruling_reopened": "reopened a ruling",
    "ruling_unclear": "could not verify a ruling",
    "ruling_undone": "took a ruling back",
    "rule_accept": "accepted it by a ruling",
    "rule_review": "sent it to review by a ruling",
    "rule_revise": "sent it back by a ruling",
    "send_back": "sent it back",
    "session_begun": "began a session",
    "ship": "approved with a card open",
    "run_queued": "queued a run",
    "start": "started it",
    "stop_for_help": "asked for a person",
    "submit": "handed in",
    "todo_reopened": "has an empty box for it again",
    "todo_removed": "does not hold it any more",
    "todo_taken": "let the file pass",
    "todo_ticked": "ticked boxes",
    "todo_unclosed": "has a tick that closes nothing",
    "todo_waits": "waits for a person to look at it",
    "undo": "put it back as it was before a ruling",
}


def words(kind: str) -> str:
    """Return an event's kind in the words that people read after the actor's name."""
    return WORDS.get(kind, kind.replace("_", " "))

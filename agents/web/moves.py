"""What people may do to a task by hand: which verbs they are offered, and carrying one out."""

from dataclasses import dataclass
from typing import Any

from tasks.access import MAINTAIN, RULE, require_role
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import StaleTask, Task
from tasks.states import MOVES, IllegalMove, Status

NOTE_MAX = 2000


@dataclass(frozen=True, slots=True)
class ByHand:
    """One verb as its button shows it."""

    verb: str
    label: str
    hint: str
    roles: frozenset[str]
    needs_note: bool = False

    def is_open_to(self, task: Task) -> bool:
        """Whether the verb leads elsewhere from the task's status; what has landed cannot be cancelled."""
        if self.verb == "cancel" and task.landed_at:
            return False
        return MOVES[self.verb].leads_on_from(task.status)


BY_HAND = {
    each.verb: each
    for each in (
        ByHand("resume", "Resume", "It goes on where the facts say it was.", RULE),
        ByHand("reopen", "Reopen", "It begins a new round. Say why.", MAINTAIN, needs_note=True),
        ByHand("defer", "Defer", "The loop passes over it until somebody resumes it.", RULE),
        ByHand(
            "finish", "Finish by hand", "It was done outside the program; nothing lands for it.",
            MAINTAIN,
        ),
        ByHand("cancel", "Cancel", "Nobody wants it; what waits for it goes on.", MAINTAIN),
    )
}  # fmt: skip


def offered(task: Task, role: str) -> list[ByHand]:
    """Return the verbs that the person may use on the task as it is now."""
    return [each for each in BY_HAND.values() if role in each.roles and each.is_open_to(task)]


def check_right(task: Task, verb: str, role: str) -> None:
    """Raise Refused with status 403 if the role does not allow the verb."""
    require_role(role, task.project, BY_HAND[verb].roles, f"{verb} tasks")


def carry_out(task: Task, verb: str, *, user: Any, role: str, note: str, version: str = "") -> None:
    """Use the verb on the task; `version` is the version that the person saw, empty for any.

    Raises Refused if the role does not allow it (403), a reason is missing (422), or the task has moved on
    (409).
    """
    check_right(task, verb, role)
    if version and version != str(task.version):
        now = Status(task.status).replace("_", " ")
        raise Refused("moved_on", f"{task.ref} has moved on: it is {now} now.", "Look again, then choose.")
    if BY_HAND[verb].needs_note and not note.strip():
        raise Invalid("text_missing", f"A reason is needed to {verb} {task.ref}.", "Say why.")
    try:
        getattr(task, verb)(actor=Actor.person(user), note=note.strip()[:NOTE_MAX])
    except (IllegalMove, StaleTask) as error:
        raise Refused("moved_on", str(error), "Look again, then choose.") from error

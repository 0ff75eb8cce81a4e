from typing import Any

from django.db import transaction

from agents.api.handins import caller as callers
from agents.api.handins.caller import end_run, one_line, reply, require_status
from disputes import cases
from disputes.models import Conflict
from tasks.comments import add_comment
from tasks.errors import Refused
from tasks.states import Status


@transaction.atomic
def blocked(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """The coder cannot go on without an access, a tool or a fact; a human is asked."""
    caller, task = callers.caller_of(user, "blocked", ref)
    require_status(task, Status.IN_PROGRESS, "report as blocked")
    end_run(caller, task)
    conflict = cases.park(
        task, Conflict.Origin.BLOCKED, f"The coder is blocked: {one_line(data['reason'])}"[:500],
        actor=caller.actor, detail=data["reason"],
    )  # fmt: skip
    return reply(f"{task.ref} waits for help ({conflict.ref}).", task, conflicts=[conflict.ref])


@transaction.atomic
def comment(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """A remark on the task; does not end the run."""
    caller, task = callers.caller_of(user, "comment", ref)
    parent = task.comments.filter(pk=data["parent"]).first() if data["parent"] else None
    if data["parent"] and parent is None:
        raise Refused("not_found", f"There is no comment {data['parent']} on {task.ref}.", "", status=404)
    made = add_comment(
        task.project, data["body"], actor=caller.actor, task=task, parent=parent, target=data["target"],
        dispute=live.ref if (live := cases.live_dispute(task)) else "",
    )  # fmt: skip
    return reply(f"Comment {made.pk} is on {task.ref}.", task)

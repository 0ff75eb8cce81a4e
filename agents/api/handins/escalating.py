from typing import Any

from django.db import transaction

from agents.api.handins import caller as callers
from agents.api.handins.caller import end_run, reply, require_status
from agents.crew import specialists
from tasks.states import Status


@transaction.atomic(savepoint=False)
def escalate(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Pass a task that the coder cannot do to the specialists for the reason, or to a human without any."""
    caller, task = callers.caller_of(user, "escalate", ref)
    require_status(task, Status.IN_PROGRESS, "escalate")
    end_run(caller, task)
    conflict = specialists.escalate(task, data["reason"], actor=caller.actor, notes=data["notes"])
    if conflict is not None:
        message = f"{task.ref} waits for a human ({conflict.ref}): {conflict.question}"
        return reply(message, task, stage=task.stage, conflicts=[conflict.ref])
    return reply(f"{task.ref} is in {task.stage} now.", task, stage=task.stage)

from typing import Any

from django.db import transaction

from agents.api.handins import caller as callers
from agents.api.handins.caller import Caller, end_run, one_line, reply, require_status
from agents.crew import specialists
from agents.models import Run
from disputes import opening, stage_objections
from disputes.models import Conflict
from tasks.errors import Invalid, Refused
from tasks.models import Comment, Task
from tasks.remarks.comments import add_comment
from tasks.states import Status


@transaction.atomic(savepoint=False)
def blocked(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Stop the task for a human: the coder lacks an access, a tool or a fact."""
    caller, task = callers.caller_of(user, "blocked", ref)
    require_status(task, Status.IN_PROGRESS, "report as blocked")
    end_run(caller, task)
    conflict = opening.stop_for_help(
        task, Conflict.Origin.BLOCKED, f"The coder is blocked: {one_line(data['reason'])}"[:500],
        actor=caller.actor, detail=data["reason"],
    )  # fmt: skip
    return reply(f"{task.ref} waits for help ({conflict.ref}).", task, conflicts=[conflict.ref])


@transaction.atomic(savepoint=False)
def comment(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Comment on the task. This ends the run only if it sends the task to another stage (ITM-2)."""
    caller, task = callers.caller_of(user, "comment", ref)
    moves = [name for name in ("back", "disagree", "resolve") if data.get(name)]
    if len(moves) > 1:
        raise Invalid("one_at_a_time", f"{' and '.join(moves)} exclude each other.", "Choose one.")
    parent = task.comments.filter(pk=data["parent"]).first() if data["parent"] else None
    if data["parent"] and parent is None:
        raise Refused(
            "not_found", f"There is no comment {data['parent']} on {task.ref}.",
            "Take the number from your prompt or from the task's page, or leave out --parent.", status=404,
        )  # fmt: skip
    if moves:
        return _argue(caller, task, moves[0], parent, data)
    made = add_comment(
        task.project, data["body"], actor=caller.actor, task=task, parent=parent, target=data["target"],
        dispute=live.ref if (live := opening.live_dispute(task)) else "",
        stage=task.stage if caller.run else "",
    )  # fmt: skip
    return reply(f"Comment {made.pk} is on {task.ref}.", task)


def _argue(
    caller: Caller, task: Task, move: str, parent: Comment | None, data: dict[str, Any]
) -> dict[str, Any]:
    """Object to the stage before, or answer an objection. Sending the task to another stage ends the run."""
    if caller.run is None or caller.run.role != Run.Role.CODER:
        raise Refused(
            "wrong_role", f"Only a coder's run may answer an objection or send the task {move}.",
            "Comment without --back, --disagree and --resolve.", status=403,
        )  # fmt: skip
    require_status(task, Status.IN_PROGRESS, f"{move} an objection")
    if move == "resolve":
        if parent is None:
            raise Invalid("parent_missing", "Which objection is right?", "Name it with --parent.")
        stage_objections.agree(task, parent, actor=caller.actor)
        made = add_comment(
            task.project, data["body"], actor=caller.actor, task=task, parent=parent, target=parent.target,
            stage=task.stage,
        )  # fmt: skip
        message = f"Comment {made.pk} accepts comment {parent.pk} on {task.ref}. Hand in what mends it."
        return reply(message, task)
    end_run(caller, task)
    if move == "back":
        made, conflict = stage_objections.send_back(
            task, data["body"], target=data["target"], parent=parent, actor=caller.actor
        )
    else:
        made, conflict = stage_objections.disagree(task, data["body"], parent=parent, actor=caller.actor)
    if conflict:
        message = f"{task.ref} waits for a human ({conflict.ref}): {conflict.evidence[0]}."
        return reply(message, task, conflicts=[conflict.ref])
    return reply(f"Comment {made.pk} sends {task.ref} to {task.stage}.", task)


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

from typing import Any

from django.db import transaction
from django.db.models import Max

from agents.api.handins import caller as callers
from agents.api.handins.caller import Caller, end_run, open_conflicts_of, reply, require_status
from agents.pull import leases
from disputes import intake, stage_objections
from disputes.protocol.responses.response import read_response
from tasks.models import Submission, Task
from tasks.states import Status


@transaction.atomic
def submit(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """A coder hands in a commit and its answers; declined mandatory findings open conflicts at once."""
    response = read_response(data["response"], strict=True)
    caller, task = callers.caller_of(user, "submit", ref, data["model"])
    require_status(task, Status.IN_PROGRESS, "submit")
    known = intake.check_response(task, response)
    attempts = (
        task.submissions.standing().filter(round=task.round).aggregate(last=Max("attempt"))["last"] or 0
    )
    submission = Submission.objects.create(
        task=task,
        round=task.round,
        attempt=attempts + 1,
        stage=task.stage,
        sha=data["sha"],
        base_sha=_base_of(caller, task, data["sha"]),
        response=response.text or data["notes"],
        by_agent=caller.actor.label,
        by_model=caller.actor.model,
        by_vendor=caller.run.agent.made_by if caller.run and caller.run.agent else "",
        by_user_id=caller.actor.user_id,
    )
    if caller.run and caller.run.is_pulled:
        leases.hand_over(caller.run, submission)
    end_run(caller, task, submission=submission)
    stage_objections.handed_in(task, actor=caller.actor)
    task.submit(actor=caller.actor, note=data["notes"] or f"commit {submission.sha[:12]}")
    intake.take_submission(submission, response, known, actor=caller.actor)
    held = [c for c in open_conflicts_of(task) if c.effect == "hold"]
    if held and task.status == Status.REVIEW:  # it may be parked already
        task.hold(actor=caller.actor, note=", ".join(f"{c.ref} {c.question}" for c in held)[:500])
    message = f"{task.ref} is handed in at {submission.sha[:12]}."
    if held:
        message += " It waits for a human's ruling."
    return reply(message, task, conflicts=[conflict.ref for conflict in open_conflicts_of(task)])


def _base_of(caller: Caller, task: Task, sha: str) -> str:
    if caller.run:
        return caller.run.base_sha
    last = task.last_submission()
    return last.sha if last and last.sha else sha  # an imported document names no commit

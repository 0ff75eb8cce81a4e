from typing import Any

from django.db import transaction

from agents.api.handins import caller as callers
from agents.api.handins.asking_back import ask_back
from agents.api.handins.caller import Caller, close_run, reply, require_status, require_turn
from agents.models import Run
from agents.pull import leases
from disputes import intake
from disputes.protocol.responses.response import read_response
from disputes.protocol.text.documents import Problem
from disputes.sessions import handing_in
from tasks.configuration.policy import HOLD
from tasks.models import Submission, Task
from tasks.states import Status

WITHOUT_WORK = "Commit your work, with `git add` for new files; if nothing has to change, repeat the command."
ASKED_MAX = 20  # answers; of one refusal no more than 50 reasons are kept


@transaction.atomic(savepoint=False)
def submit(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Hand in a coder's commit and answers; mandatory findings that it declines open conflicts at once."""
    caller, task = callers.caller_of(user, "submit", ref, data["model"])
    require_status(task, Status.IN_PROGRESS, "submit")
    if task.is_session:
        response = handing_in.read_document(task, data["response"])
    else:
        response = read_response(data["response"], strict=True)
    require_turn(caller, task)
    run, actor = caller.run, caller.actor
    submission = Submission(
        task=task, sha=data["sha"], base_sha=_base_of(caller, task, data["sha"]), by_agent=actor.label,
        by_model=actor.model, by_vendor=run.agent.made_by if run and run.agent else "",
        by_user_id=actor.user_id,
    )  # fmt: skip
    against = intake.check_response(task, response)
    if run:
        asked = dict(list(against.unclear.items())[:ASKED_MAX])
        ask_back(run, [*asked.values()], f"{intake.WAYS_TO_ANSWER}; or repeat the command.", about=asked)
        ask_back(run, without_work(submission, run), WITHOUT_WORK)
    conflicts = intake.take_submission(submission, response, against, actor=actor, note=data["notes"])
    close_run(caller, submission=submission)
    if run and run.is_pulled:
        leases.hand_over(run, submission)
    message = f"{task.ref} is handed in at {submission.sha[:12]}."
    if any(conflict.effect == HOLD for conflict in conflicts):
        message += " It waits for a human's ruling."
    return reply(message, task, conflicts=[conflict.ref for conflict in conflicts])


def without_work(submission: Submission, run: Run) -> list[Problem]:
    """Return the doubt about a first hand-in of the commit at which the run began (ANS-10)."""
    task = submission.task
    if submission.sha != run.base_sha or task.is_session or task.submissions.exists():
        return []
    if Run.objects.filter(task=task, salvage_sha=submission.sha).exists():
        return []  # an earlier run did it
    return [Problem(0, "nothing is committed since you began")]


def _base_of(caller: Caller, task: Task, sha: str) -> str:
    if caller.run:
        return caller.run.base_sha
    last = task.submissions.standing().fetched().newest_first().first()
    return last.sha if last and last.sha else sha  # an imported document names no commit

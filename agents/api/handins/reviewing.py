from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Expression, QuerySet

from agents.api.handins import caller as callers
from agents.api.handins.asking_back import ask_back
from agents.api.handins.caller import Caller, end_run, reply, require_status
from agents.crew import choosing
from agents.models import Run
from disputes import intake
from disputes.protocol.reviews.doubts import (
    doubts_about_approval,
    doubts_about_note,
    doubts_about_rejection,
)
from disputes.protocol.reviews.review import ReadReview, read_review
from disputes.protocol.text.documents import Problem
from disputes.sessions import handing_in
from tasks.database.prepared import Prepared, PreparedUpdate, refresh
from tasks.errors import Invalid, Refused
from tasks.models import Submission, Task
from tasks.states import Status

MAX_FINDINGS = 200


@transaction.atomic(savepoint=False)
def review(user: Any, ref: str, data: dict[str, Any], *, approves: bool) -> dict[str, Any]:
    """Approve or reject the submitted commit that the reviewer's run was started for."""
    read = _read_review(data, approves)
    verb = "approve" if approves else "reject"
    caller, task = callers.caller_of(user, verb, ref, data["model"])
    require_status(task, Status.REVIEW, verb)
    submission = _under_review(caller, task)
    if task.is_session:
        handing_in.check_review(task, data["review"] or data["notes"])
    doubts = _doubts(data, read, approves, task.is_session)
    if data["check"]:
        unsure = [
            f"Unsure: line {each.line}: {each.reason}" if each.line else f"Unsure: {each.reason}"
            for each in doubts
        ]
        return reply(
            f"Nothing is handed in yet. {task.ref} would be read as follows.", task,
            read_as=[*read_as(read, approves), *unsure],
        )  # fmt: skip
    if caller.run and not data["confirm"]:
        ask_back(
            caller.run, doubts,
            "Correct the review, or repeat the command with --confirm. This is how it is read:",
            understood=read_as(read, approves),
        )  # fmt: skip
    agent = caller.run.agent if caller.run else None
    turn = choosing.Roster(choosing.Crew(), [task]).turn_of(task) if agent else choosing.Turn()
    end_run(caller, task)
    taken = intake.take_review(
        submission, read, approves=approves, actor=caller.actor, user_id=caller.actor.user_id,
        waiting_for=turn.missing, without=turn.without, vendor=agent.made_by if agent else "",
    )  # fmt: skip
    if caller.run:
        _reviewing.write(caller.run.pk, review=taken.review)
    refresh(task)
    said = f"{task.ref}: {taken.review.get_verdict_display()}; it is {task.status} now."
    if taken.outcome is None:
        said = f"{task.ref}: {taken.review.get_verdict_display()}; other reviewers are still at it."
    return reply(
        said,
        task,
        findings=[
            {"code": f.code, "severity": f.severity, "mandatory": f.mandatory, "title": f.title}
            for f in taken.findings
        ],
        dropped=taken.dropped,
    )


def _under_review(caller: Caller, task: Task) -> Submission:
    """Return the submission under review. Raises Refused: not_verified, stale_turn, self_review."""
    submission = task.last_submission()
    if submission is None or submission.state != Submission.State.VERIFIED:
        state = submission.state if submission else "missing"
        raise Refused(
            "not_verified", f"The submission of {task.ref} is {state}; only a verified one is reviewed.",
            "Wait until build and tests have run.",
        )  # fmt: skip
    if caller.run and caller.run.sha != submission.sha:
        raise Refused("stale_turn", f"{task.ref} has a newer submission than you reviewed.", "End your work.")
    if caller.run and caller.run.agent_id and _coders.rows(submission.pk, caller.run.agent_id):
        raise Refused(
            "self_review", "An agent may not review its own submission.",
            "End your work; another reviewer takes it.", status=403,
        )  # fmt: skip
    return submission


def read_as(read: ReadReview, approves: bool) -> list[str]:
    """Return how the review is read, a line each: the verdict, then every finding with severity and place."""
    verdict = read.verdict.value if read.verdict else "none that can be read"
    lines = [f"Handed in as {'an approval' if approves else 'a rejection'}; verdict in the text: {verdict}."]
    for number, found in enumerate(read.findings, start=1):
        at = f" at {found.location}" if found.location else ", at no place"
        severity = found.severity.upper() if found.severity else "MEDIUM, as none is stated"
        back = ", withdrawn" if found.withdrawn else ""
        lines.append(f"{number}. {severity}{back}: {' '.join(found.title.split())[:200]}{at}")
    return lines if read.findings else [*lines, "No finding."]


def _doubts(data: dict[str, Any], read: ReadReview, approves: bool, is_session: bool) -> tuple[Problem, ...]:
    if isinstance(data["review"], dict):
        return read.warnings
    if approves:
        if not is_session and not data["review"]:
            return doubts_about_note(read)
        # The document of a session has passed a gate of its own.
        return doubts_about_approval(read, free_remarks=is_session)
    return doubts_about_rejection(read)


def _coders_of(submission: Expression, agent: Expression) -> QuerySet[Run]:
    by_agent = Run.objects.filter(role=Run.Role.CODER, submission=submission, agent=agent)
    return by_agent.order_by().values_list("pk")[:1]


_coders = Prepared(_coders_of)
_reviewing = PreparedUpdate(lambda pk: Run.objects.filter(pk=pk), "review")


def _read_review(data: dict[str, Any], approves: bool) -> ReadReview:
    document = data["review"] or data["notes"]
    if not document and not approves:
        raise Invalid(
            "malformed_review", "A rejection says what is wrong.", "Add --notes TEXT or --file REVIEW."
        )
    read = read_review(document, rejects=not approves)
    if len(read.findings) > MAX_FINDINGS:
        raise Invalid(
            "too_many_findings",
            f"The review has {len(read.findings)} findings; {MAX_FINDINGS} are the limit.",
            "Name what matters most.",
        )  # fmt: skip
    if data["review"] and data["notes"]:
        text = f"{read.text}\n\n{data['notes']}".strip()
        read = replace(read, text=text)
    if not approves and not read.findings and not read.text.strip():
        raise Invalid("malformed_review", "The review holds no finding and no word.", "Say what is wrong.")
    return read

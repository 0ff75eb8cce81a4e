from typing import Any

from django.db import transaction

from agents.api.handins import caller as callers
from agents.api.handins.caller import Caller, end_run, one_line, reply
from disputes import opening
from disputes.closed_findings import settled_findings
from disputes.models import Conflict
from tasks.configuration.policy import LOG, SHIP
from tasks.errors import Invalid, Refused
from tasks.models import Finding, Submission
from tasks.states import Status, severity_rank
from tasks.text.counting import some_of

CODES_TOLD = 20  # findings that a refusal names


@transaction.atomic(savepoint=False)
def dispute(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Put the task, or one of its findings, before a human."""
    caller, task = callers.caller_of(user, "dispute", ref, data["model"])
    if task.status not in {Status.IN_PROGRESS, Status.REVIEW, Status.DISPUTED, Status.COMPLETED}:
        raise Refused(
            "wrong_status", f"{task.ref} is {task.status}; nothing is in dispute there.",
            "Look at the task again: `steroids tasks show`.",
        )  # fmt: skip
    finding = None
    if data["finding"]:
        known = task.findings.standing()
        finding = known.filter(code=data["finding"].upper()).select_related("first", "review").first()
        if finding is None:
            codes = some_of(list(known.values_list("code", flat=True)), CODES_TOLD) or "none yet"
            raise Invalid(
                "unknown_finding", f"{data['finding']} is not a finding of {task.ref}.", f"Findings: {codes}."
            )
        _may_be_disputed(finding)
    reason = opening.read_reason(data["reason"])
    position = _position(data, reason)
    side = caller.side
    submission = task.last_submission()
    conflict = opening.open_conflict(
        task,
        kind=Conflict.Kind.DISAGREEMENT,
        origin=Conflict.Origin.CLI,
        opened_as=side,
        question=finding.title if finding else f"{reason.label}: {one_line(position)}",
        actor=caller.actor,
        finding=finding.origin if finding else None,
        submission=submission,
        severity=_severity(data, finding),
        reason=reason,
        **_positions(caller, finding, submission, position),
    )
    if conflict.is_logged:
        return reply(f"{conflict.ref} is recorded on {task.ref}; nothing waits for it.", task)
    then = "a human rules on it"
    if task.project.exit_type:
        then = f"nobody is asked before {task.project.name}, which has ended, is taken up again"
    message = f"{conflict.ref} is open on {task.ref}; {then}."
    if conflict.effect == SHIP and side == "reviewer" and task.status == Status.REVIEW:
        message += " It does not hold the task: go on, and hand in your review of the rest."
        return reply(message, task, conflicts=[conflict.ref])
    end_run(caller, task)
    if task.status in {Status.IN_PROGRESS, Status.REVIEW}:
        task.hold(actor=caller.actor, note=f"{conflict.ref} {conflict.question}"[:500])
    return reply(message, task, conflicts=[conflict.ref])


def _may_be_disputed(finding: Finding) -> None:
    """Raise Refused if a human has decided the finding (DEC-2) or a ruling on it is awaited already."""
    conflicts = Conflict.objects.about(finding).disagreements()
    if conflicts.open().exists():
        raise Refused("already_open", f"{finding.code} is in dispute already.", "Wait for the ruling.")
    decided = conflicts.ruled().exists()
    if decided or finding.origin.pk in settled_findings(finding.task):
        raise Invalid(
            "RE_ARGUED_CONFLICT",
            f"{finding.code} was decided by a human and cannot be argued again.",
            "Carry the ruling out. Trouble that it causes is a new finding.",
        )


def _position(data: dict[str, Any], reason: Conflict.Reason) -> str:
    """Return the caller's position; if the reason is none of the six, its words are kept in the position."""
    position, words = data["position"].strip(), data["reason"].strip()
    if not position:
        return words
    unknown = reason == Conflict.Reason.OTHER and words.lower() != reason
    return f"{position}\n\nReason: {words}" if unknown else position


def _severity(data: dict[str, Any], finding: Finding | None) -> str:
    """Return the severity that the caller names, but at least the finding's own: no way round it (DIS-5)."""
    named = data.get("severity") or ""
    if finding is None:
        return named
    return max(named or finding.severity, finding.severity, key=severity_rank)


def _positions(
    caller: Caller, finding: Finding | None, submission: Submission | None, position: str
) -> dict[str, str]:
    """Return both sides' positions verbatim and their labels, as far as they were heard."""
    if caller.side == "reviewer":
        coder = submission.by_agent if submission else ""
        return {
            "reviewer_position": position, "reviewer_label": caller.actor.label,
            "coder_position": "", "coder_label": coder,
        }  # fmt: skip
    return {
        "reviewer_position": opening.position_of(finding) if finding else "",
        "reviewer_label": finding.review.by_agent if finding else "",
        "coder_position": position,
        "coder_label": caller.actor.label,
    }


@transaction.atomic(savepoint=False)
def log(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Record a minor disagreement: nothing waits for it, and the coder's way holds."""
    if not data["minor"]:
        raise Invalid("not_minor", "Only minor disputes are logged.", "Use `steroids dispute create`.")
    caller, task = callers.caller_of(user, "log", ref, data["model"])
    conflict = opening.open_conflict(
        task, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.MINOR, opened_as=caller.side,
        question=one_line(data["notes"]), actor=caller.actor, submission=task.last_submission(),
        severity="low", effect=LOG, coder_position=data["notes"], coder_label=caller.actor.label,
    )  # fmt: skip
    return reply(f"{conflict.ref} is recorded on {task.ref}; nothing waits for it.", task)

"""The verbs of hand-ins: a token, a live run of the right role, one transaction, rows.

A final verb (submit, approve, reject, dispute, blocked) ends the run: its token is dead from then on. What is
malformed is refused with line and reason, and the run goes on.
"""

import re
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max

from agents.api.principals import RunPrincipal
from agents.models import Run
from disputes import cases, intake
from disputes.models import Conflict
from disputes.protocol.responses import read_response
from disputes.protocol.reviews import ReadReview, read_review
from tasks.access import MAINTAIN, RULE, tasks_for
from tasks.comments import add_comment
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Finding, Submission, Task
from tasks.states import Status, severity_rank

MAX_FINDINGS = 200

# Who may do what (C2). People need the membership role, runs the run's role.
RUN_VERBS: dict[str, frozenset[str]] = {
    "submit": frozenset({Run.Role.CODER}),
    "approve": frozenset({Run.Role.REVIEWER}),
    "reject": frozenset({Run.Role.REVIEWER}),
    "dispute": frozenset({Run.Role.CODER, Run.Role.REVIEWER}),
    "log": frozenset({Run.Role.CODER, Run.Role.REVIEWER}),
    "blocked": frozenset({Run.Role.CODER}),
    "comment": frozenset({Run.Role.CODER, Run.Role.REVIEWER}),
}
PERSON_VERBS = {
    "submit": MAINTAIN, "approve": MAINTAIN, "reject": MAINTAIN, "dispute": RULE, "log": RULE,
    "blocked": RULE, "comment": RULE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Caller:
    """Who hands in: an actor for the record, and the run if it is one."""

    actor: Actor
    run: Run | None = None

    @property
    def side(self) -> str:
        """coder, reviewer or human, for a conflict's `opened_as`."""
        return str(self.run.role) if self.run else "human"


def caller_of(user: Any, verb: str, ref: str, model: str = "") -> tuple[Caller, Task]:
    """The caller and the task, locked. Raises Refused: not_found, wrong_role, other_task, no_right."""
    if isinstance(user, RunPrincipal):
        run = user.run
        task = _locked(Task.objects.filter(pk=run.task_id))
        if task is None or task.ref != ref:
            raise Refused(
                "other_task", f"This run works on {run.task.ref}, not on {ref}.",
                f"Name {run.task.ref}.", status=403,
            )  # fmt: skip
        if run.role not in RUN_VERBS[verb]:
            allowed = ", ".join(sorted(name for name, roles in RUN_VERBS.items() if run.role in roles))
            raise Refused(
                "wrong_role", f"A {run.role} may not {verb}.", f"As a {run.role} you may: {allowed}.",
                status=403,
            )  # fmt: skip
        actor = Actor("run", run.agent_label, run_number=run.pk, model=model or run.model)
        return Caller(actor, run), task
    slug, _, number = ref.rpartition("-")
    named = (
        tasks_for(user).filter(project__slug=slug, number=number)
        if number.isascii() and number.isdigit()
        else Task.objects.none()
    )
    task = _locked(named)
    if task is None:
        raise Refused("not_found", f"There is no task {ref} that you may see.", "Check the name.", status=404)
    if not tasks_for(user, PERSON_VERBS[verb]).filter(pk=task.pk).exists():
        raise Refused(
            "no_right", f"You may not {verb} in {task.project.name}.", "Ask a maintainer.", status=403
        )
    return Caller(Actor.person(user)), task


def _locked(tasks: Any) -> Task | None:
    found: Task | None = tasks.select_for_update(of=("self",)).select_related("project", "section").first()
    return found


def _end_run(caller: Caller, task: Task, **made: Any) -> None:
    """The run has handed in: exactly once, and only in the turn it was started for."""
    run = caller.run
    if run is None:
        return
    if run.task_version != task.version:
        raise Refused(
            "stale_turn", f"{task.ref} moved on while this run worked: it is {task.status} now.",
            "End your work. What lies in the clone is saved.", status_now=task.status,
        )  # fmt: skip
    live = [Run.Status.STARTING, Run.Status.RUNNING]
    if not Run.objects.filter(pk=run.pk, fence=run.fence, status__in=live).update(
        status=Run.Status.CLOSING, token_hash=None, **made
    ):
        raise Refused("handed_in", f"Run {run.pk} has handed in already.", "End your work.")


def _needs(task: Task, status: str, verb: str) -> None:
    if task.status != status:
        raise Refused(
            "wrong_status", f"{task.ref} is {task.status}; to {verb} it must be {status}.",
            "Look at it again: `steroids tasks show`.", status_now=task.status,
        )  # fmt: skip


def _reply(message: str, task: Task, **more: Any) -> dict[str, Any]:
    return {"message": message, "task": task.ref, "status": str(task.status), "round": task.round, **more}


@transaction.atomic
def submit(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """A coder hands in a commit and its answers; declined mandatory findings open conflicts at once."""
    response = read_response(data["response"], strict=True)
    caller, task = caller_of(user, "submit", ref, data["model"])
    _needs(task, Status.IN_PROGRESS, "submit")
    known = intake.check_response(task, response)
    attempts = (
        task.submissions.standing().filter(round=task.round).aggregate(last=Max("attempt"))["last"] or 0
    )
    submission = Submission.objects.create(
        task=task,
        round=task.round,
        attempt=attempts + 1,
        sha=data["sha"],
        base_sha=_base_of(caller, task, data["sha"]),
        response=response.text or data["notes"],
        by_agent=caller.actor.label,
        by_model=caller.actor.model,
        by_user_id=caller.actor.user_id,
    )
    _end_run(caller, task, submission=submission)
    task.submit(actor=caller.actor, note=data["notes"] or f"commit {submission.sha[:12]}")
    intake.take_submission(submission, response, known, actor=caller.actor)
    held = [c for c in _open(task) if c.effect == "hold"]
    if held and task.status == Status.REVIEW:  # it may be parked already
        task.hold(actor=caller.actor, note=", ".join(f"{c.ref} {c.question}" for c in held)[:500])
    message = f"{task.ref} is handed in at {submission.sha[:12]}."
    if held:
        message += " It waits for a human's ruling."
    return _reply(message, task, conflicts=[conflict.ref for conflict in _open(task)])


def _base_of(caller: Caller, task: Task, sha: str) -> str:
    if caller.run:
        return caller.run.base_sha
    last = task.last_submission()
    return last.sha if last and last.sha else sha  # an imported document names no commit


def _open(task: Task) -> list[Conflict]:
    return list(Conflict.objects.filter(dispute__task=task, status=Conflict.Status.OPEN))


@transaction.atomic
def review(user: Any, ref: str, data: dict[str, Any], *, approves: bool) -> dict[str, Any]:
    """A reviewer approves or rejects the commit that its run was started for."""
    read = _read_review(data, approves)
    verb = "approve" if approves else "reject"
    caller, task = caller_of(user, verb, ref, data["model"])
    _needs(task, Status.REVIEW, verb)
    submission = task.last_submission()
    if submission is None or submission.state != Submission.State.VERIFIED:
        state = submission.state if submission else "missing"
        raise Refused(
            "not_verified", f"The submission of {task.ref} is {state}; only a verified one is reviewed.",
            "Wait until build and tests have run.",
        )  # fmt: skip
    if caller.run and caller.run.sha != submission.sha:
        raise Refused("stale_turn", f"{task.ref} has a newer submission than you reviewed.", "End your work.")
    if caller.run and caller.run.agent_id and _coded_by(submission, caller.run.agent_id):
        raise Refused("self_review", "An agent may not review its own submission.", status=403)
    _end_run(caller, task)
    taken = intake.take_review(
        submission, read, approves=approves, actor=caller.actor, user_id=caller.actor.user_id
    )
    if caller.run:
        Run.objects.filter(pk=caller.run.pk).update(review=taken.review)
    task.refresh_from_db()
    return _reply(
        f"{task.ref}: {taken.review.get_verdict_display()}; it is {task.status} now.",
        task,
        findings=[
            {"code": f.code, "severity": f.severity, "mandatory": f.mandatory, "title": f.title}
            for f in taken.findings
        ],
        dropped=taken.dropped,
    )


def _coded_by(submission: Submission, agent_pk: int) -> bool:
    return Run.objects.filter(role=Run.Role.CODER, submission=submission, agent=agent_pk).exists()


def _read_review(data: dict[str, Any], approves: bool) -> ReadReview:
    document = data["review"] or data["notes"]
    if not document and not approves:
        raise Refused(
            "malformed_review", "A rejection says what is wrong.",
            "Add --notes TEXT or --file REVIEW.", status=422,
        )  # fmt: skip
    read = read_review(document)
    if len(read.findings) > MAX_FINDINGS:
        raise Refused(
            "too_many_findings",
            f"The review has {len(read.findings)} findings; {MAX_FINDINGS} are the limit.",
            "Name what matters most.", status=422,
        )  # fmt: skip
    if data["review"] and data["notes"]:
        text = f"{read.text}\n\n{data['notes']}".strip()
        read = ReadReview(read.verdict, read.raw_verdict, read.findings, text)
    if not approves and not read.findings and not read.text.strip():
        raise Refused(
            "malformed_review", "The review holds no finding and no word.", "Say what is wrong.", status=422
        )
    return read


@transaction.atomic
def dispute(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Put the task, or one of its findings, before a human."""
    caller, task = caller_of(user, "dispute", ref, data["model"])
    if task.status not in {Status.IN_PROGRESS, Status.REVIEW, Status.DISPUTED, Status.COMPLETED}:
        raise Refused("wrong_status", f"{task.ref} is {task.status}; nothing is in dispute there.", "")
    finding = None
    if data["finding"]:
        known = task.findings.standing()
        finding = known.filter(code=data["finding"].upper()).select_related("first", "review").first()
        if finding is None:
            codes = ", ".join(known.values_list("code", flat=True)) or "none yet"
            raise Refused(
                "unknown_finding", f"{data['finding']} is not a finding of {task.ref}.",
                f"Findings: {codes}.", status=422,
            )  # fmt: skip
        _may_be_disputed(finding)
    reason = cases.read_reason(data["reason"])
    position = _position(data, reason)
    side = caller.side
    submission = task.last_submission()
    conflict = cases.open_conflict(
        task,
        kind=Conflict.Kind.DISAGREEMENT,
        origin=Conflict.Origin.CLI,
        opened_as=side,
        question=finding.title if finding else f"{reason.label}: {_one_line(position)}",
        actor=caller.actor,
        finding=finding.origin if finding else None,
        submission=submission,
        severity=_severity(data, finding),
        reason=reason,
        **_positions(caller, finding, submission, position),
    )
    if conflict.status == Conflict.Status.LOGGED:
        return _reply(f"{conflict.ref} is recorded on {task.ref}; nothing waits for it.", task)
    _end_run(caller, task)
    if task.status in {Status.IN_PROGRESS, Status.REVIEW}:
        task.hold(actor=caller.actor, note=f"{conflict.ref} {conflict.question}"[:500])
    message = f"{conflict.ref} is open on {task.ref}; a human rules on it."
    return _reply(message, task, conflicts=[conflict.ref])


def _may_be_disputed(finding: Finding) -> None:
    """Not what a human has decided (DEC-2), nor what waits for a ruling already."""
    conflicts = Conflict.objects.filter(finding=finding.origin, kind=Conflict.Kind.DISAGREEMENT).exclude(
        followed=Conflict.Followed.REOPENED
    )
    if conflicts.filter(status=Conflict.Status.OPEN).exists():
        raise Refused("already_open", f"{finding.code} is in dispute already.", "Wait for the ruling.")
    decided = conflicts.filter(status=Conflict.Status.DECIDED).exists()
    if decided or finding.origin.pk in intake.settled_findings(finding.task):
        raise Refused(
            "RE_ARGUED_CONFLICT",
            f"{finding.code} was decided by a human and cannot be argued again.",
            "Carry the ruling out. Trouble that it causes is a new finding.",
            status=422,
        )


def _position(data: dict[str, Any], reason: Conflict.Reason) -> str:
    """The position; the words of a reason that is none of the six are kept in it."""
    position, words = data["position"].strip(), data["reason"].strip()
    if not position:
        return words
    unknown = reason == Conflict.Reason.OTHER and words.lower() != reason
    return f"{position}\n\nReason: {words}" if unknown else position


def _severity(data: dict[str, Any], finding: Finding | None) -> str:
    """What the caller says, but never below the finding's own: a label is no way round it (MODELS 26)."""
    named = data.get("severity") or ""
    if finding is None:
        return named
    return max(named or finding.severity, finding.severity, key=severity_rank)


def _positions(
    caller: Caller, finding: Finding | None, submission: Submission | None, position: str
) -> dict[str, str]:
    """Both sides verbatim, as far as they were heard."""
    if caller.side == "reviewer":
        coder = submission.by_agent if submission else ""
        return {
            "reviewer_position": position, "reviewer_label": caller.actor.label,
            "coder_position": "", "coder_label": coder,
        }  # fmt: skip
    return {
        "reviewer_position": intake.position_of(finding) if finding else "",
        "reviewer_label": finding.review.by_agent if finding else "",
        "coder_position": position,
        "coder_label": caller.actor.label,
    }


def _one_line(text: str) -> str:
    """The first sentence, short enough for a row of the queue."""
    first = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
    return first if len(first) <= 120 else f"{first[:117]}..."


@transaction.atomic
def log(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """A minor disagreement: recorded, nothing waits, the coder's way stands."""
    if not data["minor"]:
        raise Refused(
            "not_minor", "Only minor disputes are logged.", "Use `steroids dispute create`.", status=422
        )
    caller, task = caller_of(user, "log", ref, data["model"])
    conflict = cases.open_conflict(
        task, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.MINOR, opened_as="minor",
        question=_one_line(data["notes"]), actor=caller.actor, submission=task.last_submission(),
        severity="low", coder_position=data["notes"], coder_label=caller.actor.label,
    )  # fmt: skip
    return _reply(f"{conflict.ref} is recorded on {task.ref}; nothing waits for it.", task)


@transaction.atomic
def blocked(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """The coder cannot go on without an access, a tool or a fact; a human is asked."""
    caller, task = caller_of(user, "blocked", ref)
    _needs(task, Status.IN_PROGRESS, "report as blocked")
    _end_run(caller, task)
    conflict = cases.park(
        task, Conflict.Origin.BLOCKED, f"The coder is blocked: {_one_line(data['reason'])}"[:500],
        actor=caller.actor, detail=data["reason"],
    )  # fmt: skip
    return _reply(f"{task.ref} waits for help ({conflict.ref}).", task, conflicts=[conflict.ref])


@transaction.atomic
def comment(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """A remark on the task; does not end the run."""
    caller, task = caller_of(user, "comment", ref)
    parent = task.comments.filter(pk=data["parent"]).first() if data["parent"] else None
    if data["parent"] and parent is None:
        raise Refused("not_found", f"There is no comment {data['parent']} on {task.ref}.", "", status=404)
    made = add_comment(
        task.project, data["body"], actor=caller.actor, task=task, parent=parent, target=data["target"],
        dispute=live.ref if (live := cases.live_dispute(task)) else "",
    )  # fmt: skip
    return _reply(f"Comment {made.pk} is on {task.ref}.", task)

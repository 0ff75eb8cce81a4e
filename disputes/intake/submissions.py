"""A response becomes answers and conflicts."""

from django.db.models import Max

from disputes import opening, rearguing, stage_objections
from disputes.closed_findings import settled_findings
from disputes.completion import rates, stuck
from disputes.intake.due import asked_findings, findings_to_answer, newest_of_each
from disputes.models import Conflict
from disputes.protocol.responses.response import Disagreement, ReadResponse
from disputes.sessions import findings as session_findings
from disputes.silence import flags
from tasks.configuration.policy import HOLD
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Answer, Finding, Submission, Task
from tasks.states import Status


def check_response(task: Task, response: ReadResponse) -> dict[str, Finding]:
    """What the response names, by code (VAL-10). Raises Refused: unknown, unanswered or re-argued.

    In a session nobody must answer by a certain form: what a document passes over is looked for (SIL-6).
    """
    if task.is_session:
        known = session_findings.by_printed_code(task)
        rearguing.refuse_rearguing(task, response, known, settled_findings(task).values())
        rates.demand_justification(task, response, findings_to_answer(task), known)
        return known
    known = {finding.code: finding for finding in task.findings.standing().select_related("first")}
    due = findings_to_answer(task)
    problems = [
        {"line": answer.line, "reason": f"{answer.code} is not a finding of {task.ref}"}
        for answer in response.answers
        if answer.code not in known
    ]
    if problems:
        codes = ", ".join(finding.code for finding in due) or "none is open"
        raise Refused(
            "unknown_finding", f"The response to {task.ref} names findings that do not exist.",
            f"Open findings: {codes}.", status=422, details=problems,
        )  # fmt: skip
    rearguing.refuse_rearguing(task, response, known, settled_findings(task).values())
    named = {known[answer.code].origin.pk for answer in response.answers}
    asked = asked_findings(task)
    silent = [
        finding
        for finding in due
        if (finding.mandatory or finding.origin.pk in asked) and finding.origin.pk not in named
    ]
    if silent:
        raise Refused(
            "unanswered_findings",
            f"The response to {task.ref} does not answer {', '.join(f.code for f in silent)}.",
            "Give each finding a table row `| CODE | addressed | what was done |`, or a block "
            "`## DISAGREE: CODE` with the concern quoted and a rationale.",
            status=422,
            details=[{"line": 0, "reason": f"{f.code} ({f.severity}): {f.title}"} for f in silent],
        )
    rates.demand_justification(task, response, due, known)
    return known


def take_submission(submission: Submission, response: ReadResponse, *, actor: Actor, note: str = "") -> None:
    """Rows, conflicts and the task's move out of what a coder hands in.

    The submission is not saved yet: it becomes the next attempt of the task's round. Raises Refused as
    `check_response` does.
    """
    task = submission.task
    known = check_response(task, response)
    earlier = task.submissions.standing().filter(round=task.round).aggregate(last=Max("attempt"))
    submission.round, submission.attempt = task.round, (earlier["last"] or 0) + 1
    submission.stage, submission.response = task.stage, response.text or note
    submission.save()
    stage_objections.handed_in(task, actor=actor)
    task.submit(actor=actor, note=note or f"commit {submission.sha[:12]}")
    take_answers(submission, response, known, actor=actor)
    held = Conflict.objects.filter(dispute__task=task, status=Conflict.Status.OPEN, effect=HOLD)
    if held and task.status == Status.REVIEW:  # it may be disputed already
        task.hold(actor=actor, note=", ".join(f"{each.ref} {each.question}" for each in held)[:500])


def take_answers(
    submission: Submission, response: ReadResponse, known: dict[str, Finding], *, actor: Actor
) -> None:
    """Answers and conflicts of a response that `check_response` has passed."""
    task = submission.task
    given = {known[answer.code].origin.pk: answer for answer in response.answers}
    Answer.objects.bulk_create(
        Answer(
            submission=submission, finding=known[answer.code].origin, kind=answer.kind,
            text=answer.text, line=answer.line or None, place=answer.place,
        )
        for answer in given.values()
    )  # fmt: skip
    for finding in findings_to_answer(task):
        if finding.origin.pk not in given:
            Answer.objects.get_or_create(
                submission=submission, finding=finding.origin, defaults={"kind": Answer.Kind.SILENT}
            )
    for block in response.disagreements:
        finding = known[block.code]
        if finding.mandatory and not _in_open_conflict(finding):
            disagree(submission, finding, block, actor=actor)
    rearguing.note_repeated(submission, known, settled_findings(task).values(), actor=actor)
    flags.answered(submission, given, actor=actor)
    rates.check(submission, actor=actor)
    for missing in [*stuck.lacks_what_it_takes(submission).values()][:1]:
        opening.stop_for_help(
            task, Conflict.Origin.BLOCKED, f"{missing.why.capitalize()}: {task.title}", actor=actor
        )


def _in_open_conflict(finding: Finding) -> bool:
    return Conflict.objects.about(finding).open().disagreements().exists()


def disagree(submission: Submission, finding: Finding, block: Disagreement, *, actor: Actor) -> Conflict:
    """A declined mandatory finding opens its conflict at once (DIS-1)."""
    return opening.open_conflict(
        submission.task,
        kind=Conflict.Kind.DISAGREEMENT,
        origin=Conflict.Origin.DISAGREE,
        opened_as="coder",
        question=finding.title,
        finding=finding.origin,
        submission=submission,
        severity=finding.severity,
        actor=actor,
        reviewer_position=position_of(finding),
        reviewer_label=", ".join(raised_by(finding))[:120],
        evidence=not_raised_by(finding),
        coder_position=block.position,
        coder_rationale=block.rationale,
        coder_label=submission.by_agent,
        alternative=block.alternative,
    )


def raised_by(finding: Finding) -> list[str]:
    """Who raised the point at the same submission: it is one finding, whoever saw it (ARB-9)."""
    same = finding.chain().standing().filter(review__submission=finding.review.submission_id)
    names = same.order_by("pk").values_list("review__by_agent", flat=True)
    return list(dict.fromkeys(names)) or [finding.review.by_agent]


def not_raised_by(finding: Finding) -> list[str]:
    """What the other reviewers of that submission said of it, where they did not see the point."""
    seen = raised_by(finding)
    return [
        f"{review.by_agent} reviewed the same commit and did not raise it: {review.get_verdict_display()}."
        for review in newest_of_each(finding.review.of_its_turn())
        if review.by_agent not in seen
    ]


def position_of(finding: Finding) -> str:
    """What the reviewer asks for, in its own words."""
    return finding.suggestion or finding.text or finding.title

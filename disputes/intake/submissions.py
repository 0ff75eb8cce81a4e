"""Turning a coder's response into answers and conflicts."""

from dataclasses import dataclass, field

from django.db.models import Expression, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from disputes import opening, rearguing, stage_objections
from disputes.closed_findings import settled_findings
from disputes.completion import rates, stuck
from disputes.intake.due import asked_findings, findings_to_answer, newest_of, newest_of_each
from disputes.models import Conflict
from disputes.protocol.responses.answer_kinds import AnswerKind
from disputes.protocol.responses.response import Answered, Disagreement, ReadResponse
from disputes.protocol.rulings.rearguing import StandingDecision
from disputes.protocol.text.documents import Problem
from disputes.sessions import findings as session_findings
from disputes.sessions import gaps
from disputes.silence import flags
from tasks.configuration.policy import HOLD
from tasks.database.prepared import Prepared, PreparedInsert
from tasks.errors import Invalid
from tasks.events import Actor
from tasks.models import Answer, Finding, Submission, Task
from tasks.states import Status

WAYS_TO_ANSWER = (
    "Give each finding a table row `| CODE | addressed | what was done |`, or a block `## DISAGREE: CODE` "
    "with the concern quoted and a rationale"
)


WAVED_OFF = frozenset({AnswerKind.ACCEPTED_AS_IS, AnswerKind.DISCARDED})


@dataclass(frozen=True, slots=True)
class HeldAgainst:
    """What a response is checked against: the task's findings by code, those to answer, and the rulings."""

    known: dict[str, Finding] = field(default_factory=dict)
    due: list[Finding] = field(default_factory=list)
    decided: list[StandingDecision] = field(default_factory=list)
    unclear: dict[str, Problem] = field(default_factory=dict)  # answers that may be refusals, by code (ANS-7)
    waved_off: list[Disagreement] = field(default_factory=list)  # refusals without a block (DIS-1)


def _attempts(task: Expression, round_: Expression) -> QuerySet[Task]:
    rows = Submission.objects.standing().filter(task=task, round=round_)
    last = Subquery(rows.order_by("-attempt").values("attempt")[:1])
    return Task.objects.filter(pk=task).order_by().values_list(Coalesce(last, 0), Now())


_any_finding = Prepared(
    lambda task: Finding.objects.standing().filter(task=task).order_by().values_list("pk")[:1]
)
_last_attempt = Prepared(_attempts)
_open_conflicts = Prepared(lambda task: Conflict.objects.of(task).open().order_by())
_new_submissions = PreparedInsert(Submission)


def check_response(task: Task, response: ReadResponse) -> HeldAgainst:
    """Check that what the response names exists, and return what it was checked against (VAL-10).

    Raises Refused if it names unknown findings, leaves out findings that must be answered, argues again
    against a ruling or declines too much. A session demands answers only where a person asked for them:
    silence is looked for instead (SIL-6).
    """
    if task.is_session:
        known = session_findings.by_printed_code(task)
        settled, due = settled_findings(task), findings_to_answer(task)
        given = {None, *(gap.pk for gap in gaps.assigned(task))}
        owed = [row for row in newest_of(task, asked_findings(task)) if row.gap_id in given]
    elif not response.answers and not _any_finding.rows(task.pk):
        return HeldAgainst()
    else:
        known = {each.code: each for each in task.findings.standing().select_related("first").order_by()}
        asked, settled = asked_findings(task), settled_findings(task)
        due = findings_to_answer(task, asked, settled)
        owed = [finding for finding in due if finding.mandatory or finding.origin.pk in asked]
        _refuse_unknown(task, response, known, due)
    decided = rearguing.standing(task, known, settled.values())
    rearguing.refuse_rearguing(response, decided)
    _refuse_silence(task, response, known, owed)
    rates.demand_justification(task, response, due, known)
    waved_off = [] if task.is_session else _waved_off(response, known, due, decided)
    unclear = _unclear(response, known, owed)
    for block in waved_off:
        said = f"{block.code} must be done, or declined in a block `## DISAGREE: {block.code}`, with reasons"
        unclear.setdefault(block.code, Problem(block.line, said))
    return HeldAgainst(known, due, decided, unclear, waved_off)


def _refuse_unknown(
    task: Task, response: ReadResponse, known: dict[str, Finding], due: list[Finding]
) -> None:
    problems = [
        {"line": answer.line, "reason": f"{answer.code} is not a finding of {task.ref}"}
        for answer in response.answers
        if answer.code not in known
    ]
    if problems:
        codes = ", ".join(finding.code for finding in due) or "none is open"
        raise Invalid(
            "unknown_finding", f"The response to {task.ref} names findings that do not exist.",
            f"Open findings: {codes}.", details=problems,
        )  # fmt: skip


def _refuse_silence(
    task: Task, response: ReadResponse, known: dict[str, Finding], owed: list[Finding]
) -> None:
    """Raise Refused if the response passes over findings that the coder has to answer."""
    named = {known[answer.code].origin.pk for answer in response.answers}
    silent = [each for each in owed if each.origin.pk not in named]
    if silent:
        raise Invalid(
            "unanswered_findings",
            f"The response to {task.ref} does not answer {', '.join(f.code for f in silent)}.",
            f"{WAYS_TO_ANSWER}.",
            details=[
                {"line": 0, "reason": f"{each.code} ({each.severity}): {each.title}"} for each in silent
            ],
        )


def _unclear(response: ReadResponse, known: dict[str, Finding], owed: list[Finding]) -> dict[str, Problem]:
    due = {finding.origin.pk for finding in owed}
    return {
        answer.code: Problem(answer.line, _doubt(answer))
        for answer in response.answers
        if (answer.is_unclear or answer.is_torn) and known[answer.code].origin.pk in due
    }


def _waved_off(
    response: ReadResponse, known: dict[str, Finding], due: list[Finding], decided: list[StandingDecision]
) -> list[Disagreement]:
    """Return the mandatory findings that are left as they are without a block, as drafts of one (DIS-1)."""
    mandatory = {finding.origin.pk for finding in due if finding.mandatory}
    ruled = {code for decision in decided for code in decision.codes}
    return [
        Disagreement(answer.code, answer.text or f"Only: {answer.kind}.", "", "", "", answer.line)
        for answer in response.answers
        if answer.kind in WAVED_OFF and answer.code not in ruled
        if known[answer.code].origin.pk in mandatory
    ]


def _doubt(answer: Answered) -> str:
    if answer.is_torn:
        return f"the response says of {answer.code} that it is done, and that it is not"
    return f"the answer to {answer.code} does not say what was done"


def take_submission(
    submission: Submission, response: ReadResponse, against: HeldAgainst, *, actor: Actor, note: str = ""
) -> list[Conflict]:
    """Save a coder's submission with its answers and conflicts, and move the task. Return its open conflicts.

    The submission is not saved yet: it becomes the next attempt of the task's round. The response has been
    checked with `check_response`.
    """
    task = submission.task
    earlier, submission.at = _last_attempt.first(task.pk, task.round)  # rulings go by the same clock
    submission.round, submission.attempt = task.round, earlier + 1
    submission.stage, submission.response = task.stage, response.text or note
    _new_submissions.insert(submission)
    stage_objections.handed_in(task, actor=actor)
    task.submit(actor=actor, note=note or f"commit {submission.sha[:12]}")
    take_answers(submission, response, against, actor=actor)
    waiting = sorted(_open_conflicts.found(task.pk), key=lambda conflict: conflict.pk)
    held = [conflict for conflict in waiting if conflict.effect == HOLD]
    if held and task.status == Status.REVIEW:  # the task may be disputed already
        task.hold(actor=actor, note=", ".join(f"{each.ref} {each.question}" for each in held)[:500])
    return waiting


def take_answers(
    submission: Submission, response: ReadResponse, against: HeldAgainst, *, actor: Actor
) -> None:
    """Write the answers and conflicts of a response that `check_response` has accepted."""
    task, known = submission.task, against.known
    if not known and not against.due:
        return
    given = {known[answer.code].origin.pk: answer for answer in response.answers}
    Answer.objects.bulk_create(
        Answer(
            submission=submission, finding=known[answer.code].origin, kind=answer.kind,
            text=answer.text, line=answer.line or None, place=answer.place,
        )
        for answer in given.values()
    )  # fmt: skip
    for finding in against.due:
        if finding.origin.pk not in given:
            Answer.objects.get_or_create(
                submission=submission, finding=finding.origin, defaults={"kind": Answer.Kind.SILENT}
            )
    for block in (*response.disagreements, *against.waved_off):
        finding = known[block.code]
        if finding.mandatory and not Conflict.objects.about(finding).open().disagreements().exists():
            disagree(submission, finding, block, actor=actor)
    rearguing.note_repeated(submission, against.decided, actor=actor)
    flags.answered(submission, given, actor=actor)
    rates.check(submission, actor=actor)
    for missing in [*stuck.lacks_what_it_takes(submission).values()][:1]:
        opening.stop_for_help(
            task, Conflict.Origin.BLOCKED, f"{missing.why.capitalize()}: {task.title}", actor=actor
        )


def disagree(submission: Submission, finding: Finding, block: Disagreement, *, actor: Actor) -> Conflict:
    """Open the conflict for a mandatory finding that the coder declined (DIS-1)."""
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
        reviewer_position=opening.position_of(finding),
        reviewer_label=", ".join(raised_by(finding))[:120],
        evidence=not_raised_by(finding),
        coder_position=block.position,
        coder_rationale=block.rationale,
        coder_label=submission.by_agent,
        alternative=block.alternative,
    )


def raised_by(finding: Finding) -> list[str]:
    """Return who raised the point at the same submission: it is one finding, whoever saw it (ARB-9)."""
    same = finding.chain().standing().filter(review__submission=finding.review.submission_id)
    names = same.order_by("pk").values_list("review__by_agent", flat=True)
    return list(dict.fromkeys(names)) or [finding.review.by_agent]


def not_raised_by(finding: Finding) -> list[str]:
    """Return a line with the verdict of each reviewer of that submission who did not raise the point."""
    seen = raised_by(finding)
    return [
        f"{review.by_agent} reviewed the same commit and did not raise it: {review.get_verdict_display()}."
        for review in newest_of_each(finding.review.of_its_turn())
        if review.by_agent not in seen
    ]

"""Looking for silent disagreement in a submission once it is known what it changed."""

from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import Expression, Q, QuerySet

from disputes.closed_findings import settled_findings
from disputes.completion import root_causes
from disputes.intake import newest_of
from disputes.models import Conflict, Flag
from disputes.protocol.responses.answer_kinds import AnswerKind
from disputes.protocol.responses.disagree_blocks import Disagreement
from disputes.protocol.responses.response import Answered, ReadResponse, read_response
from disputes.protocol.rulings.compliance import place_changed
from disputes.protocol.silence.heuristics import judge_silence
from disputes.protocol.silence.suspicion import Suspicion, Watched
from disputes.protocol.text.diffs import Changes
from disputes.protocol.text.documents import MAX_BYTES
from disputes.protocol.text.locations import read_place
from disputes.rulings.blocking import is_held
from disputes.silence import flags
from disputes.silence.changes import changes_since_last_round
from tasks.database.prepared import Prepared
from tasks.events import SYSTEM
from tasks.models import Answer, Finding, Review, Submission, Task
from tasks.models.task import locked_task
from tasks.states import MOVES, Severity

ANSWER_MAX = 2_000  # how many characters of an answer in JSON are looked at


@transaction.atomic
def look_for_silence(submission: Submission) -> list[Flag]:
    """Flag the findings that this submission seems to pass over, and hold the task if a flag requires it.

    Return the new flags; a second call finds none.
    """
    task = locked_task(submission.task_id)
    review = reviewed_before(submission)
    if review is None or submission.rolled_back_id:
        return []
    found = list(suspicions(submission, task, watched_findings(submission, review)))
    raised = flags.raise_flags(submission, found, actor=SYSTEM)
    hold_for(raised, task)
    return raised


def hold_for(raised: list[Flag], task: Task) -> None:
    """Hold the task if one of its new flags requires it."""
    if raised and is_held(task) and task.status in MOVES["hold"].sources:
        codes = ", ".join(flag.finding.code for flag in raised)
        task.hold(actor=SYSTEM, note=f"{codes}: nothing was done about it, and nothing said."[:500])


def reviewed_before(submission: Submission) -> Review | None:
    """Return the review that this submission answers, or None."""
    found: Review | None = _answered.first(submission.task_id, submission.round)
    return found


def _of_earlier_rounds(task: Expression, round_: Expression) -> QuerySet[Review]:
    before = Review.objects.standing().filter(submission__task=task, submission__round__lt=round_)
    return before.order_by("-pk")[:1]


_answered = Prepared(_of_earlier_rounds)


def watched_findings(submission: Submission, review: Review) -> list[Finding]:
    """Return the findings that had to be answered: the review's, except follow-ups, and others answered too.

    What an earlier submission since that review has answered was judged with that submission.
    """
    now = {finding for (finding,) in _answered_by.rows(submission.pk)}
    between = (submission.task_id, review.submission.round, submission.round)
    before = {finding for (finding,) in _answered_between.rows(*between)}
    of_turn = _of_turn.found(review.pk, review.submission_id, review.turn)
    points = {finding.origin.pk: finding for finding in of_turn}  # one per point
    findings = sorted(points.values(), key=lambda finding: finding.pk)
    asked_besides = now - {finding.origin.pk for finding in findings}
    return [
        finding
        for finding in [*findings, *newest_of(submission.task, asked_besides)]
        if not (finding.is_follow_up or finding.is_withdrawn) and finding.origin.pk not in before - now
    ]


def _answers_by(submission: Expression) -> QuerySet[Answer, Any]:
    return Answer.objects.given().filter(submission=submission).order_by().values_list("finding")


def _answers_between(task: Expression, after: Expression, before: Expression) -> QuerySet[Answer, Any]:
    rounds = Submission.objects.standing().filter(task=task, round__gt=after, round__lt=before).taken()
    given = Answer.objects.given().filter(submission__in=rounds.order_by())
    return given.order_by().values_list("finding")


def _raised_in_turn(review: Expression, submission: Expression, turn: Expression) -> QuerySet[Finding]:
    of_turn = Q(review=review) | Q(review__submission=submission, review__turn=turn)
    return Finding.objects.filter(of_turn).select_related("first", "review").order_by("-pk")


_answered_by, _answered_between = Prepared(_answers_by), Prepared(_answers_between)
_of_turn = Prepared(_raised_in_turn)


def suspicions(
    submission: Submission, task: Task, findings: list[Finding]
) -> Iterator[tuple[Finding, Suspicion]]:
    """Yield what the heuristics say about each finding that had to be answered."""
    by_code = {finding.code: finding for finding in findings}
    changes = changes_since_last_round(submission)
    disagreements = Conflict.objects.of(task).disagreements()
    ruled = disagreements.open() | disagreements.awaited()
    settled = {*settled_findings(task), *ruled.values_list("finding", flat=True)}
    rolled_back = _rolled_back(task, submission.round)
    watched = [
        _watched(finding, submission, changes, rolled_back, is_settled=finding.origin.pk in settled)
        for finding in findings
    ]
    settings = task.project.config
    response, document = as_read(submission, findings)
    judgement = judge_silence(watched, response, document, settings=settings)
    for suspicion in judgement.flags:
        yield by_code[suspicion.code], suspicion


def _rolled_back(task: Task, round_: int) -> tuple[str, ...]:
    """Return how each rolled-back attempt at this round failed, oldest first (SIL-2)."""
    attempts = root_causes.analyse(task, round_).attempts if task.rollbacks.count() > 1 else ()
    return tuple(
        ", ".join(sorted({*attempt.marks, *(each.pattern for each in attempt.seen)}))
        for attempt in attempts
        if attempt.submission.rolled_back_id
    )


def _watched(
    finding: Finding,
    submission: Submission,
    changes: Changes | None,
    rolled_back: tuple[str, ...],
    *,
    is_settled: bool,
) -> Watched:
    return Watched(
        code=finding.code,
        ordinal=finding.ordinal,
        severity=Severity(finding.severity),
        title=finding.title,
        location=finding.location,
        impact=finding.impact,
        text=finding.text,
        is_settled=is_settled,
        rollbacks=rolled_back,
        silent_rounds=silent_rounds(finding.origin, submission.round),
        touched=place_changed(read_place(finding.location), changes),
    )


def silent_rounds(origin: Finding, before: int) -> tuple[int, ...]:
    """Return the earlier rounds that passed over the point, since people last called that a false alarm."""
    raised = Flag.objects.standing().filter(finding=origin, submission__round__lt=before)
    rounds, refused = set(), 0
    for round_, status, heuristics in raised.values_list("submission__round", "status", "heuristics"):
        if status == Flag.Status.FALSE_POSITIVE:
            refused = max(refused, round_)
        elif flags.PASSED_OVER & {*heuristics}:
            rounds.add(round_)
    silent = Answer.objects.standing().filter(finding=origin, kind=Answer.Kind.SILENT)
    silent = silent.filter(submission__round__lt=before).taken()
    rounds.update(silent.values_list("submission__round", flat=True))
    return tuple(sorted(round_ for round_ in rounds if round_ > refused))


def as_read(submission: Submission, findings: list[Finding]) -> tuple[ReadResponse, str]:
    """Return the answers as they were taken, under the findings' codes, and the text that contains them.

    Answers handed in as JSON are not in the text, so they are added at its end.
    """
    codes = {finding.origin.pk: finding.code for finding in findings}
    given = [
        (codes[answer.finding_id], answer)
        for answer in submission.answers.given()
        if answer.finding_id in codes
    ]
    lines = submission.response.split("\n")
    apart = [answer for _, answer in given if not answer.place]
    room = min(ANSWER_MAX, MAX_BYTES // (8 * max(len(apart), 1)))
    if apart and len(submission.response.encode()) > MAX_BYTES // 2:
        lines = []
    answers = []
    unclear = _unclear_lines(submission) if any(_claims(answer) for _, answer in given) else set()
    for code, answer in given:
        line = answer.line or 0
        if not answer.place:
            lines += ["", f"- {code}: {' '.join(answer.text[:room].split())}"]
            line = len(lines)
        is_unclear = _claims(answer) and line in unclear
        answers.append(Answered(code, AnswerKind(answer.kind), answer.text, line, answer.place, is_unclear))
    declined = tuple(
        Disagreement(answer.code, answer.text, "", "", "", answer.line)
        for answer in answers
        if answer.kind is AnswerKind.DECLINED
    )
    return ReadResponse(tuple(answers), declined, submission.response), "\n".join(lines)


def _claims(answer: Answer) -> bool:
    return bool(answer.place) and answer.kind == AnswerKind.ADDRESSED


def _unclear_lines(submission: Submission) -> set[int]:
    """Return the lines of the answers that do not say what was done; rows do not keep that (ANS-7)."""
    return {each.line for each in read_response(submission.response).answers if each.is_unclear}

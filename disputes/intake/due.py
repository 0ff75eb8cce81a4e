"""What the next submission of a task has to answer."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from django.db.models import Expression, Q, QuerySet

from disputes import opening
from disputes.closed_findings import settled_findings
from disputes.completion import stuck
from disputes.models import Conflict, Decision
from disputes.protocol.rulings.options import Option
from disputes.sessions import findings as session_findings
from tasks.database.prepared import Prepared
from tasks.models import Answer, Finding, Review, Submission, Task
from tasks.states import severity_rank


def last_reviews(task: Task) -> list[Review]:
    """Return the newest review at the task's present stage, preceded by the other reviews of its turn."""
    last = _last_review.first(task.pk, task.stage)
    if last is None or last.turn is None:
        return [last] if last else []
    return newest_of_each(_of_turn.found(last.submission_id, last.turn))


def _newest_of_stage(task: Expression, stage: Expression) -> QuerySet[Review]:
    of_task = Review.objects.standing().filter(submission__task=task).select_related("submission")
    of_stage = Q(submission__stage="") | Q(submission__stage=stage)
    return of_task.filter(of_stage).order_by("-pk")[:1]


def _of_one_turn(submission: Expression, turn: Expression) -> QuerySet[Review]:
    return Review.objects.of_turn(submission, turn).select_related("submission").order_by()


_last_review, _of_turn = Prepared(_newest_of_stage), Prepared(_of_one_turn)


def newest_of_each(reviews: Iterable[Review]) -> list[Review]:
    """Return each reviewer's last review, in the order in which they came."""
    by_reviewer: dict[str, Review] = {}
    for review in sorted(reviews, key=lambda each: each.pk):
        by_reviewer.pop(review.by_agent, None)
        by_reviewer[review.by_agent] = review
    return list(by_reviewer.values())


def findings_to_answer(
    task: Task, asked: set[int] | None = None, settled: Collection[int] | None = None
) -> list[Finding]:
    """Return what the next submission must answer: the last reviews' findings except settled and ruled ones.

    Follow-ups wait for another task (STK-4). In a session it is what the gaps that are given out need.
    Callers that already know the asked and the settled findings pass them in.
    """
    if task.is_session:
        return session_findings.to_answer(task)
    reviews = last_reviews(task)
    if not reviews:
        return []
    asked = asked_findings(task) if asked is None else asked
    settled = settled_findings(task) if settled is None else settled
    ruled = {*_undecided.found(task.pk), *settled}
    handed_in = {*_answered.found(task.pk, reviews[-1].submission.round)} - asked
    findings = _merged(reviews)
    besides = asked - ruled - {finding.origin.pk for finding in findings}
    due = [finding for finding in findings if finding.origin.pk not in ruled | handed_in]
    return [*newest_of(task, besides), *due]


def _under_discussion(task: Expression) -> QuerySet[Conflict]:
    conflicts = Conflict.objects.of(task).disagreements().filter(finding__isnull=False)
    return (conflicts.open() | conflicts.awaited()).order_by().values_list("finding", flat=True)


def _answered_after(task: Expression, round_: Expression) -> QuerySet[Answer]:
    later = Submission.objects.standing().taken().filter(task=task, round__gt=round_).order_by()
    return Answer.objects.filter(submission__in=later).order_by().values_list("finding", flat=True)


_undecided, _answered = Prepared(_under_discussion), Prepared(_answered_after)


def _merged(reviews: list[Review]) -> list[Finding]:
    """Return the points of these reviews except follow-ups, each once, as the gravest that was raised.

    The `raised_by` of each finding lists its reviewers.
    """
    points: dict[int, Finding] = {}
    names: dict[int, list[str]] = {}
    for finding in (each for key in sorted(review.pk for review in reviews) for each in _raised.found(key)):
        names.setdefault(finding.origin.pk, []).append(finding.review.by_agent)
        known = points.get(finding.origin.pk)
        if known is None or _weight(finding) > _weight(known):
            points[finding.origin.pk] = finding
    for key, finding in points.items():
        finding.raised_by = list(dict.fromkeys(names[key]))  # type: ignore[attr-defined]
    return list(points.values())


def _raised_in(review: Expression) -> QuerySet[Finding]:
    points = Finding.objects.filter(review=review, is_follow_up=False)
    return points.select_related("first", "review").order_by("ordinal")


_raised = Prepared(_raised_in)


def _weight(finding: Finding) -> tuple[bool, int]:
    return finding.mandatory, severity_rank(finding.severity)


def newest_of(task: Task, origins: Collection[int]) -> list[Finding]:
    """Return the points, given as findings first raised, in the form in which they were last raised."""
    if not origins:
        return []
    raised = task.findings.standing().of_points(origins)
    newest = {
        finding.origin.pk: finding for finding in raised.select_related("first", "review").order_by("pk")
    }
    return list(newest.values())


def asked_findings(task: Task) -> set[int]:
    """Return findings, as first raised, that a human told the coder to answer and that remain unanswered."""
    told: dict[int, datetime] = {}
    for ruling in _asking.found(task.pk):
        told |= dict.fromkeys(ASKING[Option(ruling.option)](ruling.conflict), ruling.at)
    if not told:
        return set()
    answers = Answer.objects.standing().filter(submission__task=task, finding__in=told).given().taken()
    answered = {pk for pk, at in answers.values_list("finding", "submission__at") if at > told[pk]}
    return told.keys() - answered


def _rulings_that_ask(task: Expression) -> QuerySet[Decision]:
    rulings = Decision.objects.of(task).standing().filter(
        option__in=[*ASKING],
        conflict__followed__in=[Conflict.Followed.WAITING, Conflict.Followed.APPLIED],
    )  # fmt: skip
    return rulings.select_related("conflict__submission").order_by("pk")


_asking = Prepared(_rulings_that_ask)


def _of_card(card: Conflict) -> set[int]:
    return {card.finding_id} if card.finding_id else set()


def _withdrawn(alert: Conflict) -> set[int]:
    return {pk for pk in opening.withdrawn_by(alert).values_list("finding", flat=True) if pk}


def _lacking(card: Conflict) -> set[int]:
    """Return what the coder said it could not do; empty unless the card is about a blocked submission."""
    if card.origin != Conflict.Origin.BLOCKED or card.submission is None:
        return set()
    return set(stuck.lacks_what_it_takes(card.submission))


# What each ruling tells the coder to answer, as findings first raised.
ASKING: dict[Option, Callable[[Conflict], set[int]]] = {
    Option.ASK: _of_card,
    Option.ASK_DISAGREE: _of_card,
    Option.REDUCE: _withdrawn,
    Option.RETRY: _lacking,
}

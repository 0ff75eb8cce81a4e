"""Why a task does not come to an end: its rows, compared with the classes STK-1 to STK-6."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Expression, F, Q, QuerySet

from disputes import opening
from disputes.models import NOT_STATED, Conflict, Flag
from disputes.protocol.completion.stuck import SILENT, Diagnosis, Step, Stuck, Turn, diagnose, needs_human
from disputes.protocol.reviews.identity import EarlierFindings, Raised
from disputes.protocol.reviews.review import Found
from disputes.protocol.rulings.compliance import place_changed
from disputes.protocol.text.diffs import Changes
from disputes.protocol.text.locations import read_place
from disputes.silence.changes import changes_since_last_round, round_before
from disputes.silence.flags import PASSED_OVER
from tasks.database.prepared import Prepared
from tasks.events import SYSTEM, Actor
from tasks.models import Answer, Finding, Review, Submission, Task
from tasks.models.task import locked_task
from tasks.states import Status
from tasks.text.places import location_of

EARLIER_MAX = 300  # how many findings a new one is compared with
ORIGINS = {
    Stuck.TRUE_DISPUTE: Conflict.Origin.REPEATED,
    Stuck.OSCILLATION: Conflict.Origin.OSCILLATION,
    Stuck.SILENCE: Conflict.Origin.UNANSWERED,
}


# --- Recognising earlier findings -------------------------------------------------------------------------


class Again(NamedTuple):
    """The finding, as first raised, that another one repeats for certain (`origin`) or perhaps (`possibly`).

    `score` says how alike they read; it is None if the code alone decided.
    """

    origin: Finding | None = None
    possibly: Finding | None = None
    score: float | None = None


def _raised_in(task: Expression) -> QuerySet[Finding, Any]:
    of_task = Finding.objects.standing().filter(task=task).order_by()
    return of_task.values_list("code", "is_follow_up", "first", "pk")


def _raised_before(task: Expression, review: Expression) -> QuerySet[Finding]:
    of_task = Finding.objects.standing().filter(task=task).exclude(review=review)
    rows = of_task.select_related("first").annotate(said_by=F("review__by_agent"))
    return rows.order_by("-pk")[:EARLIER_MAX]


_every, _of_others = Prepared(_raised_in), Prepared(_raised_before)


class Known:
    """A task's findings when one of its reviews is taken, read once for all the findings of that review."""

    def __init__(self, review: Review) -> None:
        self.review, submission = review, review.submission
        every = _every.rows(submission.task_id)
        self.codes = {code for code, *_ in every}
        self._blocking = {first or pk for _, is_follow_up, first, pk in every if not is_follow_up}
        self._earlier: list[Any] = _of_others.found(submission.task_id, review.pk)
        self._compared = EarlierFindings(
            (
                _raised(one, with_code=one.round < submission.round or one.said_by == review.by_agent)
                for one in self._earlier
            ),
            minimum=submission.task.project.config.same_finding_minimum,
        )

    def earlier(self, found: Found) -> Again:
        """Return what this finding repeats.

        Two reviewers of one commit both number their findings from 001, so that only the place and the words
        can tell that they mean the same point (ID-5, ARB-9).
        """
        match = self._compared.same_as(
            Raised(found.title, found.location, found.code, text=_said(found.impact, found.suggestion))
        )
        if match is None:
            return Again()
        finding = self._earlier[match.index].origin
        score = None if match.by_code else round(match.score, 2)
        return Again(finding, None, score) if match.sure else Again(None, finding, score)

    def may_be_follow_up(self, again: Again) -> bool:
        """Whether a finding is new as far as anybody can tell, or was never more than a follow-up."""
        return again.possibly is None if again.origin is None else again.origin.pk not in self._blocking


def _raised(finding: Finding, *, with_code: bool) -> Raised:
    codes = (finding.code, finding.raw_code) if with_code else ("", "")
    return Raised(finding.title, finding.location, *codes, _said(finding.impact, finding.suggestion))


def _said(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


# --- Goalposts --------------------------------------------------------------------------------------------


def changes_since_last_review(submission: Submission) -> Changes | None:
    """Return what changed since the last review; None for a first review, or if the last round had none.

    None after a rebase too, because every line may behave differently on the new base.
    """
    before = round_before(submission)
    if before is None or submission.rebased_from or not before.reviews.exists():
        return None
    return changes_since_last_round(submission)


# --- Going round in circles -------------------------------------------------------------------------------


def open_stuck(review: Review, findings: Iterable[Finding], *, actor: Actor = SYSTEM) -> list[Conflict]:
    """Open conflicts on what coder and reviewer will not settle between them, and return them. Idempotent."""
    opened: list[Conflict] = []
    again = [finding for finding in findings if finding.mandatory and finding.first_id is not None]
    if not again:
        return opened
    histories, repeats = Histories(again), _repeats_too_often(review)
    for finding in again:
        if finding.origin.pk in histories.disputed:
            continue
        turns = histories.turns_of(finding)
        found = diagnose(turns, asked=_was_asked(turns[:-1]))
        if found and found.kind in ORIGINS and found.step is Step.CONFLICT:
            opened.append(_open(review, finding, ORIGINS[found.kind], found.line(finding.code), actor))
        elif repeats:
            rounds = ", ".join(str(turn.round) for turn in turns)
            why = f"{finding.code}: raised in rounds {rounds}, and never settled. A human's turn: rule."
            opened.append(_open(review, finding, Conflict.Origin.ROUNDS, why, actor))
        else:
            continue
        histories.disputed.add(finding.origin.pk)
    return opened


def look_again(review: Review) -> list[Conflict]:
    """Look for circles once the code at the findings' places is known, and hold the task if there are any.

    Return the conflicts that this opens; empty if the task has moved on since the review.
    """
    with transaction.atomic():
        task = locked_task(review.submission.task_id)
        newest = task.submissions.standing().newest_first().first()
        if task.status != Status.IN_PROGRESS or newest is None or newest.pk != review.submission_id:
            return []
        opened = open_stuck(review, review.findings.select_related("first"))
        if opened:
            task.hold(actor=SYSTEM, note=", ".join(f"{c.ref} {c.question}" for c in opened)[:500])
        return opened


class _Raised(NamedTuple):
    """What is read of a finding to tell its history: there may be thousands, too many for model instances."""

    pk: int
    first: int | None
    round: int
    mandatory: bool
    title: str
    suggestion: str
    excerpt: str
    path: str
    line: int | None


class Histories:
    """The rounds of several points: how each was raised and answered, read in a few queries.

    `disputed` holds the points that already have a conflict: such a point comes back only if its ruling was
    not honoured.
    """

    def __init__(self, findings: Collection[Finding]) -> None:
        points = {finding.origin.pk for finding in findings}
        self._raised: dict[int, list[_Raised]] = defaultdict(list)
        raised = Finding.objects.of_points(points).standing().values_list(*_Raised._fields)
        for one in sorted(map(_Raised._make, raised), key=lambda one: (one.first is not None, one.pk)):
            self._raised[one.first or one.pk].append(one)
        answers = Answer.objects.standing().filter(finding__in=points).fetched()
        self._answers: dict[int, list[Answer]] = defaultdict(list)
        for answer in answers.order_by("submission__round", "submission__attempt"):
            self._answers[answer.finding_id].append(answer)
        # Each submission is read once, however many points it answers, because its texts are long.
        given = {answer.submission_id for each in self._answers.values() for answer in each}
        rows = Submission.objects.select_related("task").defer("diff", "specification", "response")
        self._submissions = rows.in_bulk(given)
        self._changes: dict[int, Changes | None] = {}
        flags = Flag.objects.standing().filter(finding__in=points).exclude(status=Flag.Status.FALSE_POSITIVE)
        self._untouched = {
            (point, round_)
            for point, round_, heuristics in flags.values_list("finding", "submission__round", "heuristics")
            if PASSED_OVER & {*heuristics}
        }
        conflicts = Conflict.objects.filter(finding__in=points).disagreements().standing().not_moot()
        self.disputed = set(conflicts.values_list("finding", flat=True))

    def turns_of(self, finding: Finding) -> list[Turn]:
        """Return the rounds of one of these points, oldest first."""
        point = finding.origin.pk
        raised = [*{one.round: one for one in self._raised[point]}.values()]  # once per round
        answers = {self._submissions[one.submission_id].round: one for one in self._answers[point]}
        turns = []
        for index, one in enumerate(raised):
            until = raised[index + 1].round if index + 1 < len(raised) else None
            given = [n for n in answers if n > one.round and (until is None or n <= until)]
            answer = answers[max(given)] if given else None
            flagged = answer is not None and (point, max(given)) in self._untouched
            turns.append(
                Turn(
                    round=one.round,
                    mandatory=one.mandatory,
                    answer=(SILENT if flagged else answer.kind) if answer else "",
                    answer_text=answer.text if answer else "",
                    content=_content(one),
                    touched=False if flagged else self._touched(one, answer),
                    request=_said(one.title, one.suggestion),
                )
            )
        return turns

    def _touched(self, finding: _Raised, answer: Answer | None) -> bool | None:
        """Whether the commit of an answer changed the place; None if that cannot be told."""
        if answer is None:
            return None
        key = answer.submission_id
        if key not in self._changes:
            self._changes[key] = changes_since_last_round(self._submissions[key])
        return place_changed(read_place(location_of(finding.path, finding.line)), self._changes[key])


def _content(finding: _Raised) -> str:
    """Return a hash of the code at the place without white space; empty if the host has not read it."""
    plain = "".join(finding.excerpt.split())
    return sha256(plain.encode()).hexdigest() if plain else ""


def _was_asked(turns: list[Turn]) -> bool:
    """Whether a rejection already sent the coder back over the same silence."""
    return any(turn.answer == SILENT and turn.touched is False for turn in turns[:-1])


def _repeats_too_often(review: Review) -> bool:
    """Whether the last rejections repeat their findings over as many rounds as the project tolerates."""
    task: Task = review.submission.task
    rejections = Review.objects.standing().filter(
        Q(pk=review.pk) | Q(verdict=Review.Verdict.NEEDS_REVISION), submission__task=task
    )
    if task.counts_since:
        rejections = rejections.filter(at__gt=task.counts_since)
    rounds: dict[int, set[int]] = {}
    mandatory = Finding.objects.filter(review__in=rejections, mandatory=True)
    for round_, first, pk in mandatory.order_by("round", "pk").values_list("round", "first", "pk"):
        rounds.setdefault(round_, set()).add(first or pk)
    return needs_human(list(rounds.values()), task.project.config.rounds_to_human)


def _open(review: Review, finding: Finding, origin: str, why: str, actor: Actor) -> Conflict:
    answers = Answer.objects.standing().filter(finding=finding.origin).exclude(kind=Answer.Kind.SILENT)
    answer = answers.exclude(text="").order_by("pk").last() or answers.order_by("pk").last()
    said = (answer.text or f"{answer.get_kind_display()}, it says, and no more.") if answer else NOT_STATED
    return opening.open_conflict(
        review.submission.task, kind=Conflict.Kind.DISAGREEMENT, origin=origin,
        opened_as="reviewer" if origin == Conflict.Origin.REPEATED else "system",
        question=finding.title, finding=finding.origin, submission=review.submission,
        severity=finding.severity, reviewer_position=opening.position_of(finding),
        reviewer_label=review.by_agent, coder_position=said,
        coder_label=answer.submission.by_agent if answer else review.submission.by_agent,
        evidence=[why], actor=actor,
    )  # fmt: skip


def lacks_what_it_takes(submission: Submission) -> dict[int, Diagnosis]:
    """Return the mandatory findings, as first raised, that the coder says it cannot do anything about."""
    lacking = {}
    for answer in _answers.found(submission.pk):
        found = diagnose([Turn(submission.round, True, answer=answer.kind, answer_text=answer.text)])
        if found and found.kind is Stuck.CANNOT_DO and _is_mandatory(answer.finding):
            lacking[answer.finding_id] = found
    return lacking


def _given(submission: Expression) -> QuerySet[Answer]:
    return Answer.objects.filter(submission=submission).select_related("finding").order_by("pk")


_answers = Prepared(_given)


def _is_mandatory(origin: Finding) -> bool:
    """Whether the point was mandatory when it was last raised."""
    newest = origin.newest()
    return bool(newest and newest.mandatory)

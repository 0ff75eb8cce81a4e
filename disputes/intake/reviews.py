"""Turning reviews into findings and conflicts; the last review of a turn moves the task."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Exists, Expression, OuterRef, Q, QuerySet

from disputes import opening, withdrawal
from disputes.closed_findings import settled_findings
from disputes.completion import stuck
from disputes.completion.stuck import Again
from disputes.followup import follow_up
from disputes.intake.due import newest_of_each
from disputes.models import Conflict
from disputes.protocol.completion.stuck import is_follow_up
from disputes.protocol.reviews.review import Found, ReadReview, Verdict, place
from disputes.protocol.reviews.verdict_words import verdict_alone
from disputes.protocol.reviews.verdicts import verdict_label
from disputes.protocol.rulings.gate import Outcome, gate
from disputes.protocol.text.identifiers import is_canonical
from disputes.sessions import linking
from tasks.configuration.policy import ProjectSettings
from tasks.database.prepared import Prepared, PreparedInsert
from tasks.events import SYSTEM, Actor
from tasks.models import Finding, Review, StaleTask, Submission, Task
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import Severity, Status, severity_rank
from tasks.text.counting import counted

NUMBER_MAX = 999  # of a code
ROUNDS_TOLD, FINDINGS_TOLD, TITLE_TOLD = 30, 8, 120  # limits of the card about too many rejections


@dataclass
class Taken:
    """What became of a review."""

    review: Review
    outcome: Outcome | None  # None: the task waits for other reviews
    findings: list[Finding] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


@transaction.atomic
def take_review(
    submission: Submission,
    read: ReadReview,
    *,
    approves: bool,
    actor: Actor,
    user_id: int | None = None,
    waiting_for: Collection[str] = (),
    without: Collection[str] = (),
    vendor: str = "",
) -> Taken:
    """Take a review of a verified submission: write its findings and conflicts, and move the task (GATE-3).

    The caller says whether it approves; a document that says worse prevails, and an approval that contains a
    mandatory finding is none (ARB-3). While other reviews are `waiting_for`, the task stays where it is; the
    last review decides together with all of its turn. `without` names the reviewers that nobody waits for.
    """
    task = locked_task(submission.task_id)
    read = _with_notes_as_finding(read, approves)
    stated = Verdict.APPROVED if approves else Verdict.NEEDS_REVISION
    if read.verdict is Verdict.NEEDS_REVISION:
        stated = Verdict.NEEDS_REVISION
    last = _last_version.rows(submission.pk, actor.label)
    review = Review(
        submission=submission,
        version=1 + (last[0][0] if last else 0),
        verdict=stated,
        raw_verdict=read.raw_verdict,
        text=read.text,
        by_agent=actor.label,
        by_model=actor.model,
        by_vendor=vendor,
        by_user_id=user_id,
        turn=task.version,
    )
    _new_reviews.insert(review)
    taken = Taken(review, Outcome.PASS)
    retracted = {found.code for found in read.findings if found.retracts}
    _take_findings(
        taken, task, [found for found in read.findings if found.code not in retracted or not found.code]
    )
    raised = {finding.origin.pk for finding in taken.findings}
    withdrawal.take_withdrawals(task, retracted, read, actor=actor)
    waiting_for = [name for name in waiting_for if name != review.by_agent]
    follow_up(task, submission, raised, actor=actor, is_last=not waiting_for)
    stuck.open_stuck(review, taken.findings, actor=actor)
    rejected = stated is Verdict.NEEDS_REVISION
    counted = [finding for finding in taken.findings if not finding.is_follow_up]
    if (derived := _derived(taken, rejected)) != stated:
        review.verdict = derived
        review.save(update_fields=["verdict"])
    if taken.dropped:
        record(task.project, "findings_dropped", task=task, note=", ".join(taken.dropped))
    only_settled = rejected and not counted
    if waiting_for and not only_settled:
        taken.outcome = None
        names = ", ".join(waiting_for)
        record(
            task.project, "review_in", task=task, actor=actor,
            data={"review": review.pk, "round": task.round},
            note=f"{review.get_verdict_display()}. The reviews of {names} are still to come."[:500],
        )  # fmt: skip
        return taken
    if only_settled:
        taken.outcome = gate((), opening.open_conflicts(task))
        _move(task, submission, taken, only_settled=True, actor=actor)
        return taken
    _conclude(task, submission, taken, without, actor=actor)
    return taken


@transaction.atomic
def conclude_reviews(task: Task, *, without: Collection[str] = ()) -> None:
    """Decide by the reviews of this turn that have come in, without waiting for the others.

    Raises StaleTask if the task has moved on.
    """
    found = locked_task(task.pk)
    if found.version != task.version or found.status != Status.REVIEW:
        raise StaleTask(task)
    reviews = reviews_of_turn(found)
    if reviews:
        taken = Taken(reviews[-1], Outcome.PASS, list(reviews[-1].findings.select_related("first")))
        follow_up(found, reviews[-1].submission, set(), actor=SYSTEM)
        _conclude(found, reviews[-1].submission, taken, without, actor=SYSTEM)


def reviews_of_turn(task: Task) -> list[Review]:
    """Return each reviewer's last review in the task's turn, except rejections with nothing that counts."""
    return newest_of_each(_of_turn.found(task.pk, task.version))


def _that_count(task: Expression, turn: Expression) -> QuerySet[Review]:
    rows = Review.objects.standing().filter(submission__task=task, turn=turn)
    void = Q(verdict=Review.Verdict.NEEDS_REVISION) & ~Exists(
        Finding.objects.filter(review=OuterRef("pk"), is_follow_up=False)
    )
    return rows.exclude(void).select_related("submission")


def _versions(submission: Expression, by: Expression) -> QuerySet[Review]:
    rows = Review.objects.filter(submission=submission, by_agent=by)
    return rows.order_by("-version").values_list("version")[:1]


_of_turn, _last_version = Prepared(_that_count), Prepared(_versions)
_new_reviews = PreparedInsert(Review)


def _conclude(
    task: Task, submission: Submission, taken: Taken, without: Collection[str], *, actor: Actor
) -> None:
    """Move the task by all reviews of its turn; if they differ, the strictest prevails (ARB-9)."""
    reviews = reviews_of_turn(task) or [taken.review]
    every = _findings_of(reviews, taken)
    rejecting = [review for review in reviews if review.verdict == Review.Verdict.NEEDS_REVISION]
    open_conflicts = opening.open_conflicts(task)
    taken.outcome = gate([finding.origin.pk for finding in every if finding.mandatory], open_conflicts)
    disputed = {conflict.finding for conflict in open_conflicts}
    to_answer = [f for f in every if not f.is_follow_up and f.origin.pk not in disputed]
    if rejecting and to_answer and taken.outcome in {Outcome.PASS, Outcome.SHIP}:
        taken.outcome = Outcome.REVISE
    if rejecting and len(rejecting) < len(reviews):
        said = ", ".join(f"{each.by_agent}: {each.get_verdict_display()}" for each in reviews)
        record(
            task.project, "reviews_differ", task=task, note=f"{said}. The strictest stands."[:500],
            data={"round": submission.round, "reviews": [each.pk for each in reviews]},
        )  # fmt: skip
    if without:
        record(
            task.project, "reviewed_without", task=task, data={"round": submission.round},
            note=f"Nobody waited for {', '.join(without)}."[:500],
        )  # fmt: skip
    _move(task, submission, taken, only_settled=False, actor=actor, reviews=reviews)


def _findings_of(reviews: list[Review], taken: Taken) -> list[Finding]:
    if reviews == [taken.review]:
        return taken.findings
    return list(Finding.objects.filter(review__in=reviews).select_related("first").order_by("pk"))


def _with_notes_as_finding(read: ReadReview, approves: bool) -> ReadReview:
    """Turn a rejection in plain words into one finding, so that the coder has something to answer."""
    accepts = approves and read.verdict is not Verdict.NEEDS_REVISION
    if accepts or read.findings or not read.text.strip():
        return read
    lines = read.text.strip().splitlines()
    first = next((index for index, line in enumerate(lines) if _says_what(line)), 0)
    found = Found(
        title=re.sub(r"^[#*\s>-]+", "", lines[first]).replace("**", "").strip()[:500] or "Rejected",
        severity=Severity.HIGH,
        suggestion="\n".join(lines[first + 1 :]).strip(),
        text=read.text,
    )
    return ReadReview(read.verdict, read.raw_verdict, (found,), read.text)


def _says_what(line: str) -> bool:
    """Whether a line says something itself: it is no heading and gives no verdict."""
    plain = line.strip()
    is_verdict = verdict_label(plain) is not None or verdict_alone(plain) is not None
    return bool(plain) and not plain.startswith("#") and not is_verdict


def _derived(taken: Taken, rejected: bool) -> Review.Verdict:
    """Return the verdict that follows from the findings (VER-5); the stated word is kept as raw_verdict."""
    if rejected or any(finding.mandatory for finding in taken.findings):
        return Review.Verdict.NEEDS_REVISION
    return Review.Verdict.APPROVED_WITH_CONDITIONS if taken.findings else Review.Verdict.APPROVED


def _take_findings(taken: Taken, task: Task, findings: Collection[Found]) -> None:
    """Write the findings of the review, except those on settled points."""
    if not findings:
        return
    known, settled = stuck.Known(taken.review), settled_findings(task)
    about = linking.subjects_of(taken.review) if task.is_session else None
    config, since_last_review = task.project.config, stuck.changes_since_last_review(taken.review.submission)
    raised: set[int] = set()
    for found in findings:
        again = known.earlier(found)
        if again.origin is not None and again.origin.pk in settled:
            taken.dropped.append(found.code or found.title[:60])
            continue
        if again.origin is not None and again.origin.pk in raised:
            # A review raises each point once, so this is another point or the same one said twice.
            again = Again(None, again.origin, again.score)
        is_late = about is None and is_follow_up(
            is_new=known.may_be_follow_up(again), severity=found.severity, location=found.location,
            text="\n".join([found.title, found.impact, found.suggestion, found.text]),
            since_last_review=since_last_review,
        )  # fmt: skip
        code = allot_code(known.codes, taken.review.submission.round, found.code)
        taken.findings.append(_finding(taken, found, again, config, code=code, is_late=is_late))
        if about:
            subject, row = about(found), taken.findings[-1]
            row.gap = subject.gap
            if not row.path:  # else a host quotes the file
                row.excerpt, row.excerpt_start = subject.excerpt, subject.start
        raised |= {again.origin.pk} if again.origin else set()
    Finding.objects.bulk_create(taken.findings)


def _finding(
    taken: Taken, found: Found, again: Again, config: ProjectSettings, *, code: str, is_late: bool
) -> Finding:
    """Return the finding's row, not yet saved."""
    path, line = place(found.location)
    origin = again.origin
    is_weighed = origin is not None and bool(origin.first_severity)  # a person's is final (SEV-7)
    severity = Severity(origin.severity) if origin and is_weighed else found.severity
    is_mandatory = config.is_mandatory(severity, "" if is_weighed else found.raw_severity)
    submission = taken.review.submission
    return Finding(
        review=taken.review,
        task_id=submission.task_id,
        ordinal=len(taken.findings) + 1,
        round=submission.round,
        code=code,
        raw_code=found.code,
        severity=severity or Severity.MEDIUM,  # SEV-9
        first_severity=(found.severity or Severity.MEDIUM) if is_weighed else "",
        raw_severity=found.raw_severity,
        mandatory=is_mandatory and not is_late,
        is_follow_up=is_late,
        possibly=again.possibly,
        same_as_score=again.score,
        title=found.title,
        path=path,
        line=line,
        impact=found.impact,
        suggestion=found.suggestion,
        text=found.text or found.title,
        first=origin,
    )


def allot_code(given: set[str], round_: int, printed: str) -> str:
    """Return the reviewer's code if it is well-formed for this round and unused, else the next one (ID-5).

    `given` holds the codes of the task's findings; the returned code is added to it.
    """
    code, begins = printed, f"ISSUE-R{round_}-"
    if not (printed.startswith(begins) and is_canonical(printed)) or printed in given:
        numbers = {int(each.removeprefix(begins)) for each in given if each.startswith(begins)}
        after = max(numbers, default=0) + 1
        free = (number for number in range(1, NUMBER_MAX) if number not in numbers)
        code = f"{begins}{after if after <= NUMBER_MAX else next(free, after):03d}"
    given.add(code)
    return code


def _move(
    task: Task, submission: Submission, taken: Taken, *, only_settled: bool, actor: Actor,
    reviews: Collection[Review] = (),
) -> None:  # fmt: skip
    summary = taken.review.get_verdict_display()
    if taken.findings:
        summary += f", {counted(len(taken.findings), 'finding')}"
    if len(reviews) > 1:
        summary = "; ".join(f"{each.by_agent}: {each.get_verdict_display()}" for each in reviews)[:500]
    match taken.outcome:
        case Outcome.HOLD:
            task.hold(actor=actor, note="An open conflict waits for a ruling.")
        case _ if only_settled:
            _send_back_to_reviewer(task, submission, actor)
        case Outcome.REVISE if task.rejections + 1 >= task.project.config.rejections_max:
            limit = task.project.config.rejections_max
            task.exhaust(actor=actor, note=f"Exceeded {limit} rejections")
            opening.open_conflict(
                task, kind=Conflict.Kind.HELP, origin=Conflict.Origin.REJECTIONS, opened_as="system",
                question=f"Exceeded {limit} rejections: {task.title}", submission=submission,
                severity=max(task.severity, "high", key=severity_rank), evidence=history_of(task),
            )  # fmt: skip
        case Outcome.REVISE:
            task.reject(actor=actor, note=summary)
        case Outcome.SHIP:
            task.ship(submission, actor=actor, note="Landed while an open conflict waits for a ruling.")
        case Outcome.PASS:
            task.approve(submission, actor=actor, note=summary)


def history_of(task: Task) -> list[str]:
    """Return a line for each round that was rejected: whose commit it was, who rejected it, and why."""
    rejected = (
        Review.objects.standing()
        .filter(submission__task=task, verdict=Review.Verdict.NEEDS_REVISION)
        .select_related("submission")
        .prefetch_related("findings")
        .order_by("-pk")[:ROUNDS_TOLD]
    )
    lines = []
    for review in reversed(list(rejected)):
        found = sorted(review.findings.all(), key=lambda each: -severity_rank(each.severity))
        told = [f"{each.code} {each.severity}: {each.title[:TITLE_TOLD]}" for each in found[:FINDINGS_TOLD]]
        if len(found) > FINDINGS_TOLD:
            told.append(f"{len(found) - FINDINGS_TOLD} more")
        commit, coder = review.submission.sha[:10], review.submission.by_agent
        by = f", rejected by {review.by_agent}" if review.by_agent else ""
        what = "; ".join(told) or "without a finding"
        lines.append(f"Round {review.submission.round}: {commit} of {coder or 'the coder'}{by}: {what}")
    return lines


def _send_back_to_reviewer(task: Task, submission: Submission, actor: Actor) -> None:
    """Send a rejection without blocking points back to the reviewer once, then stop for help (GATE-3)."""
    record(task.project, "review_void", task=task, actor=actor, note="It raises nothing that may block.")
    rejections = submission.reviews.filter(verdict=Review.Verdict.NEEDS_REVISION)
    if rejections.exclude(findings__is_follow_up=False).count() > 1:
        opening.stop_for_help(
            task,
            Conflict.Origin.REVIEW,
            f"The review raises nothing that may block: {task.title}",
            actor=actor,
        )

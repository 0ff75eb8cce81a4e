"""Checking whether rulings were followed (DEC-13), and closing disputes that nobody waits for."""

from django.db.models import Expression, Q, QuerySet

from disputes import opening
from disputes.models import Conflict, Decision, Dispute, StaleConflict
from disputes.protocol.rounds.subjects import gap_texts
from disputes.protocol.rulings import options
from disputes.protocol.rulings.compliance import Order, Seen, judge, section_changed
from disputes.protocol.text.diffs import Changes
from disputes.ruling_stages import is_followed_at
from disputes.silence.changes import changes_since_last_round, changes_up_to
from tasks.database.prepared import Prepared
from tasks.events import Actor
from tasks.models import Submission, Task
from tasks.states import Status

NOT_HONOURED = "Not honoured: "  # how the question begins on a card whose ruling was not honoured


def follow_up(
    task: Task, submission: Submission, raised: set[int], *, actor: Actor, is_last: bool = True
) -> None:
    """Mark each ruling that waits for it as applied, not honoured or could not verify.

    `raised` holds the findings, as first raised, that the review of `submission` names. Until the last review
    of a turn, which might raise a finding again, only the rulings on these are marked.
    """
    touched: set[Dispute] = set()
    for conflict in _waiting.found(task.pk):
        decision = conflict.standing_decision()
        if decision is None or not is_followed_at(conflict, submission):
            continue
        if not is_last and conflict.finding_id not in raised:
            continue
        seen = judge(_order(conflict, decision), _seen(conflict, decision, submission, raised))
        if seen.state == Conflict.Followed.WAITING:
            continue
        try:
            conflict.mark(seen.state, actor=actor, note=seen.why)
        except StaleConflict:  # the card was reopened just now, which already says what became of it
            continue
        touched.add(conflict.dispute)
        if seen.reopens and not _is_asked(conflict):
            _reopen_not_honoured(decision, submission, seen.why, actor)
    for dispute in touched:
        opening.refresh(dispute)


def _awaited(task: Expression) -> QuerySet[Conflict]:
    rows = Conflict.objects.of(task).awaited()
    return rows.select_related("dispute__project", "dispute__task", "finding", "raised_as", "submission")


_waiting = Prepared(_awaited)


def _order(conflict: Conflict, decision: Decision) -> Order:
    finding = conflict.shown_finding
    return Order(decision.expects_change, finding.location if finding else "", decision.text)


def _seen(conflict: Conflict, decision: Decision, submission: Submission, raised: set[int]) -> Seen:
    """Return what the review and the commits say about a ruling; the disputed commit itself never counts."""
    again = conflict.finding_id in raised
    return Seen(
        reviewed=not decision.expects_change or submission.pk != conflict.submission_id or again,
        raised_again=again,
        changes=changes_since_last_round(submission),
        earlier=_earlier(conflict),
        section_changed=_section_changed(conflict, submission) if submission.task.is_session else None,
    )


def _earlier(conflict: Conflict) -> tuple[Changes | None, ...]:
    """Return what changed between the commit in which the finding was raised and the disputed one."""
    finding, disputed = conflict.shown_finding, conflict.submission
    return changes_up_to(disputed, finding.round) if finding and finding.line and disputed else ()


def _section_changed(conflict: Conflict, submission: Submission) -> bool | None:
    """Whether what the documents say about the finding's gap has changed; None if the finding has no gap."""
    finding = conflict.shown_finding
    if finding is None or finding.gap is None:
        return None
    before = gap_texts(finding.review.submission.response).get(finding.gap.gap, "")
    after = gap_texts(submission.response).get(finding.gap.gap, "")
    if finding.location:
        return section_changed(before, after, finding.location)
    return before.split() != after.split()


def _is_asked(conflict: Conflict) -> bool:
    """Whether a newer card on the point waits for a ruling."""
    return conflict.finding is not None and Conflict.objects.about(conflict.finding).open().exists()


def _reopen_not_honoured(decision: Decision, submission: Submission, why: str, actor: Actor) -> None:
    conflict = decision.conflict
    newest = conflict.finding.newest() if conflict.finding else None
    question = newest.title if newest else conflict.question.removeprefix(NOT_HONOURED)
    opening.ask_again(
        decision, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.NOT_HONOURED, opened_as="system",
        why=why, actor=actor, question=f"{NOT_HONOURED}{question}", submission=submission,
        reviewer_position=opening.position_of(newest) if newest else conflict.reviewer_position,
    )  # fmt: skip


def sweep() -> int:
    """Close disputes whose task has ended or landed, and return how many. Idempotent; called by the loop."""
    closed = 0
    ended = Dispute.objects.live().filter(task__status=Status.CANCELLED)
    by_hand = Dispute.objects.live().filter(task__status=Status.COMPLETED).exclude(task__finished_by="")
    for disputes, reason in ((ended, "task cancelled"), (by_hand, "finished by hand")):
        for dispute in disputes:
            opening.close(dispute, reason)
            closed += 1
    landed = Dispute.objects.filter(
        status=Dispute.Status.RULED, task__status=Status.COMPLETED, task__landed_at__isnull=False
    )
    for dispute in landed:
        asked = [option for option in options.Option if options.asks(option)]
        # No review has checked whether the change was made, or the coder was never asked to make it.
        ignored = Decision.objects.standing().filter(
            Q(expects_change=True) | Q(option__in=asked, used_at__isnull=True), action="wait"
        )
        unseen = set(ignored.filter(conflict__dispute=dispute).values_list("conflict", flat=True))
        for conflict in dispute.conflicts.awaited():
            is_unseen = conflict.pk in unseen
            conflict.mark(Conflict.Followed.CANNOT_TELL if is_unseen else Conflict.Followed.APPLIED)
        opening.close(dispute, "followed up")
        closed += 1
    return closed

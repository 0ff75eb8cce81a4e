"""Was the ruling followed? (§25) And closing what nobody waits for any more."""

from django.db.models import Q

from disputes import cases
from disputes.models import Conflict, Decision, Dispute
from tasks.events import Actor
from tasks.models import Finding, Submission, Task
from tasks.states import Status


def follow_up(task: Task, submission: Submission, raised: set[int], *, actor: Actor) -> None:
    """Mark each ruling that waits: applied, not honoured or cannot tell.

    `raised` holds the findings, as first raised, that the review of `submission` names.
    """
    waiting = Conflict.objects.filter(dispute__task=task, followed=Conflict.Followed.WAITING)
    touched: set[Dispute] = set()
    for conflict in waiting.select_related("dispute", "finding", "submission"):
        decision = conflict.standing_decision()
        if decision is None:
            continue
        conflict.followed = _followed(conflict, submission, raised, decision.expects_change)
        conflict.save(update_fields=["followed"])
        touched.add(conflict.dispute)
        asked = Conflict.objects.filter(finding=conflict.finding_id, status=Conflict.Status.OPEN)
        if conflict.followed == Conflict.Followed.NOT_HONOURED and not asked.exists():
            _reopen_not_honoured(conflict, submission, actor)
    for dispute in touched:
        cases.refresh(dispute)


def _followed(
    conflict: Conflict, submission: Submission, raised: set[int], expects_change: bool
) -> Conflict.Followed:
    if expects_change and conflict.finding_id in raised:
        return Conflict.Followed.NOT_HONOURED
    if not expects_change:
        return Conflict.Followed.APPLIED
    if submission.pk == conflict.submission_id:
        return Conflict.Followed.WAITING
    if conflict.finding is None or not conflict.finding.path:
        return Conflict.Followed.CANNOT_TELL
    changed = submission.diff_stat.get("since_base", [])
    return Conflict.Followed.APPLIED if conflict.finding.path in changed else Conflict.Followed.CANNOT_TELL


def _reopen_not_honoured(conflict: Conflict, submission: Submission, actor: Actor) -> None:
    same = Finding.objects.filter(Q(pk=conflict.finding_id) | Q(first=conflict.finding_id))
    newest = same.order_by("pk").last()
    cases.open_conflict(
        conflict.task, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.NOT_HONOURED,
        opened_as="system", question=f"Not honoured: {conflict.question}", finding=conflict.finding,
        submission=submission, severity=conflict.severity, reason=conflict.reason, actor=actor,
        reviewer_position=(newest.suggestion or newest.text) if newest else conflict.reviewer_position,
        reviewer_label=conflict.reviewer_label, coder_position=conflict.coder_position,
        coder_label=conflict.coder_label, previous=conflict,
    )  # fmt: skip


def sweep() -> int:
    """Close disputes whose task ended or landed. Returns how many; called by the loop, idempotent."""
    closed = 0
    ended = Dispute.objects.live().filter(task__status=Status.CANCELLED)
    by_hand = Dispute.objects.live().filter(task__status=Status.COMPLETED).exclude(task__finished_by="")
    for dispute in ended | by_hand:
        cases.close(dispute, "moot")
        closed += 1
    landed = Dispute.objects.filter(
        status=Dispute.Status.RULED, task__status=Status.COMPLETED, task__landed_at__isnull=False
    )
    for dispute in landed:
        waiting = dispute.conflicts.filter(followed=Conflict.Followed.WAITING)
        ignored = Decision.objects.standing().filter(expects_change=True, action="wait")
        waiting.filter(pk__in=ignored.values("conflict")).update(followed=Conflict.Followed.CANNOT_TELL)
        waiting.update(followed=Conflict.Followed.APPLIED)
        cases.close(dispute, "followed")
        closed += 1
    return closed

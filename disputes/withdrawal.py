"""Dropping what nobody has to rule on any more: its place is gone, or the finding was taken back.

Conflicts that are CRITICAL or about security go on waiting, because those always end with a human.
"""

from collections.abc import Iterable

from django.db import transaction

from disputes import opening
from disputes.models import Conflict, StaleConflict
from disputes.protocol.reviews.review import ReadReview
from disputes.protocol.reviews.statuses import Status
from disputes.protocol.text.diffs import FileChange
from disputes.silence.changes import changes_since_last_round, round_before
from tasks.events import SYSTEM, Actor
from tasks.models import Finding, Submission, Task
from tasks.states import Severity
from tasks.states import Status as TaskStatus

PLACE_GONE, WITHDRAWN = "place gone", "finding withdrawn"


def open_about(task: Task) -> list[Conflict]:
    """Return the task's open conflicts on findings that may end without a ruling."""
    return list(
        Conflict.objects.of(task)
        .open()
        .on_findings()
        .filter(finding__isnull=False)
        .exclude(severity=Severity.CRITICAL)
        .exclude(reason=Conflict.Reason.SECURITY)
        .select_related("finding__review", "dispute__project", "dispute__task", "submission")
    )


@transaction.atomic
def look_for_gone_places(submission: Submission) -> list[Conflict]:
    """Close the conflicts whose lines or file this submission removes, and return them. Idempotent."""
    changes = changes_since_last_round(submission)
    if changes is None or not changes.files:
        return []
    before = round_before(submission)
    gone = []
    conflicts = open_about(submission.task)
    newest = _newest(conflicts)
    for conflict in conflicts:
        finding = newest.get(conflict.finding_id, conflict.finding)
        if not finding.path or conflict.submission_id == submission.pk:
            continue
        change = changes.of(finding.path)
        has_lines_of_then = before is not None and finding.review.submission_id == before.pk
        if (
            change
            and _is_gone(finding, change, by_line=has_lines_of_then)
            and not _is_moved(finding, submission)
        ):
            gone.append(conflict)
    drop(gone, PLACE_GONE, actor=SYSTEM)
    return gone


def _newest(conflicts: list[Conflict]) -> dict[int | None, Finding]:
    """Return the points that were raised again as last raised, by the keys of their first findings."""
    again = Finding.objects.standing().filter(first__in=[conflict.finding_id for conflict in conflicts])
    return {each.first_id: each for each in again.select_related("review").order_by("pk")}


def _is_gone(finding: Finding, change: FileChange, *, by_line: bool) -> bool:
    """Whether the file was deleted, or the line removed with nothing in its place."""
    if change.is_deleted or not finding.line or not by_line:
        return change.is_deleted
    line = finding.line
    return any(not edit.added and edit.old <= line < edit.old + edit.removed for edit in change.edits)


def _is_moved(finding: Finding, submission: Submission) -> bool:
    """Whether the line that the finding points to was added at another place."""
    lines = finding.excerpt.split("\n")
    at = (finding.line or 0) - (finding.excerpt_start or 1)
    pointed = lines[at].strip() if finding.excerpt and 0 <= at < len(lines) else ""
    added = (line[1:].strip() for line in submission.since_last_round.split("\n") if line.startswith("+"))
    return bool(pointed) and pointed in added


@transaction.atomic
def take_withdrawals(task: Task, retracted: set[str], read: ReadReview, *, actor: Actor) -> None:
    """Withdraw the earlier findings that a review takes back."""
    codes = retracted | {prior.code for prior in read.prior if prior.status is Status.WITHDRAWN}
    if codes:
        named = Finding.objects.standing().filter(task=task, code__in=codes)
        withdraw(named.select_related("first"), task, actor=actor)


def withdraw(findings: Iterable[Finding], task: Task, *, actor: Actor) -> None:
    """Mark each occurrence of these points as withdrawn, and close their open conflicts.

    Points with a conflict that must end with a human stay as they are.
    """
    origins = {finding.origin.pk for finding in findings}
    if not origins:
        return
    about = [conflict for conflict in open_about(task) if conflict.finding_id in origins]
    held = Conflict.objects.open().filter(finding__in=origins)
    held = held.exclude(pk__in=[conflict.pk for conflict in about])
    free = origins - set(held.values_list("finding", flat=True))
    Finding.objects.of_points(free).update(is_withdrawn=True)
    drop([conflict for conflict in about if conflict.finding_id in free], WITHDRAWN, actor=actor)


def drop(conflicts: Iterable[Conflict], reason: str, *, actor: Actor) -> None:
    """Close open conflicts as moot; their task goes on if nothing else holds it."""
    from disputes.rulings.effects import go_on

    for conflict in conflicts:
        try:
            conflict.drop(reason, actor=actor)
        except StaleConflict:
            continue
        conflict.dispute.refresh_from_db()
        opening.refresh(conflict.dispute, moot=reason)
        task = Task.objects.select_related("project", "section").get(pk=conflict.task.pk)
        if task.status != TaskStatus.DISPUTED:  # a review or work under way continues anyway
            continue
        note = f"{conflict.ref}: {reason}."
        go_on(task, conflict.submission, actor=actor, note=note)

"""What a submission changed, as far as the host has reported it."""

from django.db.models import Expression, QuerySet

from disputes.protocol.text.diffs import Changes, read_diff
from tasks.database.prepared import Prepared
from tasks.models import Submission

CUT_AT = 256 * 1024  # the length at which older hosts cut the diff since the last round without saying so


def round_before(submission: Submission) -> Submission | None:
    """Return the last submission of an earlier round that was fetched and not rolled back, or None."""
    found: Submission | None = _before.first(submission.task_id, submission.round)
    return found


def _earlier(task: Expression, round_: Expression) -> QuerySet[Submission]:
    rows = Submission.objects.standing().filter(task=task, round__lt=round_)
    return rows.fetched().newest_first()[:1]


_before = Prepared(_earlier)


def changes_since_last_round(submission: Submission) -> Changes | None:
    """Return what changed since the round before; None if that is unknown, or in a first round.

    The same work handed in again is known to have changed nothing.
    """
    text = submission.since_last_round
    if text:
        return read_diff(text, is_cut=len(text) >= CUT_AT)
    before = round_before(submission)
    return read_diff("") if before and _is_same(before, submission) else None


def changes_up_to(submission: Submission, round_: int) -> tuple[Changes | None, ...]:
    """Return what changed from the last submission of a round up to this one, per round, oldest first."""
    steps: list[Changes | None] = []
    step: Submission | None = submission
    while step and step.round > round_:
        steps.append(changes_since_last_round(step))
        step = round_before(step)
    return tuple(reversed(steps))


def _is_same(before: Submission, submission: Submission) -> bool:
    if before.sha and before.sha == submission.sha:
        return True
    return bool(submission.diff) and before.diff == submission.diff

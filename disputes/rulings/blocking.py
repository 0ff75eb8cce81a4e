"""What keeps a submission from landing, for one or for many submissions."""

from collections.abc import Container, Iterable

from disputes.closed_findings import settled_by_task
from disputes.models import Conflict
from tasks.models import Finding, Review, Submission, Task
from tasks.states import Severity


def blockers_of(submission: Submission) -> set[int] | None:
    """Return the mandatory findings, as first raised, that keep a submission from landing (GATE-2).

    None if the submission is not green and reviewed.
    """
    return blockers_for([submission])[submission.pk]


def blockers_for(submissions: Iterable[Submission]) -> dict[int, set[int] | None]:
    """Return the same for many submissions, by their keys, in at most four queries."""
    every = {submission.pk: submission for submission in submissions}
    reviews = Review.objects.filter(submission__in=every).order_by("pk")
    newest = {of: (pk, turn) for of, pk, turn in reviews.values_list("submission", "pk", "turn")}
    raised: dict[int, list[Finding]] = {}
    of_them = Finding.objects.filter(review__submission__in=newest)
    for finding in of_them.select_related("first", "review").defer("review__text"):
        raised.setdefault(finding.review.submission_id, []).append(finding)
    settled = settled_by_task({every[pk].task_id for pk in newest})
    return {
        pk: still_blocking(each, newest.get(pk), raised.get(pk, ()), settled.get(each.task_id, {}))
        for pk, each in every.items()
    }


def still_blocking(
    submission: Submission,
    newest: tuple[int, int | None] | None,
    raised: Iterable[Finding],
    settled: Container[int],
) -> set[int] | None:
    """Apply the rule to rows that have been read already (GATE-2).

    `newest` is the key and the turn of the submission's newest review; `raised` are findings of its reviews,
    each with its review. The reviews of one turn count together.
    """
    if newest is None or submission.state != Submission.State.VERIFIED:
        return None
    review, turn = newest
    return {
        finding.origin.pk
        for finding in raised
        if finding.review_id == review or (turn is not None and finding.review.turn == turn)
        if finding.mandatory and finding.origin.pk not in settled
    }


def is_held(task: Task) -> bool:
    """Whether an open conflict holds the task."""
    return Conflict.objects.of(task).open().holding().exists()


def is_undecided(task: Task) -> bool:
    """Whether a conflict of severity HIGH or above is open on the task (DEC-7)."""
    grave = [Severity.CRITICAL, Severity.HIGH]
    return Conflict.objects.of(task).open().filter(severity__in=grave).exists()

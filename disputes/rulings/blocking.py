"""What keeps a submission from landing, for one or for many of them."""

from collections.abc import Iterable

from disputes.closed_findings import settled_by_task
from disputes.models import Conflict
from tasks.models import Finding, Review, Submission, Task
from tasks.states import Severity


def blockers_of(submission: Submission) -> set[int] | None:
    """The mandatory findings, as first raised, that keep a submission from landing.

    None where it is not green and reviewed (GATE-2).
    """
    return blockers_for([submission])[submission.pk]


def blockers_for(submissions: Iterable[Submission]) -> dict[int, set[int] | None]:
    """The same for many, by the submission's key, in four queries at most."""
    every = {submission.pk: submission for submission in submissions}
    verified = [pk for pk, each in every.items() if each.state == Submission.State.VERIFIED]
    reviews = Review.objects.filter(submission__in=verified).order_by("pk")
    last: dict[int, tuple[int | None, set[int]]] = {}  # the newest of each submission, and its turn
    for of, review, turn in reviews.values_list("submission", "pk", "turn"):
        beside = last[of][1] if turn is not None and of in last and last[of][0] == turn else set()
        last[of] = turn, beside | {review}
    by_review = {review: pk for pk, (_, those) in last.items() for review in those}
    raised = Finding.objects.filter(review__in=by_review, mandatory=True).select_related("first")
    settled = settled_by_task({every[pk].task_id for pk in last})
    found: dict[int, set[int] | None] = {pk: set() if pk in last else None for pk in every}
    for finding in raised:
        of = by_review[finding.review_id]
        blocking = found[of]
        if blocking is not None and finding.origin.pk not in settled.get(every[of].task_id, {}):
            blocking.add(finding.origin.pk)
    return found


def is_held(task: Task) -> bool:
    """Whether an open conflict holds the task."""
    return Conflict.objects.of(task).open().holding().exists()


def is_undecided(task: Task) -> bool:
    """Whether a conflict of severity HIGH or above is open on the task (DEC-7)."""
    grave = [Severity.CRITICAL, Severity.HIGH]
    return Conflict.objects.of(task).open().filter(severity__in=grave).exists()

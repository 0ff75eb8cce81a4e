"""What keeps a submission from landing when a ruling lets its coder have the way (GATE-2)."""

import pytest
from django.contrib.auth.models import User

from disputes import opening, rulings
from disputes.models import Conflict
from tasks.models import Project, Submission, Task
from tests.cases import for_each
from tests.factories import create_finding, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db
S = Submission.State


def disputed(ledger: Project, *, state: str, mandatory: bool | None, is_settled: bool = False) -> Task:
    """A task that is held for one declined finding, with another one beside it unless `mandatory` is None."""
    task = create_task(project=ledger, status="review", round=1)
    submission = create_submission(task, state=state)
    review = create_review(submission)
    finding = create_finding(review)
    if mandatory is not None:
        other = create_finding(review, mandatory=mandatory, severity="high" if mandatory else "low")
        if is_settled:
            conflict = opened(task, submission, other)
            rulings.decide(conflict, "uphold_coder", user=ledger.memberships.get(role="triager").user)
    opened(task, submission, finding)
    return task


def opened(task: Task, submission: Submission, finding: object) -> Conflict:
    task.refresh_from_db()
    conflict = opening.open_conflict(
        task, kind="disagreement", origin="disagree", opened_as="coder", question="Wait, or not?",
        finding=finding, submission=submission, reviewer_position="Wait.", coder_position="Do not.",
    )  # fmt: skip
    task.refresh_from_db()
    if task.status != "disputed":
        task.hold(actor=opening.SYSTEM, note=conflict.ref)
    return conflict


@for_each(
    ("state", "mandatory", "is_settled", "leads_to"),
    [
        (S.VERIFIED, None, False, "completed"),
        (S.VERIFIED, False, False, "completed"),  # an optional finding blocks nothing
        (S.VERIFIED, True, False, "review"),  # a mandatory one does
        (S.VERIFIED, True, True, "completed"),  # unless it was settled
        (S.KEPT, None, False, "review"),  # what is not built and tested does not land
        (S.RED, None, False, "review"),
    ],
)
def test_a_ruling_for_the_coder_lands_what_is_green_and_free_of_open_points(
    ledger: Project, tom: User, state: str, mandatory: bool | None, is_settled: bool, leads_to: str
) -> None:
    task = disputed(ledger, state=state, mandatory=mandatory, is_settled=is_settled)

    rulings.decide(Conflict.objects.of(task).open().get(), "uphold_coder", user=tom)

    task.refresh_from_db()
    assert task.status == leads_to


def test_a_prompt_uses_up_its_own_rulings_and_no_others(ledger: Project, tom: User) -> None:
    first, second = (disputed(ledger, state=S.VERIFIED, mandatory=None) for _ in range(2))
    decisions = [
        rulings.decide(Conflict.objects.of(task).get(), "uphold_reviewer", user=tom)
        for task in (first, second)
    ]

    assert rulings.mark_used(decisions[:1], 7) == 1
    for decision in decisions:
        decision.refresh_from_db()
    assert [decision.used_by_run for decision in decisions] == [7, None]

"""Disputes that nobody has to rule on any more close themselves, with the reason; CRITICAL ones do not."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from disputes import intake, opening
from disputes.models import Conflict, Dispute
from disputes.protocol.reviews.review import read_review
from disputes.withdrawal import look_for_gone_places
from tasks.events import Actor
from tasks.models import Dependency, Event, Project, Submission, Task
from tests.cases import for_each
from tests.factories import create_finding, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db

CUT_OUT = """\
diff --git a/src/calls.py b/src/calls.py
--- a/src/calls.py
+++ b/src/calls.py
@@ -11,2 +10,0 @@
-    retry(now=True)
-    retry(again=True)
"""
MOVED = CUT_OUT + "@@ -40,0 +39,1 @@\n+        retry(again=True)\n"
REWRITTEN = CUT_OUT.replace("-11,2 +10,0", "-11,2 +11,1") + "+    retry(after=DELAY)\n"
DELETED = """\
diff --git a/src/calls.py b/src/calls.py
deleted file mode 100644
--- a/src/calls.py
+++ /dev/null
@@ -1 +0,0 @@
-import retry
"""
REVIEWER = Actor("run", "reviewer-1")


@pytest.fixture
def conflict(ledger: Project) -> Conflict:
    """A declined point that does not hold the task: the next round is handed in meanwhile."""
    return declined(ledger)


def declined(project: Project, severity: str = "medium", **kwargs: Any) -> Conflict:
    task = create_task(project, status="review", round=1)
    first = create_submission(task, round=1)
    finding = create_finding(
        create_review(first), severity=severity, excerpt="retry(now=True)\n    retry(again=True)",
        excerpt_start=11,
    )  # fmt: skip
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "reviewer_position": "Wait.",
        "coder_position": "It is bounded.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(
        task, question="Back off?", finding=finding, submission=first, severity=severity, **given
    )


def next_round(task: Task, changed: str) -> Submission:
    Task.objects.filter(pk=task.pk).update(round=2)
    task.refresh_from_db()
    return create_submission(task, round=2, since_last_round=changed)


@for_each(
    ("changed", "ends"), [(CUT_OUT, True), (DELETED, True), (MOVED, False), (REWRITTEN, False), ("", False)]
)
def test_a_place_that_is_gone_ends_the_dispute(conflict: Conflict, changed: str, ends: bool) -> None:
    submission = next_round(conflict.task, changed)
    assert look_for_gone_places(submission) == ([conflict] if ends else [])
    dispute = Dispute.objects.get()
    assert (dispute.status, dispute.closed_reason) == (("closed", "place gone") if ends else ("open", ""))
    assert Event.objects.filter(kind="conflict_moot").count() == ends
    assert look_for_gone_places(submission) == []


@for_each("about", [{"severity": "critical"}, {"reason": "security_concern"}])
def test_a_grave_matter_goes_on_waiting_for_a_human(ledger: Project, about: dict[str, str]) -> None:
    conflict = declined(ledger, **about)
    assert look_for_gone_places(next_round(conflict.task, DELETED)) == []
    assert Conflict.objects.get().status == "open"


def test_the_places_of_many_points_are_read_in_as_many_queries_as_that_of_one(conflict: Conflict) -> None:
    submission = next_round(conflict.task, REWRITTEN)

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert look_for_gone_places(submission) == []
        return len(asked)

    of_one, again = queries(), create_review(submission)
    for _ in range(5):
        finding = create_finding(conflict.finding.review)
        create_finding(again, first=finding)
        opening.open_conflict(
            conflict.task, kind="disagreement", origin="disagree", opened_as="coder", question="This?",
            severity="medium", finding=finding, reviewer_position="Wait.", coder_position="No.",
        )  # fmt: skip
    assert queries() == of_one


def test_lines_of_another_commit_are_not_counted_in_this_one(conflict: Conflict) -> None:
    create_submission(conflict.task, round=2)
    Task.objects.filter(pk=conflict.task.pk).update(round=3)
    last = create_submission(Task.objects.get(), round=3, since_last_round=CUT_OUT)
    assert look_for_gone_places(last) == []


def test_others_of_the_dispute_go_on(conflict: Conflict) -> None:
    other = opening.open_conflict(
        conflict.task, kind="disagreement", origin="cli", opened_as="coder", question="Whose task?",
        severity="high", reviewer_position="Yours.", coder_position="Mine.",
    )  # fmt: skip
    look_for_gone_places(next_round(conflict.task, DELETED))
    conflict.refresh_from_db()
    other.refresh_from_db()
    assert (conflict.status, other.status) == ("moot", "open")
    assert Dispute.objects.get().question == "Whose task?"


def test_a_finding_that_the_reviewer_takes_back_is_in_dispute_no_more(conflict: Conflict, tom: User) -> None:
    submission = next_round(conflict.task, REWRITTEN)
    text = (
        "# Review\n\n## Earlier findings\n\n"
        f"| Finding | Status |\n|---|---|\n| {conflict.finding.code} | Withdrawn |\n\n**Verdict:** APPROVED\n"
    )
    intake.take_review(submission, read_review(text), approves=True, actor=REVIEWER)
    conflict.refresh_from_db()
    assert conflict.status == "moot"
    assert conflict.finding.is_withdrawn
    assert Dispute.objects.get().closed_reason == "finding withdrawn"


def test_a_task_that_only_the_moot_one_held_goes_on(ledger: Project) -> None:
    conflict = declined(ledger, "high")
    conflict.task.hold(actor=REVIEWER, note="In dispute.")
    look_for_gone_places(next_round(conflict.task, DELETED))
    assert Task.objects.get().status == "review"


def test_a_closed_dispute_holds_no_task_up(ledger: Project, conflict: Conflict) -> None:
    Dependency.objects.create(task=create_task(ledger), on=conflict.dispute.task)
    opening.refresh(conflict.dispute)
    assert Dispute.objects.get().blocks == 1
    opening.close(conflict.dispute, "cancelled")
    assert Dispute.objects.get().blocks == 0

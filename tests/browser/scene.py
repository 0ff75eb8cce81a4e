"""A project in the middle of its work, with words as real agents write them, to look at and to rule on."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from disputes import opening
from disputes.models import Conflict, Dispute
from tasks.models import Answer, Comment, Project, Review, Submission, Task
from tests.factories import create_finding, create_project, create_review, create_submission, create_task, sha

EXCERPT = '''\
    def deliver(self, event: Event) -> Attempt:
        """Send one event; a failure schedules the next attempt."""
        attempt = self.post(event, timeout=TIMEOUT)
        if attempt.ok:
            return attempt
        if attempt.number >= MAX_ATTEMPTS:
            event.mark_dead(reason=attempt.error)
            return attempt
        event.next_attempt_at = now() + timedelta(seconds=RETRY_DELAY)
        event.save(update_fields=["next_attempt_at"])
        return attempt

    def post(self, event: Event, *, timeout: float) -> Attempt:
        # One request; redirects are not followed.
        return self.client.post(event.url, json=event.payload, timeout=timeout)'''

DIFF = """\
diff --git a/webhooks/delivery.py b/webhooks/delivery.py
index 83db48f..bf269f4 100644
--- a/webhooks/delivery.py
+++ b/webhooks/delivery.py
@@ -83,6 +83,11 @@ class Deliverer:
         attempt = self.post(event, timeout=TIMEOUT)
         if attempt.ok:
             return attempt
-        raise DeliveryFailed(event.pk)
+        if attempt.number >= MAX_ATTEMPTS:
+            event.mark_dead(reason=attempt.error)
+            return attempt
+        event.next_attempt_at = now() + timedelta(seconds=RETRY_DELAY)
+        event.save(update_fields=["next_attempt_at"])
+        return attempt
 
     def post(self, event: Event, *, timeout: float) -> Attempt:
diff --git a/webhooks/settings.py b/webhooks/settings.py
index 1111111..2222222 100644
--- a/webhooks/settings.py
+++ b/webhooks/settings.py
@@ -110,3 +110,4 @@ TIMEOUT = 10
 TIMEOUT = 10
 MAX_ATTEMPTS = 48
+RETRY_DELAY = 30
 PAGE_SIZE = 50
"""
SPECIFICATION = """\
### 4.3 Delivery

A failed delivery is retried at growing intervals,
with jitter, for at least 24 hours.
"""
OF_CODER = "coder-7 <coder-7@steroids.invalid>, 2026-03-02"
STAT = {
    "files": [["webhooks/delivery.py", 6, 1], ["webhooks/settings.py", 1, 0]], "since_base": [],
    "commits": [
        {
            "sha": "9f8e7d6c" * 5, "author": OF_CODER, "committer": OF_CODER,
            "message": "Wait between two tries\n\nThe server answered 429 to a third of all deliveries.",
        },
        {
            "sha": "1a2b3c4d" * 5, "author": "Lea Roth <lea@example.org>, 2001-02-03",
            "committer": OF_CODER, "message": "Try it \u202ewith a key",
        },
    ],
    "undone": ["webhooks/key.pem"], "more": 1,
}  # fmt: skip


@dataclass
class Scene:
    ledger: Project
    task: Task
    conflict: Conflict
    help: Conflict

    @property
    def dispute(self) -> Dispute:
        return self.conflict.dispute


def create_scene(person: User) -> Scene:
    """The person may rule in all of it."""
    ledger = create_project("ledger", members={person: "maintainer"})
    atlas = create_project("atlas-ui", name="Atlas UI", members={person: "triager"})
    task = create_task(
        ledger,
        number=214,
        title="Deliver webhooks to merchant endpoints",
        status="disputed",
        round=4,
        source="docs/SPEC.md#4.3",
        body="Failed deliveries are retried at increasing intervals for at least 24 hours.\n"
        "The merchant page shows the time of the next attempt.",
    )
    conflict = _webhooks(task)
    _others(ledger, atlas)
    help_card = _help_card(ledger)
    return Scene(ledger, task, conflict, help_card)


def _webhooks(task: Task) -> Conflict:
    handed_in = [
        create_submission(
            task,
            round=number,
            sha=sha(name),
            by_model="Claude Code",
            diff=DIFF,
            diff_stat=STAT,
            specification=SPECIFICATION,
        )
        for number, name in enumerate(("3f9c2ab", "81d07fe", "c44e9a1", "5be2f08"), start=1)
    ]
    create_review(handed_in[0], by_agent="reviewer-2", by_model="Codex")
    raised = create_finding(
        create_review(handed_in[1], by_agent="reviewer-2", by_model="Codex"),
        **(
            words := {
                "title": "`deliver()` schedules every failed webhook after a fixed `RETRY_DELAY`. All "
                "deliveries that failed in one outage come back in the same second.",
                "impact": "A merchant that recovers gets every pending event at once. With 12,000 queued it "
                "falls over again.",
                "suggestion": "Exponential back-off with full jitter: base 2 s, factor 2, cap 15 min. Give "
                "up after 24 h.",
                "path": "webhooks/delivery.py",
                "line": 89,
                "excerpt": EXCERPT,
                "excerpt_start": 81,
            }
        ),
    )
    Answer.objects.create(submission=handed_in[2], finding=raised, kind="declined", text="It is bounded.")
    create_finding(
        create_review(handed_in[3], by_agent="reviewer-2", by_model="Codex"), first=raised, **words
    )
    conflict = opening.open_conflict(
        task,
        kind="disagreement",
        origin="repeated",
        opened_as="reviewer",
        question="Should failed webhooks be retried with exponential back-off, or after a fixed 30 s?",
        finding=raised,
        submission=handed_in[3],
        reviewer_position=raised.suggestion,
        reviewer_label="reviewer-2",
        coder_position="I keep the fixed delay. A stampede cannot happen: `ratelimit.py:41` bounds us to 50 "
        "requests per second and endpoint.",
        coder_rationale="The merchant page promises ‘next attempt in 30 s’. Back-off would make that text "
        "wrong.",
        coder_label="coder-1",
        alternative="Raise the delay to 60 s and spread it by ±10 s.",
    )
    opening.open_conflict(
        task,
        kind="disagreement",
        origin="disagree",
        opened_as="coder",
        severity="medium",
        reason="scope_disagreement",
        question="Is the merchant page part of this task?",
        submission=handed_in[3],
        reviewer_position="The page must show the time of the next attempt.",
        reviewer_label="reviewer-2",
        coder_position="The page belongs to the next task of the section.",
        coder_label="coder-1",
    )
    Comment.objects.create(
        project=task.project,
        task=task,
        by_label="Jana K.",
        by_kind="person",
        body="Support asks for the exact time on the page anyway.",
    )
    Review.objects.filter(submission__task=task).update(at=timezone.now() - timedelta(hours=3))
    _since(conflict.dispute, hours=2, minutes=11, blocks=4)
    return conflict


def _others(ledger: Project, atlas: Project) -> None:
    rows = [
        (atlas, 88, "Keep people signed in", "critical", 1, 6, "disagree",
         "Must refresh tokens leave localStorage, or is a 10-minute lifetime enough?"),
        (atlas, 131, "CSV importer", "high", 5, 2, "repeated",
         "Reject unknown columns in the import schema, or ignore them?"),
        (ledger, 198, "Split the account table", "medium", 22, 0, "cli",
         "Squash migrations 0014–0017, or keep one per change?"),
        (atlas, 95, "Audit log view", "medium", 11, 0, "disagree",
         "Page the audit log by cursor, or by page number?"),
        (ledger, 190, "Invoice export", "high", 49, 0, "disagree",
         "Rename amount_minor to amount_cents?"),
    ]  # fmt: skip
    for project, number, title, severity, hours, blocks, origin, question in rows:
        task = create_task(project, number=number, title=title, status="disputed", round=2)
        conflict = opening.open_conflict(
            task,
            kind="disagreement",
            origin=origin,
            opened_as="coder",
            severity=severity,
            question=question,
            submission=create_submission(task, diff_stat=STAT),
            reviewer_position="As the specification says it.",
            reviewer_label="reviewer-1",
            coder_position="It costs more than it brings.",
            coder_label="coder-2",
        )
        _since(conflict.dispute, hours=hours, blocks=blocks)


def _help_card(ledger: Project) -> Conflict:
    task = create_task(
        ledger, number=219, title="Reconcile payouts", status="in_progress", round=2, severity="high"
    )
    create_submission(
        task, round=2, state=Submission.State.RED, problem="tests: 3 failed, 41 passed (exit 1)"
    )
    conflict = opening.stop_for_help(
        task,
        "blocked",
        "Who can give access to the sandbox bank API?",
        detail="The tests of `payouts/bank.py` need a key for the sandbox. None is in the environment, and "
        "the specification names no person to ask.",
    )
    _since(conflict.dispute, hours=6, minutes=40, blocks=1)
    return conflict


def _since(dispute: Dispute, *, blocks: int, **ago: int) -> None:
    opened = timezone.now() - timedelta(**ago)
    Dispute.objects.filter(pk=dispute.pk).update(opened_at=opened, blocks=blocks)
    dispute.conflicts.update(opened_at=opened)
    dispute.refresh_from_db()

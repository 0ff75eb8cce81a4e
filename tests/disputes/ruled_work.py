"""Rows that the insights count: a task with a ruling, a flag, answers and runs, as of some day."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from disputes.models import Conflict, Decision, Dispute, Flag
from tasks.models import Answer, Project, Task
from tests.factories import create_finding, create_review, create_run, create_submission, create_task


def create_ruling(
    project: Project, user: User, at: datetime, *, option: str = "uphold_reviewer", minutes: float = 30,
    coder: str = "coder-1", seconds: float | None = 20, severity: str = "high", followed: str = "applied",
    policy_of: User | None = None, **conflict: Any,
) -> Decision:  # fmt: skip
    """A disagreement that was opened `minutes` before `at`, and its ruling."""
    task = create_task(project)
    opened_at = at - timedelta(minutes=minutes)
    submission = create_submission(task, at=opened_at, by_agent=coder, by_model="small-1")
    finding = create_finding(create_review(submission, at=opened_at, by_model="large-3"), severity=severity)
    dispute = Dispute.objects.create(
        project=project, task=task, severity=severity, question="Back off, or not?", status="closed",
        opened_at=opened_at, closed_at=at, closed_reason="followed",
    )  # fmt: skip
    values = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "finding": finding,
        "submission": submission, "severity": severity, "effect": "hold", "question": "Back off, or not?",
        "reviewer_position": "Wait.", "coder_position": "It is bounded.", "coder_label": coder,
        "reviewer_label": "reviewer-1", "status": "decided", "followed": followed, "opened_at": opened_at,
    }  # fmt: skip
    return Decision.objects.create(
        conflict=Conflict.objects.create(dispute=dispute, **values | conflict), option=option,
        user=None if policy_of else user, policy_set_by=policy_of,
        authority="policy" if policy_of else "person", action="revise", expects_change=True, at=at,
        seconds=seconds,
    )  # fmt: skip


def create_day(project: Project, user: User, at: datetime) -> Task:
    """One of everything that is counted, at that time."""
    ruling = create_ruling(project, user, at)
    conflict = ruling.conflict
    task, submission = conflict.task, conflict.submission
    assert submission is not None
    Answer.objects.create(submission=submission, finding=conflict.finding, kind="declined")
    Flag.objects.create(
        finding=conflict.finding, submission=submission, level="warn", heuristics=["H1", "H4"], at=at,
        status="converted",
    )  # fmt: skip
    create_run(task, status="ended", outcome="handed_in", ended_at=at)
    Task.objects.filter(pk=task.pk).update(status="completed", finished_by="hand", status_at=at, rejections=2)
    return task

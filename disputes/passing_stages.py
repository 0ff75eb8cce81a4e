"""Letting green work that no agent reviews pass by itself (COL-1)."""

from django.db import transaction

from disputes import opening
from disputes.followup import follow_up
from disputes.protocol.rulings.gate import Outcome, gate
from tasks.configuration import stages
from tasks.events import SYSTEM
from tasks.models import Submission, Task
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import Status


def is_reviewed(task: Task) -> bool:
    """Whether a review follows at the task's stage.

    Work that would land is always reviewed, either by agents or, for an amendment, by the person who approved
    it.
    """
    if task.origin == Task.Origin.AMENDMENT:
        return False
    stage = stages.stage_named(task.project.config, task.stage)
    return stage is None or stage.is_reviewed or task.next_stage() is None


@transaction.atomic
def pass_unreviewed(task: Task) -> bool:
    """Let green work pass at a stage without review. Return False if the task is not in that state."""
    task = locked_task(task.pk)
    submission = task.last_submission()
    if task.status != Status.REVIEW or submission is None or is_reviewed(task):
        return False
    if submission.state != Submission.State.VERIFIED:
        return False
    follow_up(task, submission, set(), actor=SYSTEM)
    stage = task.stage
    if gate([], opening.open_conflicts(task)) is Outcome.HOLD:
        task.hold(actor=SYSTEM, note="An open conflict waits for a ruling.")
        return True
    is_approved = task.origin == Task.Origin.AMENDMENT
    why = "a person approved this very commit" if is_approved else f"no review follows at {stage}"
    task.approve(submission, actor=SYSTEM, note=f"Green; {why}.")
    record(task.project, "passed_unreviewed", task=task, data={"sha": submission.sha, "stage": stage})
    return True

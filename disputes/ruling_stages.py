"""At which stage a ruling is carried out, and at which stages prompts tell it."""

from collections.abc import Iterable

from django.db.models import Q

from disputes.models import Conflict, Decision
from tasks.configuration import stages
from tasks.models import Submission, Task


def place_of(task: Task, rulings: Iterable[Decision]) -> dict[str, str]:
    """Return what changes on the task so that these rulings are carried out where their points came up.

    The earliest stage goes first; the other rulings are told when the task comes to their stages. Empty if
    the task is already at the right stage.
    """
    config = task.project.config
    named = [ruling.conflict for ruling in rulings if stages.position(config, ruling.conflict.stage)]
    if not named:
        return {}
    first = min(named, key=lambda conflict: stages.position(config, conflict.stage))
    if first.stage == task.stage:
        return {}
    return _at(first.stage, first.thread.stage if first.thread else "")


def objection_overruled(task: Task) -> dict[str, str]:
    """Return what changes on the task if a human has ruled against an objection: it goes forward again.

    Empty if there is no such ruling, or a prompt has used it.
    """
    unused = Decision.objects.of(task).standing().unused().awaited()
    told = unused.filter(conflict__thread__isnull=False, expects_change=False)
    decision = told.select_related("conflict__thread").order_by("-pk").first()
    if decision is None or decision.conflict.thread is None:
        return {}
    stage = decision.conflict.thread.stage
    return _at(stage if stages.position(task.project.config, stage) else task.stage, "")


def _at(stage: str, home: str) -> dict[str, str]:
    return {"stage": stage, "home_stage": home, "escalation": ""}


def told_at(task: Task) -> Q:
    """Return a filter for the rulings told at the task's stage: its own, and all on objections."""
    others = [stage.name for stage in stages.stages_of(task.project.config) if stage.name != task.stage]
    return ~Q(conflict__stage__in=others) | Q(conflict__thread__isnull=False)


def is_followed_at(conflict: Conflict, submission: Submission) -> bool:
    """Whether the review of this work can tell whether the ruling was followed.

    A ruling on an objection is carried out once the task has moved on from the stage that it came up at.
    """
    if not conflict.stage or not submission.stage:
        return True
    if conflict.thread_id is not None:
        return submission.stage != conflict.stage
    stage = stages.position(submission.task.project.config, conflict.stage)
    return submission.stage == conflict.stage or not stage

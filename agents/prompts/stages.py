"""What a prompt says of the task's stage, and of objections between stages (COL-1, ITM-2).

What agents and people wrote is fenced and bounded.
"""

from typing import Any

from agents.models import Run
from agents.prompts.sections import Section, one_line
from disputes.models import Conflict
from tasks.configuration import stages
from tasks.models import Task
from tasks.remarks.objections import Objection, objections_of

THREAD_MAX = 16 * 1024
RULED_MAX = 20
LINE_MAX = 300


def stage_words(run: Run) -> dict[str, Any]:
    """Return the values for the templates; none if the project has only one stage."""
    task = run.task
    config = task.project.config
    pipeline = stages.stages_of(config)
    here = stages.stage_named(config, task.stage)
    if here is None or (len(pipeline) == 1 and not here.is_escalation):
        return {}
    before = stages.previous_stage(config, task.stage)
    return {
        "at_stage": {
            "label": here.label,
            "name": here.name,
            "about": here.about,
            "place": f"stage {stages.position(config, here.name)} of {len(pipeline)}"
            if not here.is_escalation
            else "a column of specialists",
            "all": ", ".join(stage.name for stage in pipeline),
            "before": before.name if before else "",
            "is_reviewed": here.is_reviewed,
        },
        "objections": [_told(each, task) for each in objections_of(task) if _concerns(each, task)],
        "ruled_between": _ruled(task),
        "limit": config.dispute_rounds_to_human,
    }


def _concerns(objection: Objection, task: Task) -> bool:
    """Whether the task's stage has to answer the objection, or has just been answered."""
    if not objection.is_open:
        return False
    if objection.waits_for_answer:
        return objection.stage == task.home_stage
    return objection.stage == task.stage


def _told(objection: Objection, task: Task) -> dict[str, Any]:
    said = "\n\n".join(
        f"{one_line(comment.by_label)} ({comment.stage or 'a person'}):\n{comment.body}"
        for comment in objection.said
    )
    return {
        "pk": objection.root.pk,
        "target": one_line(objection.root.target)[:LINE_MAX],
        "from": objection.stage,
        "is_mine": objection.stage == task.stage,
        "rounds": objection.rounds,
        "thread": Section(f"comment {objection.root.pk}", said, THREAD_MAX),
    }


def _ruled(task: Task) -> str:
    """Return the objections that a person has ruled on, one line each; both stages keep to them."""
    ruled = Conflict.objects.of(task).ruled().filter(thread__isnull=False)
    lines = []
    for conflict in ruled.select_related("thread").prefetch_related("decisions").order_by("-pk")[:RULED_MAX]:
        decision = conflict.standing_decision()
        if decision and conflict.thread:
            right = f"{conflict.thread.stage} is right" if decision.expects_change else "it stays as it is"
            text = one_line(decision.text)[:LINE_MAX]
            target = one_line(conflict.thread.target)[:LINE_MAX]
            lines.append(f"- {target}: {decision.letter}, {right}. {text}".strip())
    return "\n".join(lines)

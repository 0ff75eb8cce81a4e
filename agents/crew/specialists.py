"""Escalation: a task goes to the specialists for its reason, and from there to people (LAD-3).

"I cannot" does not mean "you are wrong": nothing here opens a disagreement (ITM-4).
"""

from django.db import transaction

from agents.crew import attempts, choosing
from agents.models import Run
from disputes import opening
from disputes.models import Conflict
from tasks.configuration.stages import UNKNOWN, Stage, escalation_for
from tasks.events import SYSTEM, Actor
from tasks.models import Task
from tasks.remarks.comments import BODY_MAX, add_comment
from tasks.text.counting import counted

QUESTION_MAX = 500


@transaction.atomic
def escalate(
    task: Task,
    reason: str = UNKNOWN,
    *,
    actor: Actor = SYSTEM,
    notes: str = "",
    crew: choosing.Crew | None = None,
) -> Conflict | None:
    """Move the task to the column for the reason, with a comment that says what was tried.

    If the task comes from specialists already, or nobody watches the column, a card for people is opened
    instead and returned. Raises IllegalMove and StaleTask like every move.
    """
    config = task.project.config
    here = choosing.stage_of(task, config)
    column = escalation_for(config, reason)
    if here.is_escalation:
        return _ask_people(task, f"{here.label}: the specialists failed too", actor, notes)
    if not (crew or choosing.Crew()).at(task.project_id, Run.Role.CODER, column):
        return _ask_people(task, f"Nobody watches {column.name}", actor, notes)
    tried = attempts.listed(attempts.attempts_of(task))
    add_comment(task.project, _told(here, column, tried, notes), actor=actor, task=task)
    note = f"from {here.name} to {column.name} after {counted(len(tried), 'failed attempt')}"
    task.escalate(column.name, reason=column.reason, actor=actor, note=note)
    return None


def _told(here: Stage, column: Stage, tried: list[str], notes: str) -> str:
    """Return the comment: from where to where the task goes and why, and a line for every attempt."""
    lines = [f"Escalated from {here.name} to {column.name} ({column.reason})."]
    if notes.strip():
        lines += ["", notes.strip()]
    lines += ["", "Attempts that failed:", ""] if tried else ["", "No attempt failed before."]
    return "\n".join([*lines, *(f"- {line}" for line in tried)])[:BODY_MAX]


def _ask_people(task: Task, why: str, actor: Actor, notes: str) -> Conflict:
    """Ask people by a card that lists all attempts, at every stage, since people last reset the count."""
    tried = attempts.listed(attempts.attempts_of(task, everywhere=True))
    question = f"{why}: {task.title}"[:QUESTION_MAX]
    return opening.stop_for_help(
        task, Conflict.Origin.LADDER, question, actor=actor, detail=notes, evidence=tried
    )

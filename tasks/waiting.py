"""Why is this not moving? One line for every task, from facts."""

from django.utils import timezone

from tasks.dependencies import SATISFIED, unmet_sections
from tasks.models import Project, Task
from tasks.states import STARTABLE, Status


def waiting_line(task: Task) -> str:
    """Whose turn it is and why, in one sentence."""
    if task.landed_at and task.status != Status.DISPUTED:
        return f"Landed as {task.landed_sha[:12]}."
    starts = task.status in STARTABLE
    if task.project.status == Project.Status.PAUSED:
        return f"{task.project.name} is paused."
    if task.project.status == Project.Status.FINISHED and starts:
        return f"{task.project.name} is finished; nothing is started in it."
    if task.project.trouble and starts:
        return f"Waits for the repository: {task.project.trouble}"
    match Status(task.status):
        case Status.DISPUTED:
            landed = f" Landed as {task.landed_sha[:12]} meanwhile." if task.landed_at else ""
            return f"Waits for a human to rule.{landed}"
        case Status.FAILED:
            return "Failed; a human decides how it goes on."
        case Status.COMPLETED if task.finished_by:
            return "Finished outside the program."
        case Status.COMPLETED:
            return "Approved; waits to land."
        case Status.DEFERRED:
            return "Deferred until somebody resumes it."
        case Status.CANCELLED:
            return "Cancelled."
    if task.section.is_stopped:
        return f"The section {task.section.title} is stopped because a task in it failed."
    if task.not_before and task.not_before > timezone.now():
        seconds = (task.not_before - timezone.now()).total_seconds()
        return f"Rests for {seconds:.0f} s more, then goes on."
    if task.status == Status.PENDING and task.waits_for:
        return _dependencies(task)
    if task.status == Status.REVIEW:
        return "Build, tests and review."
    return "The coder's turn." if task.status == Status.IN_PROGRESS else "Waits for a free seat."


def _dependencies(task: Task) -> str:
    open_ones = task.depends_on.exclude(pk__in=Task.objects.filter(SATISFIED, project=task.project_id))
    names = [f"{other.ref} {other.title}" for other in open_ones.select_related("project")[:3]]
    if names:
        return f"Waits for {', '.join(names)} to land."
    if unmet_sections(task):
        return "Waits for another section."
    return "Nothing it waits for is left, but its counter says otherwise; save it once more."

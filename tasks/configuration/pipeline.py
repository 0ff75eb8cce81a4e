"""A project's tasks under its stages: which tasks are where, and what a change of the stages would do."""

from tasks.configuration.policy import ProjectSettings
from tasks.configuration.schema import SettingsError
from tasks.configuration.stages import escalations_of, first_stage
from tasks.models import Project, Task
from tasks.states import Status

NAMED_MAX = 5


def refuse_stranding(project: Project, after: ProjectSettings) -> None:
    """Raise SettingsError, naming the tasks, if unfinished ones are in a stage that would be gone.

    The program does not move them by itself: whoever removes a stage must first say where its work goes on.
    """
    names = {stage.name for stage in (*after.stages, *escalations_of(after))}
    begun = Task.objects.filter(project=project).exclude(status=Status.CANCELLED)
    begun = begun.exclude(status=Status.PENDING, round=0).exclude(landed_at__isnull=False)
    begun = begun.exclude(status=Status.COMPLETED, accepted__isnull=True)
    stranded = begun.exclude(stage__in=names) | begun.exclude(home_stage__in=[*names, ""])
    rows = list(stranded.order_by("number").values_list("number", "stage", "home_stage")[: NAMED_MAX + 1])
    if not rows:
        return
    gone = sorted({name for _, stage, home in rows for name in (stage, home) if name and name not in names})
    tasks = ", ".join(f"{project.slug}-{number}" for number, *_ in rows[:NAMED_MAX])
    more = " and more" if len(rows) > NAMED_MAX else ""
    raise SettingsError(
        f"stages: {tasks}{more} stand in {', '.join(gone)}, which would be gone. Finish, cancel or land them "
        "first, or keep the stage.", "stages",
    )  # fmt: skip


def begin_at_the_first(project: Project, settings: ProjectSettings) -> None:
    """Move the tasks that nobody has begun to the first stage of these settings."""
    waiting = Task.objects.filter(project=project, status=Status.PENDING, round=0)
    first = first_stage(settings).name
    waiting.exclude(stage=first).update(stage=first)

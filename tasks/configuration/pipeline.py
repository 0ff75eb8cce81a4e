"""The tasks of a project under its stages: who stands where, and what a change of the stages would do."""

from tasks.configuration.policy import ProjectSettings
from tasks.configuration.schema import SettingsError
from tasks.configuration.stages import escalations_of, first_stage
from tasks.models import Project, Task
from tasks.states import Status

NAMED_MAX = 5


def refuse_stranding(project: Project, after: ProjectSettings) -> None:
    """Raises SettingsError, naming the tasks, where unfinished ones stand in a stage that would be gone.

    They are not moved by themselves: whoever takes a stage away says first where its work goes on.
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
    """Tasks that nobody has begun wait before whichever stage is the first one now."""
    waiting = Task.objects.filter(project=project, status=Status.PENDING, round=0)
    first = first_stage(settings).name
    waiting.exclude(stage=first).update(stage=first)

"""Changing the settings of a project, with one function for the admin and for files.

A change of the stages may not leave a task behind in a stage that is gone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from tasks.base_state import try_again
from tasks.configuration.policy import ProjectSettings, in_words
from tasks.configuration.schema import SettingsError
from tasks.configuration.stages import escalations_of, first_stage
from tasks.database.locking import locked
from tasks.events import Actor
from tasks.models import Project, Task
from tasks.models.event import record
from tasks.states import Status
from tasks.text.storable import all_storable

WORDS_MAX = 60
NAMED_MAX = 5  # tasks
# The settings that say which commands run and which count; if one changes, the target branch is tried again.
COMMANDS = frozenset(
    {
        "prepare_command", "build_command", "test_command", "test_required", "detect_commands",
        "allowed_hosts",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """One changed setting, with its old and new value in words."""

    key: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.key}: {self.old} \u2192 {self.new}"


@transaction.atomic
def configure(
    project: Project, changes: Mapping[str, Any], *, actor: Actor, is_tried: bool = False
) -> list[Change]:
    """Set these keys and keep the others as they are in the row, whoever changed them meanwhile.

    The changes are recorded as an event with the old and new values. New commands are tried on the target
    branch, unless `is_tried` says that they were tried already. Raises SettingsError, and changes nothing, if
    a value is wrong or if tasks are in a stage that would be gone.
    """
    row = locked(Project.objects).get(pk=project.pk)
    before, dropped = row.config, row.setting_faults
    after = before.replaced(all_storable(dict(changes)))
    if before.stages != after.stages:
        refuse_stranding(row, after)
        begin_at_the_first(row, after)
    row.settings = project.settings = after.changed()
    row.save(update_fields=["settings"])
    made = differences(before, after)
    if made or dropped:
        note = "; ".join([*map(str, made), *(f"dropped: {str(fault).rstrip('.')}" for fault in dropped)])
        data = {"settings": {change.key: [change.old, change.new] for change in made}}
        record(row, "project_configured", actor=actor, note=note, data=data)
        if not is_tried and COMMANDS & {change.key for change in made}:
            try_again(project, actor=actor, why="The commands were changed.")
    return made


def pause_invalid(projects: Iterable[Project]) -> int:
    """Pause those of these projects that are active and whose stored settings are not valid, and say why.

    Their defaults would stand in for what is wrong, and a project must not be built or land by those
    unnoticed. Returns how many were paused.
    """
    return sum(_pause(project) for project in projects if project.setting_faults)


@transaction.atomic
def _pause(project: Project) -> bool:
    row = locked(Project.objects).get(pk=project.pk)
    if row.status != Project.Status.ACTIVE or not row.setting_faults:
        return False
    row.status = project.status = Project.Status.PAUSED
    row.save(update_fields=["status"])
    record(row, "settings_invalid", note=" ".join(map(str, row.setting_faults)))
    return True


def differences(before: ProjectSettings, after: ProjectSettings) -> list[Change]:
    """Return the settings that differ between `before` and `after`."""
    old, new = before.to_json(), after.to_json()
    return [Change(key, _short(key, old[key]), _short(key, new[key])) for key in new if old[key] != new[key]]


def _short(key: str, value: Any) -> str:
    text = " ".join(in_words(key, value).split()) or "blank"
    return text if len(text) <= WORDS_MAX else f"{text[: WORDS_MAX - 3]}..."


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

"""Keeping `Task.waits_for`: how many dependencies of a task have not landed. Recounted from facts."""

from collections.abc import Iterable

from django.db.models import Q

from tasks.models.task import Dependency, Task
from tasks.states import Status

# A task that dependants need not wait for: its code is on the target branch, nobody wants it any more, or a
# person or an import says it was done elsewhere.
SATISFIED = (
    Q(landed_at__isnull=False)
    | Q(status=Status.CANCELLED)
    | Q(status=Status.COMPLETED, finished_by__in=["hand", "import"])
)


def _section_and_below(section_id: int, children: dict[int | None, list[int]]) -> list[int]:
    found = [section_id]
    for child in children.get(section_id, []):
        found += _section_and_below(child, children)
    return found


def unmet(task: Task) -> int:
    """Unsatisfied task dependencies, and one for each section it waits for with an unsatisfied task."""
    own = Dependency.objects.filter(task=task).exclude(
        on__in=Task.objects.filter(SATISFIED, project=task.project_id)
    )
    count = own.count()
    from tasks.models.project import Section

    children: dict[int | None, list[int]] = {}
    for pk, parent in Section.objects.filter(project=task.project_id).values_list("pk", "parent"):
        children.setdefault(parent, []).append(pk)
    section: Section | None = task.section
    while section is not None:
        for needed in section.depends_on.all():
            tasks = Task.objects.filter(section__in=_section_and_below(needed.pk, children))
            count += tasks.exclude(SATISFIED).exists()
        section = section.parent
    return count


def recount(tasks: Iterable[Task]) -> None:
    """Write `waits_for` anew where it differs from the facts."""
    for task in tasks:
        count = unmet(task)
        Task.objects.filter(pk=task.pk).exclude(waits_for=count).update(waits_for=count)


def recount_dependants(task: Task) -> None:
    """After `task` landed, was cancelled or came back: whoever waits for it or for its section."""
    sections = []
    section = task.section
    while section is not None:
        sections.append(section.pk)
        section = section.parent
    waiting = Q(dependencies__on=task) | Q(section__in=_waiting_sections(task.project_id, sections))
    recount(
        Task.objects.filter(waiting, project=task.project_id, status=Status.PENDING)
        .distinct()
        .select_related("section__parent")
    )


def _waiting_sections(project_id: int, sections: list[int]) -> list[int]:
    from tasks.models.project import Section

    children: dict[int | None, list[int]] = {}
    rows = Section.objects.filter(project=project_id)
    for pk, parent in rows.values_list("pk", "parent"):
        children.setdefault(parent, []).append(pk)
    found: list[int] = []
    for pk in rows.filter(depends_on__in=sections).values_list("pk", flat=True):
        found += _section_and_below(pk, children)
    return found


def blocked_by(task: Task) -> int:
    """How many unfinished tasks wait for this one, directly or through others."""
    seen: set[int] = set()
    frontier = [task.pk]
    while frontier:
        frontier = [
            pk
            for pk in Dependency.objects.filter(on__in=frontier)
            .exclude(task__status__in=[Status.COMPLETED, Status.CANCELLED])
            .values_list("task", flat=True)
            if pk not in seen
        ]
        seen.update(frontier)
    return len(seen)

"""Keeping `Task.waits_for`, the count of a task's dependencies that have not landed, true to the facts."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Count, Exists, Expression, Q, QuerySet

from tasks.database.locking import locked
from tasks.database.prepared import Prepared
from tasks.models.project import Project, Section
from tasks.models.task import Dependency, Task
from tasks.states import Status


def _satisfied(of: str = "") -> Q:
    """Return the condition that dependants need not wait for a task, which the lookup `of` leads to.

    Its code is on the target branch, it was cancelled, or a review, a person or an import says that it is
    done.
    """
    by = ["hand", "import", "review"]
    is_done = Q((f"{of}status", Status.COMPLETED), (f"{of}finished_by__in", by))
    return Q((f"{of}landed_at__isnull", False)) | Q((f"{of}status", Status.CANCELLED)) | is_done


SATISFIED, SATISFIED_ON = _satisfied(), _satisfied("on__")


def _children_of(project_id: int) -> dict[int | None, list[int]]:
    children: dict[int | None, list[int]] = {}
    for pk, parent in Section.objects.filter(project=project_id).values_list("pk", "parent"):
        children.setdefault(parent, []).append(pk)
    return children


def _section_and_below(section_id: int, children: dict[int | None, list[int]]) -> list[int]:
    found = [section_id]
    for child in children.get(section_id, []):
        found += _section_and_below(child, children)
    return found


class _Sections:
    """How many sections the tasks of a section wait for, queried once per section rather than per task."""

    def __init__(self, project_id: int) -> None:
        self.children = _children_of(project_id)
        rows = Section.objects.filter(project=project_id).prefetch_related("depends_on")
        self.sections = {section.pk: section for section in rows}
        self.known: dict[int, int] = {}
        self.unmet: dict[int, bool] = {}

    def count(self, section_id: int | None) -> int:
        if section_id is None:
            return 0
        if section_id not in self.known:
            section = self.sections[section_id]
            own = sum(self._is_unmet(needed.pk) for needed in section.depends_on.all())
            self.known[section_id] = own + self.count(section.parent_id)
        return self.known[section_id]

    def _is_unmet(self, section_id: int) -> bool:
        if section_id not in self.unmet:
            tasks = Task.objects.filter(section__in=_section_and_below(section_id, self.children))
            self.unmet[section_id] = tasks.exclude(SATISFIED).exists()
        return self.unmet[section_id]


def counts_of(tasks: Iterable[Task]) -> dict[int, int]:
    """Return how many dependencies each of the tasks waits for, by the task's key, counted from the facts."""
    todo = list(tasks)
    sections = {project: _Sections(project) for project in {task.project_id for task in todo}}
    own = dict(
        Dependency.objects.filter(task__in=[task.pk for task in todo])
        .exclude(SATISFIED_ON)
        .values_list("task")
        .annotate(n=Count("pk"))
        .values_list("task", "n")
    )
    return {task.pk: own.get(task.pk, 0) + sections[task.project_id].count(task.section_id) for task in todo}


@transaction.atomic
def recount(tasks: Iterable[Task]) -> None:
    """Rewrite `waits_for` for the tasks whose stored value differs from the facts.

    It counts the dependencies that are unsatisfied, plus one for each section waited for that has an
    unsatisfied task. Tasks that have not begun are locked before counting: if two dependencies landed at the
    same moment, neither transaction would see the other's landing, and the task would wait for ever.
    """
    todo = list(tasks)
    waiting = Task.objects.filter(pk__in=[task.pk for task in todo], status=Status.PENDING)
    now = dict(locked(waiting).order_by("pk").values_list("pk", "waits_for"))
    counted = counts_of(todo)
    wrong: dict[int, list[int]] = {}
    for task in todo:
        count = counted[task.pk]
        if count != now.get(task.pk, task.waits_for):
            wrong.setdefault(count, []).append(task.pk)
        task.waits_for = count
    for count, pks in wrong.items():
        Task.objects.filter(pk__in=pks).update(waits_for=count)


def recount_dependants(task: Task) -> None:
    """Recount the tasks that wait for `task` or its section, after it landed, was cancelled or came back."""
    if not _has_waiting.rows(task.pk, task.project_id):
        return
    sections = []
    section = task.section
    while section is not None:
        sections.append(section.pk)
        section = section.parent
    waiting = Q(dependencies__on=task) | Q(section__in=_waiting_sections(task.project_id, sections))
    recount(
        Task.objects.filter(waiting, project=task.project_id).distinct().select_related("section__parent")
    )


def _any_that_waits(task: Expression, project: Expression) -> QuerySet[Project]:
    """Return the project if anything in it waits for this task, or for any section of the project."""
    for_task = Dependency.objects.filter(on=task)
    for_section = Section.objects.filter(project=project, depends_on__isnull=False)
    rows = Project.objects.filter(Exists(for_task) | Exists(for_section), pk=project)
    return rows.order_by().values_list("pk")


_has_waiting = Prepared(_any_that_waits)


def _waiting_sections(project_id: int, sections: list[int]) -> list[int]:
    children = _children_of(project_id)
    found: list[int] = []
    waiting = Section.objects.filter(project=project_id, depends_on__in=sections)
    for pk in waiting.values_list("pk", flat=True):
        found += _section_and_below(pk, children)
    return found


def blocked_by(task: Task) -> int:
    """Return how many unfinished tasks wait for this one, directly or through others."""
    seen: set[int] = set()
    frontier = {pk for (pk,) in _waiting_for_it.rows(task.pk)}
    while frontier:
        seen |= frontier
        frontier = set(_unfinished.filter(on__in=frontier).values_list("task", flat=True)) - seen
    return len(seen)


_unfinished = Dependency.objects.exclude(task__status__in=[Status.COMPLETED, Status.CANCELLED]).order_by()
_waiting_for_it = Prepared(lambda task: _unfinished.filter(on=task).values_list("task"))

"""Adding a single task or project."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from tasks.database.locking import locked
from tasks.dependencies import recount
from tasks.errors import Invalid
from tasks.events import Actor
from tasks.models import Dependency, Membership, Project, Section, Task
from tasks.models.event import record
from tasks.models.task import RANK_STEP
from tasks.todo.format import FIRST_SECTION
from tasks.todo.outline import circle_in


def place_last(task: Task) -> None:
    """Give a new task the next number in its section's project and the last rank.

    Locks the project, so that other tasks added at the same time wait.
    """
    task.project = locked(Project.objects).get(pk=task.section.project_id)
    _number(task)


def _number(task: Task) -> None:
    last = task.project.tasks.aggregate(Max("number"), Max("rank"))
    task.number = (last["number__max"] or 0) + 1
    task.rank = (last["rank__max"] or 0) + RANK_STEP


def create_last(project: Project, **values: Any) -> Task:
    """Create a task at the end of the project, with these columns. The caller holds the project's lock."""
    task = Task(project=project, **values)
    _number(task)
    task.save()
    return task


def add_task(
    project: Project,
    title: str,
    *,
    actor: Actor,
    section: str = "",
    depends_on: Sequence[str] = (),
    **values: Any,
) -> Task:
    """Add a task at the end of the project. `values` are further columns of the task.

    A section that does not exist is created; an empty name means the first section. Raises Refused if one of
    `depends_on` does not exist, or if the dependencies form a circle.
    """
    with transaction.atomic():
        project = locked(Project.objects).get(pk=project.pk)
        needed = [_task(project, ref) for ref in dict.fromkeys(depends_on)]
        task = create_last(project, section=section_titled(project, section), title=title, **values)
        Dependency.objects.bulk_create([Dependency(task=task, on=other) for other in needed])
        if needed and (circle := circle_in(project)):
            raise Invalid("circle", circle, "Leave out one of depends_on.")
        recount([task])
        record(project, "created", actor=actor, task=task, new=task.status)
    return task


def section_titled(project: Project, title: str = "") -> Section:
    """Return the section of that title, created at the end if there is none; without a title, the first."""
    sections = Section.objects.filter(project=project, parent=None).order_by("rank", "pk")
    found = sections.filter(title=title).first() if title else sections.first()
    if found is None:
        last = sections.aggregate(Max("rank"))["rank__max"] or 0
        found = Section.objects.create(project=project, title=title or FIRST_SECTION, rank=last + RANK_STEP)
    return found


def _task(project: Project, ref: str) -> Task:
    found = Task.objects.filter(project=project).named(ref).first()
    if found is None:
        raise Invalid("no_task", f"There is no task {ref} in {project.name}.", "See `steroids tasks list`.")
    return found


def add_project(
    slug: str,
    repository: str,
    *,
    by: Any,
    name: str = "",
    branch: str = "",
    kind: str = Project.Kind.CODE,
    brief: str = "",
) -> Project:
    """Add a project whose maintainer and lead is the superuser `by`; a host looks at its repository next.

    Raises ValidationError if the slug is taken or a field is invalid.
    """
    project = Project(
        slug=slug, name=name or slug, repo_url=repository, target_branch=branch, kind=kind, brief=brief
    )
    with transaction.atomic():
        if Project.objects.filter(slug=slug).exists():
            raise ValidationError({"slug": f"There is a project {slug} already."})
        project.full_clean()
        begin_project(project, [by], actor=Actor.person(by))
    return project


@transaction.atomic
def begin_project(project: Project, maintainers: Iterable[Any], *, actor: Actor) -> None:
    """Save a new project with its first section and its maintainers; those who are superusers lead it."""
    project.save()
    Section.objects.create(project=project, title=FIRST_SECTION)
    for user in {user.pk: user for user in maintainers}.values():
        Membership.objects.create(
            project=project, user=user, role=Membership.Role.MAINTAINER, is_lead=user.is_superuser
        )
    record(project, "project_added", actor=actor)


@contextmanager
def as_refused() -> Iterator[None]:
    """Turn a model's ValidationError into a Refused that names each field at fault."""
    try:
        yield
    except ValidationError as error:
        named = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
        details = [{"field": field, "reason": " ".join(told)} for field, told in named.items()]
        message = " ".join(f"{each['field']}: {each['reason']}".removeprefix(": ") for each in details)
        raise Invalid("invalid", message, "Mend these fields.", details=details) from error

"""Who may see and do what: the memberships, asked in one place."""

from typing import Any

from django.db.models import QuerySet

from tasks.models import Membership, Project, Task

READ = frozenset(Membership.Role.values)
RULE = frozenset({Membership.Role.TRIAGER, Membership.Role.MAINTAINER})
MAINTAIN = frozenset({Membership.Role.MAINTAINER})


def projects_for(user: Any, roles: frozenset[str] = READ) -> QuerySet[Project]:
    """The projects in which the person has one of the roles; superusers have all."""
    if not user.is_authenticated or not user.is_active or user.pk is None:
        return Project.objects.none()
    if user.is_superuser:
        return Project.objects.all()
    return Project.objects.filter(
        pk__in=Membership.objects.filter(user=user, role__in=roles).values("project")
    )


def roles_of(user: Any) -> dict[int, str]:
    """The person's role in each of their projects, in one query; superusers maintain all."""
    if not user.is_authenticated or not user.is_active or user.pk is None:
        return {}
    if user.is_superuser:
        return dict.fromkeys(Project.objects.values_list("pk", flat=True), Membership.Role.MAINTAINER.value)
    return dict(Membership.objects.filter(user=user).values_list("project", "role"))


def tasks_for(user: Any, roles: frozenset[str] = READ) -> QuerySet[Task]:
    """The tasks of those projects. A run's token reads its own task and has no other right."""
    if (own := getattr(user, "task_pk", None)) is not None:
        return Task.objects.filter(pk=own) if roles == READ else Task.objects.none()
    return Task.objects.filter(project__in=projects_for(user, roles))


def may(user: Any, project: Project, roles: frozenset[str]) -> bool:
    """Whether the person has one of the roles in this project."""
    return projects_for(user, roles).filter(pk=project.pk).exists()

"""Who may see and do what: the memberships, asked in one place."""

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks.errors import Refused
from tasks.models import Membership, Project, Task
from tasks.models.task import TaskQuerySet

READ = frozenset(Membership.Role.values)
RULE = frozenset({Membership.Role.TRIAGER, Membership.Role.MAINTAINER})
MAINTAIN = frozenset({Membership.Role.MAINTAINER})


def _is_nobody(user: Any) -> bool:
    """Signed out, switched off, or no person at all."""
    return not user.is_authenticated or not user.is_active or user.pk is None


def projects_for(user: Any, roles: frozenset[str] = READ) -> QuerySet[Project]:
    """The projects in which the person has one of the roles; superusers have all."""
    if _is_nobody(user):
        return Project.objects.none()
    if user.is_superuser:
        return Project.objects.all()
    return Project.objects.filter(
        pk__in=Membership.objects.filter(user=user, role__in=roles).values("project")
    )


def roles_of(user: Any) -> dict[int, str]:
    """The person's role in each of their projects, in one query; superusers maintain all."""
    if _is_nobody(user):
        return {}
    if user.is_superuser:
        return dict.fromkeys(Project.objects.values_list("pk", flat=True), Membership.Role.MAINTAINER.value)
    return dict(Membership.objects.filter(user=user).values_list("project", "role"))


def tasks_for(user: Any, roles: frozenset[str] = READ) -> TaskQuerySet:
    """The tasks of those projects. A run's token reads its own task and has no other right."""
    if (own := getattr(user, "task_pk", None)) is not None:
        return Task.objects.filter(pk=own) if roles == READ else Task.objects.none()
    if user.is_superuser and user.is_active:
        return Task.objects.all()  # by the keys of all projects SQLite reads the table in their order
    return Task.objects.filter(project__in=projects_for(user, roles))


def may(user: Any, project: Project, roles: frozenset[str]) -> bool:
    """Whether the person has one of the roles in this project."""
    return projects_for(user, roles).filter(pk=project.pk).exists()


def may_set_commands(user: Any) -> bool:
    """Whether the person may say which shell commands hosts run to prepare, build and test.

    Outside of a sandbox they run as the program itself does: whoever sets them could read its secrets. So
    maintainers may set them only where no host takes a run without one.
    """
    return bool(user.is_active and (user.is_superuser or settings.SANDBOX == "required"))


def require(user: Any, project: Project, roles: frozenset[str], what: str) -> None:
    """Raises Refused: no_right, where the person has none of the roles in this project.

    `what` ends the sentence: You may not … in Ledger.
    """
    if not may(user, project, roles):
        raise no_right(project, roles, what)


def require_any(user: Any, roles: frozenset[str], what: str) -> None:
    """The same where they have none of the roles in any project. Raises Refused: no_right."""
    if not projects_for(user, roles).exists():
        raise no_right(None, roles, what)


def require_superuser(user: Any, what: str) -> None:
    """Raises Refused: no_right, for everybody else. `what` ends the sentence: You may not …"""
    if not (user.is_active and user.is_superuser):
        raise Refused("no_right", f"You may not {what}.", "Ask a superuser.", status=403)


def require_role(role: str, project: Project, roles: frozenset[str], what: str) -> None:
    """The same where the person's role in this project is known already. Raises Refused: no_right."""
    if role not in roles:
        raise no_right(project, roles, what)


def no_right(project: Project | None, roles: frozenset[str], what: str) -> Refused:
    """What is said to whoever lacks a role, and who can give it."""
    hint = "Ask a maintainer to do it, or to make you one."
    if Membership.Role.TRIAGER in roles:
        lowest = "member" if Membership.Role.VIEWER in roles else "triager"
        hint = f"Ask a maintainer to make you a {lowest}."
    where = project.name if project else "any project"
    return Refused("no_right", f"You may not {what} in {where}.", hint, status=403)


def is_superuser(request: HttpRequest) -> bool:
    """Superusers are members of every project, and the only ones who see the installation."""
    user: Any = request.user
    return bool(user.is_active and user.is_superuser)


def my_projects(request: HttpRequest) -> list[Project]:
    """The person's projects by name, read once per request. Their roles come in the same query."""
    known: list[Project] | None = request.__dict__.get("_projects")
    if known is None:
        rows = _projects_with_roles(request.user)
        known = request.__dict__["_projects"] = [project for project, _ in rows]
        request.__dict__["_roles"] = {project.pk: role for project, role in rows}
    return known


def _projects_with_roles(user: Any) -> list[tuple[Project, str]]:
    if _is_nobody(user):
        return []
    if user.is_superuser:
        return [(project, Membership.Role.MAINTAINER.value) for project in Project.objects.order_by("name")]
    mine = Membership.objects.filter(user=user).select_related("project").order_by("project__name")
    return [(membership.project, membership.role) for membership in mine]


def my_roles(request: HttpRequest) -> dict[int, str]:
    """Asked once per request: the sidebar alone asks for every model.

    A member's projects are few and come with them; of a superuser, who has all, the keys are enough.
    """
    if "_roles" not in request.__dict__:
        if is_superuser(request):
            request.__dict__["_roles"] = roles_of(request.user)
        else:
            my_projects(request)
    known: dict[int, str] = request.__dict__["_roles"]
    return known


def remember_roles(request: HttpRequest, roles: dict[int, str]) -> None:
    """What a page has read with its projects, so that it is not asked again."""
    request.__dict__["_roles"] = roles


def role_in(request: HttpRequest, project_pk: int) -> str:
    """The person's role in the project; empty for none."""
    if is_superuser(request):
        return Membership.Role.MAINTAINER.value
    return my_roles(request).get(project_pk, "")


def project_ids(request: HttpRequest, roles: frozenset[str]) -> frozenset[int]:
    """The keys of projects_for()."""
    return frozenset(pk for pk, role in my_roles(request).items() if role in roles)

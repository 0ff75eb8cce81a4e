"""Who may see and do what: the one place that reads memberships."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest

from tasks.database.prepared import Prepared
from tasks.errors import Refused
from tasks.models import Membership, Project, Task
from tasks.models.task import TaskQuerySet, parts_of

READ = frozenset(Membership.Role.values)
RULE = frozenset({Membership.Role.TRIAGER, Membership.Role.MAINTAINER})
MAINTAIN = frozenset({Membership.Role.MAINTAINER})


def may_enter(user: Any) -> bool:
    """Whether the account is open; otherwise its sessions and tokens are void."""
    return bool(user.is_active and user.is_staff)


def bearer_of(request: Any) -> str:
    """Return the token in the request's header, whatever blanks are before it; empty if there is none."""
    words = request.META.get("HTTP_AUTHORIZATION", "").split()
    return words[1] if len(words) == 2 and words[0].lower() == "bearer" else ""


def who_may_enter(relation: str = "") -> Q:
    """Return the condition that an account is open, for a query about accounts or about that relation."""
    start = f"{relation}__" if relation else ""
    return Q(**{f"{start}is_active": True, f"{start}is_staff": True})


def _is_nobody(user: Any) -> bool:
    """Whether the user is signed out, is deactivated, or has no account."""
    return not user.is_authenticated or not user.is_active or user.pk is None


@dataclass(frozen=True, slots=True)
class Reader:
    """A person who is signed in, by key, in a query that is built once for whoever asks."""

    pk: Any
    is_superuser: bool
    is_authenticated: bool = True
    is_active: bool = True


class PreparedForReaders:
    """A query that `build` makes of a Reader and other values, with a text of its own for superusers."""

    def __init__(self, build: Callable[..., QuerySet[Any, Any]]) -> None:
        takes = len(signature(build).parameters)
        self._texts = {
            is_superuser: Prepared(
                lambda pk, *values, is_superuser=is_superuser: build(Reader(pk, is_superuser), *values), takes
            )
            for is_superuser in (True, False)
        }

    def found(self, user: Any, *values: Any) -> list[Any]:
        """Return what the query finds for this user and these values."""
        return self._texts[bool(user.is_superuser)].found(user.pk, *values)


def projects_for(user: Any, roles: frozenset[str] = READ) -> QuerySet[Project]:
    """Return the projects in which the user has one of the roles; a superuser has them all."""
    if _is_nobody(user):
        return Project.objects.none()
    if user.is_superuser:
        return Project.objects.all()
    return Project.objects.filter(
        pk__in=Membership.objects.filter(user=user.pk, role__in=roles).values("project")
    )


def of_projects(user: Any, roles: frozenset[str] = READ, *, in_order: bool = False) -> Q:
    """Return the condition that a row's project is one in which the user has one of the roles.

    For the first rows `in_order` it uses EXISTS instead of IN, so that the database walks an index in that
    order and stops at the end of the page, instead of sorting everything.
    """
    if user.is_superuser and user.is_active:
        return Q()
    if not in_order:
        return Q(project__in=projects_for(user, roles))
    if _is_nobody(user):
        return Q(pk__in=[])
    return Q(Exists(Membership.objects.filter(project=OuterRef("project"), user=user.pk, role__in=roles)))


def roles_of(user: Any) -> dict[int, str]:
    """Return the user's role in each of their projects, by the project's key, with one query.

    A superuser counts as a maintainer of every project.
    """
    if _is_nobody(user):
        return {}
    if user.is_superuser:
        return dict.fromkeys(Project.objects.values_list("pk", flat=True), Membership.Role.MAINTAINER.value)
    return dict(Membership.objects.filter(user=user).values_list("project", "role"))


def tasks_for(user: Any, roles: frozenset[str] = READ) -> TaskQuerySet:
    """Return the tasks of the projects in which the user has one of the roles.

    A run's token may read its own task, and has no other right.
    """
    if (own := getattr(user, "task_pk", None)) is not None:
        return Task.objects.filter(pk=own) if roles == READ else Task.objects.none()
    if user.is_superuser and user.is_active:
        return Task.objects.all()  # filtering by every project's key, SQLite would read in the order of keys
    return Task.objects.filter(project__in=projects_for(user, roles))


def tasks_named(user: Any, ref: str) -> TaskQuerySet:
    """Return the task of that name, such as ledger-214, if the user may see it.

    A run may go on naming its own task as it was told, although its project has another short name by now.
    """
    tasks = tasks_for(user)
    if getattr(user, "task_pk", None) is not None and (task := tasks.select_related("project").first()):
        return tasks if went_by(task, ref) else tasks.none()
    found, name = tasks.named(ref), parts_of(ref)
    if name and not found.exists() and (project := formerly(user, name[0])):
        return tasks.filter(project=project, number=name[1])
    return found


def formerly(user: Any, slug: str) -> Project | None:
    """Return the user's project that had this short name before, unless another project has it now."""
    if not (slug.isascii() and slug.isprintable()):
        return None  # no short name, and nothing that every database can be asked for
    project = projects_for(user).filter(former_names__slug=slug).first()
    return None if project is None or Project.objects.filter(slug=slug).exists() else project


def went_by(task: Task, ref: str) -> bool:
    """Whether `ref` names the task, or did so before its project was renamed and names no other now."""
    name = parts_of(ref)
    if name is None or name[1] != task.number:
        return False
    return name[0] == task.project.slug or not Task.objects.named(ref).exists()


def visible_project(user: Any, slug: str) -> Project:
    """Return the project of that short name. Raises Refused("no_project") if the user may not see it."""
    own = getattr(user, "task_pk", None)
    seen = projects_for(user) if own is None else Project.objects.filter(tasks=own)
    project = seen.filter(slug=slug).first() or (formerly(user, slug) if own is None else None)
    if project is None:
        raise Refused(
            "no_project", f"There is no project {slug} that you may see.", "See `steroids projects`.",
            status=404,
        )  # fmt: skip
    return project


def visible_task(user: Any, ref: str) -> Task:
    """Return the task of that name. Raises Refused("not_found") if the user may not see it."""
    task = tasks_named(user, ref).first()
    if task is None:
        raise no_task(ref)
    return task


def no_task(ref: str) -> Refused:
    """Return the refusal of a name under which the user may see no task."""
    return Refused("not_found", f"There is no task {ref} that you may see.", "Check the name.", status=404)


def may(user: Any, project: Project, roles: frozenset[str]) -> bool:
    """Whether the person has one of the roles in this project."""
    return projects_for(user, roles).filter(pk=project.pk).exists()


def may_set_commands(user: Any) -> bool:
    """Whether the user may set the shell commands with which hosts prepare, build and test.

    Outside a sandbox these commands run with the rights of the program itself, so whoever sets them could
    read its secrets. Maintainers may therefore set them only if every host requires a sandbox.
    """
    return bool(user.is_active and (user.is_superuser or settings.SANDBOX == "required"))


def require(user: Any, project: Project, roles: frozenset[str], what: str) -> None:
    """Raise Refused("no_right") if the user has none of the roles in this project.

    `what` completes the sentence "You may not … in Ledger."
    """
    if not may(user, project, roles):
        raise no_right(project, roles, what)


def require_any(user: Any, roles: frozenset[str], what: str) -> None:
    """Raise Refused("no_right") if the user has none of the roles in any project."""
    if not projects_for(user, roles).exists():
        raise no_right(None, roles, what)


def require_superuser(user: Any, what: str) -> None:
    """Raise Refused("no_right") unless the user is a superuser. `what` completes "You may not …"."""
    if not (user.is_active and user.is_superuser):
        raise Refused("no_right", f"You may not {what}.", "Ask a superuser.", status=403)


def require_role(role: str, project: Project, roles: frozenset[str], what: str) -> None:
    """Raise Refused("no_right") if `role`, which the user has in this project, is none of the roles."""
    if role not in roles:
        raise no_right(project, roles, what)


def no_right(project: Project | None, roles: frozenset[str], what: str) -> Refused:
    """Return the refusal for a user who lacks a role, with a hint about who can grant it."""
    hint = "Ask a maintainer to do it, or to make you one."
    if Membership.Role.TRIAGER in roles:
        lowest = "member" if Membership.Role.VIEWER in roles else "triager"
        hint = f"Ask a maintainer to make you a {lowest}."
    where = project.name if project else "any project"
    return Refused("no_right", f"You may not {what} in {where}.", hint, status=403)


def is_superuser(request: HttpRequest) -> bool:
    """Whether the user is a superuser, who counts as a member of every project and sees the installation."""
    user: Any = request.user
    return bool(user.is_active and user.is_superuser)


def my_projects(request: HttpRequest) -> list[Project]:
    """Return the user's projects by name, read once per request; the same query reads their roles."""
    known: list[Project] | None = request.__dict__.get("_projects")
    if known is None:
        rows = _projects_with_roles(request.user)
        known = request.__dict__["_projects"] = [project for project, _ in rows]
        request.__dict__["_roles"] = {project.pk: role for project, role in rows}
    return known


def _projects_with_roles(user: Any) -> list[tuple[Project, str]]:
    """Return the user's projects by name, each with the user's role there, with one query."""
    if _is_nobody(user):
        return []
    if user.is_superuser:
        return [(project, Membership.Role.MAINTAINER.value) for project in _every_project.found()]
    return [(membership.project, membership.role) for membership in _memberships.found(user.pk)]


def _with_projects(user: Any) -> QuerySet[Membership]:
    return Membership.objects.filter(user=user).select_related("project").order_by("project__name")


_memberships, _every_project = Prepared(_with_projects), Prepared(lambda: Project.objects.order_by("name"))


def with_projects(rows: Iterable[Any], projects: dict[int, Project]) -> list[Any]:
    """Return the rows and their tasks, each with its project from those that have already been read.

    If they were joined instead, PostgreSQL would plan for longer than it reads, and it might begin with the
    projects and sort.
    """
    found = list(rows)
    for row in found:
        task = getattr(row, "task", None)
        for each in (row, task) if task else (row,):
            if each.project_id in projects:
                each.project = projects[each.project_id]
    return found


def my_roles(request: HttpRequest) -> dict[int, str]:
    """Return the user's role in each of their projects, by the project's key, read once per request.

    The sidebar alone asks for every model. A member's projects are few, so they are read along with the
    roles; of a superuser, who has them all, only the keys are read.
    """
    if "_roles" not in request.__dict__:
        if is_superuser(request):
            request.__dict__["_roles"] = roles_of(request.user)
        else:
            my_projects(request)
    known: dict[int, str] = request.__dict__["_roles"]
    return known


def role_in(request: HttpRequest, project_pk: int) -> str:
    """Return the user's role in the project; empty if they have none."""
    if is_superuser(request):
        return Membership.Role.MAINTAINER.value
    return my_roles(request).get(project_pk, "")


def project_ids(request: HttpRequest, roles: frozenset[str]) -> frozenset[int]:
    """Return the keys of the projects in which the user has one of the roles, read once per request."""
    return frozenset(pk for pk, role in my_roles(request).items() if role in roles)

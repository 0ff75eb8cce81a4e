"""The REST API for reading and adding tasks and projects, and for the moves that people make by hand."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from tasks import access
from tasks.adding import add_project, add_task, as_refused
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.filtering import DONE, OptionalText, SeverityField, SeverityFilter
from tasks.hooks import spent_line, waiting_line
from tasks.idempotency import acting, idempotent
from tasks.models import STATUS_CHOICES, Finding, Project, Task
from tasks.models.project import EXITS
from tasks.models.task import TaskQuerySet
from tasks.projects import counts_of
from tasks.remarks.comments import BODY_MAX
from tasks.states import Status
from tasks.todo.format import SECTION_TITLE_MAX, SOURCE_MAX, TITLE_MAX, as_line

REF = r"[A-Za-z0-9][A-Za-z0-9_-]*-[0-9]+"  # a name in a URL: ledger-214, D-7


def validated(form: type[serializers.Serializer[Any]], body: Any) -> dict[str, Any]:
    """Return what the body of a request says. Raises ValidationError."""
    read = form(data=body)
    read.is_valid(raise_exception=True)
    return dict(read.validated_data)


class ProjectNameFilter(django_filters.CharFilter):
    """A project by its short name; one that the caller may not see is refused instead of finding nothing."""

    def filter(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value:
            value = access.visible_project(self.parent.request.user, value).slug
        return super().filter(queryset, value)


class TaskNameFilter(django_filters.CharFilter):
    """A task by its name; one that the caller may not see is refused instead of finding nothing."""

    def filter(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return super().filter(queryset, access.visible_task(self.parent.request.user, value) if value else "")


class TaskFilter(django_filters.FilterSet):
    """The filters of the list of tasks."""

    project = ProjectNameFilter(field_name="project__slug")
    status = django_filters.ChoiceFilter(choices=STATUS_CHOICES)
    severity = SeverityFilter()
    search = django_filters.CharFilter(method="filter_search", label="Words of the title or the text")

    def filter_search(self, queryset: QuerySet[Task], name: str, value: str) -> QuerySet[Task]:
        return queryset.filter(Q(title__icontains=value) | Q(body__icontains=value)).read_once()


class ProjectFilterSet(django_filters.FilterSet):
    """The filters of the list of projects."""

    status = django_filters.ChoiceFilter(choices=Project.Status.choices)
    search = django_filters.CharFilter(method="filter_search", label="Words of the name or the short name")

    def filter_search(self, queryset: QuerySet[Project], name: str, value: str) -> QuerySet[Project]:
        return queryset.filter(Q(name__icontains=value) | Q(slug__icontains=value))


class ProjectSerializer(serializers.ModelSerializer[Project]):
    """A project as shown in a list."""

    repository = serializers.SerializerMethodField(
        help_text="Where git fetches and pushes it; passwords are masked."
    )
    exit_type = serializers.ChoiceField(
        EXITS, allow_blank=True, read_only=True, help_text="How it has ended; empty: it has not."
    )  # empty: it has not ended
    tasks = serializers.SerializerMethodField(help_text="How many there are of each status.")

    class Meta:
        model = Project
        fields = [
            "slug", "name", "kind", "repository", "target_branch", "status", "trouble", "exit_type", "tasks",
        ]  # fmt: skip
        read_only_fields = fields

    def get_repository(self, project: Project) -> str:
        return project.address

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_tasks(self, project: Project) -> dict[str, int]:
        counts: dict[int, dict[str, int]] = self.context["counts"]
        return counts[project.pk]


class NewProjectSerializer(serializers.Serializer[Any]):
    """A project to add. A host then looks at its repository and finds its commands by trying them."""

    slug = serializers.SlugField(max_length=40, help_text="Begins every task's name: ledger-214.")
    repository = serializers.CharField(max_length=500, help_text="An address that git can fetch and push.")
    name = OptionalText(max_length=120)
    branch = OptionalText(max_length=200, help_text="Empty: the one that the repository calls its default.")
    kind = serializers.ChoiceField(
        Project.Kind.choices,
        required=False,
        default=Project.Kind.CODE,
        help_text="Code is built and tested; documents are closed gap by gap, in rounds.",
    )
    brief = OptionalText(
        max_length=BODY_MAX,
        help_text="What documents are for, and for whom: every prompt of a round holds it.",
    )


class ProjectViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Project]):
    """The projects that you are a member of."""

    queryset = Project.objects.none()
    serializer_class = ProjectSerializer
    filterset_class = ProjectFilterSet

    def get_queryset(self) -> QuerySet[Project]:
        return access.projects_for(self.request.user).order_by("slug")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        context = self.get_serializer_context() | {"counts": counts_of(page)}
        return self.get_paginated_response(ProjectSerializer(page, many=True, context=context).data)

    @extend_schema(request=NewProjectSerializer, responses={201: ProjectSerializer})
    @idempotent(201)
    def create(self, request: Request) -> dict[str, Any]:
        """Add a project and become its maintainer.

        Only superusers may do this, because hosts fetch the repository with their own rights.
        """
        access.require_superuser(request.user, "add projects")
        said = validated(NewProjectSerializer, request.data)
        with as_refused():
            project = add_project(
                said["slug"], said["repository"], by=request.user, name=said["name"], branch=said["branch"],
                kind=said["kind"], brief=said["brief"],
            )  # fmt: skip
        return dict(ProjectSerializer(project, context={"counts": counts_of([project])}).data)


class TaskSerializer(serializers.ModelSerializer[Task]):
    """A task as shown in a list."""

    ref = serializers.CharField(
        read_only=True, help_text="Its name, by the short name of its project: ledger-214."
    )
    marker = serializers.CharField(read_only=True, help_text="How a TODO.md marks its status: [x].")
    project = serializers.CharField(source="project.slug", read_only=True)
    section = serializers.CharField(source="section.title", read_only=True)
    where = serializers.CharField(
        read_only=True, help_text="Its stage among those of the project; empty where there is only one."
    )

    class Meta:
        model = Task
        fields = [
            "ref", "title", "status", "stage", "where", "marker", "round", "severity", "project", "section",
            "tags", "source", "rejections", "landed_sha", "landed_at", "status_at",
        ]  # fmt: skip
        read_only_fields = fields
        extra_kwargs = {
            "round": {"help_text": "The turn of coder and reviewer, from 1 on; 0: nobody has begun."},
            "rejections": {"help_text": "Reviews that sent it back."},
            "landed_sha": {"help_text": "Its commit on the target branch."},
            "status_at": {"help_text": "When it came to this status."},
            "stage": {"help_text": "Its column, where the project has several."},
            "tags": {"help_text": "By these, agents that are made for some work are chosen."},
        }


class FindingSerializer(serializers.ModelSerializer[Finding]):
    """A finding of the last review."""

    class Meta:
        model = Finding
        fields = ["code", "severity", "mandatory", "title", "location", "impact", "suggestion"]
        read_only_fields = fields
        extra_kwargs = {
            "code": {"help_text": "By this the coder answers it: ISSUE-R1-001."},
            "mandatory": {"help_text": "Whether it must be mended or declined before the task lands."},
            "impact": {"help_text": "What goes wrong because of it."},
        }

    location = serializers.CharField(
        read_only=True, help_text="File and lines, or a heading, as the reviewer named it."
    )


class TaskDetailSerializer(TaskSerializer):
    """One task, with what it is waiting for, what it cost, its last findings and its dependencies."""

    waiting = serializers.SerializerMethodField(help_text="What it is waiting for, in one line.")
    spent = serializers.SerializerMethodField(
        help_text="What its runs cost in US dollars and used in tokens, in words; empty where nothing."
    )
    findings = serializers.SerializerMethodField(
        help_text="Those of the last review that were not withdrawn."
    )
    depends_on = serializers.SerializerMethodField(help_text="Tasks that must be done first.")

    class Meta(TaskSerializer.Meta):
        fields = [*TaskSerializer.Meta.fields, "body", "waiting", "spent", "findings", "depends_on"]
        read_only_fields = fields
        extra_kwargs = {
            **TaskSerializer.Meta.extra_kwargs,
            "body": {"help_text": "What is asked, in Markdown."},
        }

    def get_waiting(self, task: Task) -> str:
        return waiting_line(task)

    def get_spent(self, task: Task) -> str:
        return spent_line(task)

    @extend_schema_field(FindingSerializer(many=True))
    def get_findings(self, task: Task) -> Any:
        last = task.findings.standing().order_by("-review_id").values_list("review", flat=True).first()
        return FindingSerializer(task.findings.filter(review=last) if last else [], many=True).data

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_depends_on(self, task: Task) -> list[str]:
        return [other.ref for other in task.depends_on.select_related("project")]


class MovedTaskSerializer(TaskDetailSerializer):
    """The task, and a sentence that says what was done."""

    message = serializers.CharField(help_text=DONE)

    class Meta(TaskDetailSerializer.Meta):
        fields = [*TaskDetailSerializer.Meta.fields, "message"]
        read_only_fields = fields


class NewTaskSerializer(serializers.Serializer[Any]):
    """A task to add at the end of its project."""

    project = serializers.CharField(max_length=40, help_text="The short name of the project.")
    title = serializers.CharField(max_length=TITLE_MAX)
    body = OptionalText(
        max_length=BODY_MAX, help_text="What is asked, in Markdown; every prompt of the task holds it."
    )
    section = OptionalText(
        max_length=SECTION_TITLE_MAX, help_text="One that is not there is made; empty: the first one."
    )
    severity = SeverityField(required=False, default="medium")
    source = OptionalText(
        max_length=SOURCE_MAX, help_text="The specification that it is about: docs/SPEC.md#login."
    )
    tags = serializers.ListField(
        child=serializers.CharField(max_length=60),
        required=False,
        max_length=50,
        default=list,
        help_text="By these, agents that are made for some work are chosen.",
    )
    depends_on = serializers.ListField(
        child=serializers.CharField(max_length=60), required=False, max_length=200, default=list,
        help_text="Names of tasks that are to be done first: ledger-3.",
    )  # fmt: skip


class StatusSerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(
        choices=STATUS_CHOICES,
        help_text="Only moves of people are taken: others come from hand-ins and rulings.",
    )
    notes = OptionalText(max_length=20_000, help_text="Why; the next prompt says so where one follows.")


# The move by which a person brings a task to a status; the other statuses come from hand-ins and rulings.
MOVE_TO: dict[str, str] = {
    Status.DEFERRED: "defer",
    Status.CANCELLED: "cancel",
    Status.COMPLETED: "finish",
    Status.PENDING: "resume",
    Status.IN_PROGRESS: "resume",
}


def move_to(task: Task, status: str) -> str:
    """Return the move by which a person brings the task to this status.

    Raises Refused("wrong_status") if nobody may set this status by hand.
    """
    verb = MOVE_TO.get(status)
    if verb == "resume" and task.status in {Status.COMPLETED, Status.CANCELLED}:
        return "reopen"
    if verb is None:
        raise Refused(
            "wrong_status", f"Nobody sets a task to {status} by hand.",
            f"By hand: {', '.join(sorted(MOVE_TO))}. Disputes are ruled on: `steroids dispute resolve`.",
        )  # fmt: skip
    return verb


class TaskViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Task]):
    """The tasks of the projects that you are a member of."""

    queryset = Task.objects.none()
    serializer_class = TaskSerializer
    filterset_class = TaskFilter
    lookup_field = "ref"
    lookup_value_regex = REF

    def get_queryset(self) -> TaskQuerySet:
        return (
            access.tasks_for(self.request.user)
            .select_related("project", "section")
            .order_by("project__slug", "rank", "number")
        )

    def get_object(self) -> Task:
        named = access.tasks_named(self.request.user, self.kwargs["ref"])
        return get_object_or_404(named.select_related("project", "section"))

    @extend_schema(responses=TaskDetailSerializer)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(TaskDetailSerializer(self.get_object()).data)

    @extend_schema(request=NewTaskSerializer, responses={201: MovedTaskSerializer})
    @idempotent(201)
    def create(self, request: Request) -> dict[str, Any]:
        """Add a task to a project that you maintain."""
        access.require_any(request.user, access.MAINTAIN, "add tasks")
        said = validated(NewTaskSerializer, request.data)
        slug, title = said.pop("project"), as_line(said.pop("title"))
        project = access.visible_project(request.user, slug)
        access.require(request.user, project, access.MAINTAIN, "add tasks")
        task = add_task(project, title, actor=Actor.person(request.user), **said)
        told = TaskDetailSerializer(task).data
        rests = "" if task.project.status == Project.Status.ACTIVE else f" {told['waiting']}"
        return {**told, "message": f"{task.ref} is added.{rests}"}

    @acting(StatusSerializer, MovedTaskSerializer)
    def status(self, request: Request, ref: str) -> dict[str, Any]:
        """Defer, cancel, finish, resume or reopen a task by hand."""
        task = self.get_object()
        access.require(request.user, task.project, access.RULE, "move tasks")
        said = validated(StatusSerializer, request.data)
        verb, notes = move_to(task, said["status"]), said["notes"]
        roles = access.RULE if verb in {"defer", "resume"} else access.MAINTAIN
        access.require(request.user, task.project, roles, f"{verb} tasks")
        if verb == "reopen" and not notes.strip():
            raise Invalid("text_missing", "A reason is needed to reopen a task.", "Add --notes.")
        getattr(task, verb)(actor=Actor.person(request.user), note=notes)
        task.refresh_from_db()
        return {**TaskDetailSerializer(task).data, "message": f"{task.ref} is {task.status} now."}

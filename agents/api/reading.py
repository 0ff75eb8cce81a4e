"""Runs and agents over REST: reading both, and adding an agent."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import Agent, Run
from agents.setup.adding import agent_from, missing_program
from tasks.access import projects_for, require_superuser
from tasks.adding import as_refused
from tasks.api import ProjectNameFilter, TaskNameFilter, validated
from tasks.errors import Invalid
from tasks.filtering import OptionalText
from tasks.idempotency import idempotent
from tasks.models import Project


class RunFilter(django_filters.FilterSet):
    """The filters of the list of runs."""

    project = ProjectNameFilter(field_name="project__slug")
    task = TaskNameFilter(label="The name of its task: ledger-214")
    role = django_filters.ChoiceFilter(choices=Run.Role.choices)
    status = django_filters.ChoiceFilter(choices=Run.Status.choices)
    outcome = django_filters.ChoiceFilter(choices=Run.Outcome.choices)

    class Meta:
        model = Run
        fields = ["project", "task", "role", "status", "outcome"]


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run of an agent, or a verification."""

    project = serializers.CharField(source="project.slug", read_only=True)
    task = serializers.CharField(source="task.ref", read_only=True)
    agent = serializers.CharField(source="agent_label", read_only=True, help_text="Its name as it was then.")
    host = serializers.CharField(
        source="host.name", read_only=True, default="", help_text="Empty: it waits for one."
    )
    outcome = serializers.ChoiceField(
        Run.Outcome.choices, allow_blank=True, read_only=True, help_text="How it ended; empty: it has not."
    )

    class Meta:
        model = Run
        fields = [
            "id", "project", "task", "role", "round", "stage", "agent", "model", "host", "status", "outcome",
            "reason", "exit_code", "sha", "tokens_in", "tokens_out", "cost", "queued_at", "started_at",
            "ended_at",
        ]  # fmt: skip
        read_only_fields = fields
        extra_kwargs = {
            "reason": {"help_text": "Why it ended so, in a sentence."},
            "exit_code": {"help_text": "Of the agent's command."},
            "round": {"help_text": "The task's when it was queued."},
            "stage": {"help_text": "The task's column then, where the project has several."},
        }


class RunViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Run]):
    """Runs in the projects that you are a member of, the newest first."""

    queryset = Run.objects.none()
    serializer_class = RunSerializer
    filterset_class = RunFilter
    lookup_value_regex = r"[0-9]{1,18}"

    def get_queryset(self) -> QuerySet[Run]:
        runs = Run.objects.filter(project__in=projects_for(self.request.user))
        return runs.select_related("project", "task__project", "host").order_by("-pk")


class AgentSerializer(serializers.ModelSerializer[Agent]):
    """An agent. Its command and the names of its secrets are shown on its page only."""

    projects = serializers.SlugRelatedField(slug_field="slug", many=True, read_only=True)  # type: ignore[var-annotated]

    class Meta:
        model = Agent
        fields = ["name", "role", "kind", "provider", "model", "projects", "domains", "slots", "is_active"]
        read_only_fields = fields


class NewAgentSerializer(serializers.Serializer[Any]):
    """An agent to add."""

    name = serializers.SlugField(max_length=60)
    role = serializers.ChoiceField(Agent.Role.choices)
    command = serializers.ListField(
        child=serializers.CharField(max_length=1000), min_length=1, max_length=100,
        help_text='Its words: ["my-agent", "{prompt}"], or one of the known commands alone: ["claude"].',
    )  # fmt: skip
    model = OptionalText(max_length=120)
    slots = serializers.IntegerField(required=False, min_value=1, max_value=1000, default=1)
    projects = serializers.ListField(
        child=serializers.CharField(max_length=40), required=False, max_length=200, default=list,
        help_text="Short names of the projects that it works in; none: all.",
    )  # fmt: skip
    hosts = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, max_length=100, default=list,
        help_text="Hosts that it talks to from inside the sandbox.",
    )  # fmt: skip


class AddedAgentSerializer(AgentSerializer):
    """The added agent; `missing` says what this host lacks to start it, and is empty if it lacks nothing."""

    missing = serializers.SerializerMethodField()

    class Meta(AgentSerializer.Meta):
        fields = [*AgentSerializer.Meta.fields, "missing"]
        read_only_fields = fields

    def get_missing(self, agent: Agent) -> str:
        return missing_program(agent)


class AgentViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Agent]):
    """The agents of the installation, for superusers only, since hosts start the commands they name."""

    queryset = Agent.objects.none()
    serializer_class = AgentSerializer

    def get_queryset(self) -> QuerySet[Agent]:
        return Agent.objects.prefetch_related("projects").order_by("name")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        require_superuser(request.user, "see the agents of the installation")
        return super().list(request, *args, **kwargs)

    @extend_schema(request=NewAgentSerializer, responses={201: AddedAgentSerializer})
    @idempotent(201)
    def create(self, request: Request) -> dict[str, Any]:
        """Add an agent that hosts start by a command."""
        require_superuser(request.user, "add agents")
        said = validated(NewAgentSerializer, request.data)
        projects = list(Project.objects.filter(slug__in=said["projects"]))
        if unknown := set(said["projects"]) - {project.slug for project in projects}:
            raise Invalid(
                "no_project", f"There is no project {', '.join(sorted(unknown))}.", "See `steroids projects`."
            )
        agent = agent_from(
            said["name"],
            said["role"],
            said["command"],
            model=said["model"],
            slots=said["slots"],
            hosts=said["hosts"],
        )
        with as_refused():
            agent.full_clean()
        agent.save()
        agent.projects.set(projects)
        return dict(AddedAgentSerializer(agent).data)

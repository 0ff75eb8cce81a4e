"""The REST API for amendments of specifications, and for the branches that hold disputed work."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from disputes import amendments
from disputes.api.disputes import refuse_runs
from disputes.models import Amendment
from disputes.protocol.rulings.amendments import WORDS_MAX
from tasks.access import RULE, projects_for, require
from tasks.api import ProjectNameFilter, validated
from tasks.events import Actor
from tasks.filtering import DONE
from tasks.idempotency import acting
from tasks.models import Submission

AS_SHOWN = (
    "decision__conflict__dispute__project", "decision__conflict__dispute__task__project", "task__project",
    "asked_by", "settled_by",
)  # fmt: skip


class AmendmentFilter(django_filters.FilterSet):
    """The filters of the list of amendments."""

    project = ProjectNameFilter(field_name="decision__conflict__dispute__project__slug")
    state = django_filters.ChoiceFilter(choices=Amendment.State.choices)


class AmendmentSerializer(serializers.ModelSerializer[Amendment]):
    """An amendment in a list: what a ruling adds to the specification, and how far it has got."""

    project = serializers.CharField(source="decision.conflict.dispute.project.slug", read_only=True)
    dispute = serializers.CharField(source="decision.conflict.dispute.ref", read_only=True)
    conflict = serializers.CharField(source="decision.conflict.ref", read_only=True)
    question = serializers.CharField(
        source="decision.conflict.question", read_only=True, help_text="What the ruling was about."
    )
    task = serializers.CharField(
        source="task.ref", default="", read_only=True,
        help_text="It carries the approved commit; empty before.",
    )  # fmt: skip
    stands = serializers.CharField(source="stands_in", read_only=True, help_text="Its state in words.")

    class Meta:
        model = Amendment
        fields = [
            "id", "project", "dispute", "conflict", "question", "path", "section", "state", "stands",
            "version", "sha", "problem", "task", "asked_at", "settled_at",
        ]  # fmt: skip
        read_only_fields = fields
        extra_kwargs = {
            "problem": {"help_text": "Why it cannot be drafted or land; empty: nothing is wrong."},
            "settled_at": {"help_text": "When it was approved or dropped."},
        }


class AmendmentDetailSerializer(AmendmentSerializer):
    """One amendment with its words and its diff."""

    asked_by = serializers.SerializerMethodField(help_text="Who asked for it when ruling.")
    settled_by = serializers.SerializerMethodField(help_text="Who approved or dropped it.")

    class Meta(AmendmentSerializer.Meta):
        fields = [*AmendmentSerializer.Meta.fields, "words", "diff", "asked_by", "settled_by"]
        read_only_fields = fields
        extra_kwargs = {
            **AmendmentSerializer.Meta.extra_kwargs,
            "diff": {"help_text": "Of the specification; empty until a host has drafted it."},
        }

    def get_asked_by(self, amendment: Amendment) -> str:
        return _name(amendment.asked_by)

    def get_settled_by(self, amendment: Amendment) -> str:
        return _name(amendment.settled_by)


def _name(user: Any) -> str:
    return Actor.person(user).label if user else ""


class SettledSerializer(AmendmentDetailSerializer):
    """The amendment after the action, and a sentence that says what was done."""

    message = serializers.CharField(help_text=DONE)

    class Meta(AmendmentDetailSerializer.Meta):
        fields = [*AmendmentDetailSerializer.Meta.fields, "message"]
        read_only_fields = fields


class SeenSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=0, help_text="The version that you looked at.")


class RewordSerializer(SeenSerializer):
    words = serializers.CharField(max_length=WORDS_MAX, help_text="What the specification is to say.")


class AmendmentViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Amendment]):
    """Amendments in the projects that you are a member of, newest first."""

    queryset = Amendment.objects.none()
    serializer_class = AmendmentSerializer
    filterset_class = AmendmentFilter
    lookup_value_regex = r"[0-9]{1,9}"

    def get_queryset(self) -> QuerySet[Amendment]:
        seen = projects_for(self.request.user)
        rows = Amendment.objects.filter(decision__conflict__dispute__project__in=seen)
        return rows.select_related(*AS_SHOWN).order_by("-pk")

    @extend_schema(responses=AmendmentDetailSerializer)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(AmendmentDetailSerializer(self.get_object()).data)

    @acting(SeenSerializer, SettledSerializer)
    def approve(self, request: Request, pk: str) -> dict[str, Any]:
        """Have exactly the commit that you looked at verified and landed. Only people may do this."""
        amendment, said = self._to_settle(request, SeenSerializer)
        task = amendments.approve(amendment, seen=said["version"], user=request.user)
        return self._told(f"Approved: {task.ref} is verified, then it lands.")

    @acting(SeenSerializer, SettledSerializer)
    def drop(self, request: Request, pk: str) -> dict[str, Any]:
        """Drop the amendment. Only people may do this."""
        amendment, said = self._to_settle(request, SeenSerializer)
        amendments.drop(amendment, seen=said["version"], user=request.user)
        return self._told("The amendment is dropped.")

    @acting(RewordSerializer, SettledSerializer)
    def reword(self, request: Request, pk: str) -> dict[str, Any]:
        """Have the amendment drafted again with other words. Only people may do this."""
        amendment, said = self._to_settle(request, RewordSerializer)
        amendments.reword(amendment, said["words"], seen=said["version"], user=request.user)
        return self._told("It is drafted again with these words.")

    def _to_settle(
        self, request: Request, form: type[serializers.Serializer[Any]]
    ) -> tuple[Amendment, dict[str, Any]]:
        """Return the amendment and the validated body if the person may rule.

        Raises Http404, ValidationError, or Refused if the caller is an agent ("wrong_role") or may not rule
        ("no_right").
        """
        refuse_runs(request, "settle an amendment", "does")
        amendment = self.get_object()
        require(request.user, amendment.decision.conflict.dispute.project, RULE, "amend the specification")
        return amendment, validated(form, request.data)

    def _told(self, message: str) -> dict[str, Any]:
        return {**AmendmentDetailSerializer(self.get_object()).data, "message": message}


class DisputedWorkFilter(django_filters.FilterSet):
    """The filters of the list of disputed work."""

    project = ProjectNameFilter(field_name="task__project__slug")


class DisputedWorkSerializer(serializers.ModelSerializer[Submission]):
    """Work that was pushed to a branch of its own while it was disputed, or that the remote refused."""

    project = serializers.CharField(source="task.project.slug", read_only=True)
    task = serializers.CharField(source="task.ref", read_only=True)
    task_status = serializers.CharField(source="task.status", read_only=True)
    branch = serializers.CharField(
        source="aside_branch", read_only=True, help_text="Empty: the remote did not take it."
    )
    problem = serializers.CharField(
        source="aside_problem", read_only=True, help_text="Why the remote did not take it; empty: it did."
    )
    tried_at = serializers.DateTimeField(
        source="aside_at", read_only=True, allow_null=True, help_text="When that was last tried."
    )

    class Meta:
        model = Submission
        fields = ["id", "project", "task", "task_status", "round", "sha", "branch", "problem", "tried_at"]
        read_only_fields = fields


class DisputedWorkViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Submission]
):
    """Branches of disputed work in the projects that you are a member of, newest first.

    Nobody approves these branches: the ruling on the task decides what becomes of them.
    """

    queryset = Submission.objects.none()
    serializer_class = DisputedWorkSerializer
    filterset_class = DisputedWorkFilter
    lookup_value_regex = r"[0-9]{1,18}"

    def get_queryset(self) -> QuerySet[Submission]:
        rows = Submission.objects.filter(task__project__in=projects_for(self.request.user))
        rows = rows.filter(~Q(aside_branch="") | ~Q(aside_problem=""))
        heavy = ("diff", "specification", "response", "since_last_round")
        return rows.defer(*heavy).select_related("task__project").order_by("-pk")

"""The REST API for taking rounds of a task back, used with a person's token."""

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from disputes.completion import rollbacks
from disputes.models import Decision
from tasks.access import MAINTAIN, RULE, require, tasks_for
from tasks.api import MovedTaskSerializer, TaskDetailSerializer, validated
from tasks.errors import Refused
from tasks.idempotency import idempotent
from tasks.models import Task


class RollbackSerializer(serializers.Serializer[Any]):
    to_round = serializers.IntegerField(
        min_value=0, max_value=32_000, help_text="The task begins again after this round."
    )
    reason = serializers.CharField(max_length=rollbacks.TEXT_MAX, help_text="The next prompt says so.")


class ReapplySerializer(serializers.Serializer[Any]):
    ruling = serializers.IntegerField(min_value=1, help_text="The archived ruling, by its number.")
    text = serializers.CharField(
        max_length=rollbacks.TEXT_MAX, required=False, help_text="Other words; without them its own."
    )


class RevertSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=rollbacks.TEXT_MAX, help_text="What it broke.")


class ArchivedSerializer(serializers.ModelSerializer[Decision]):
    """A ruling from a round that was taken back."""

    ruling = serializers.IntegerField(source="pk", help_text="By this number it can be put to use again.")
    conflict = serializers.CharField(source="conflict.ref")
    question = serializers.CharField(source="conflict.question")
    round = serializers.SerializerMethodField(
        help_text="The round that was taken back; 0: the ruling was about no hand-in."
    )

    class Meta:
        model = Decision
        fields = ["ruling", "conflict", "question", "round", "letter", "option", "text", "rationale"]

    letter = serializers.CharField()

    def get_round(self, decision: Decision) -> int:
        submission = decision.conflict.submission
        return submission.round if submission else 0


class TakenBackSerializer(MovedTaskSerializer):
    """The task, the rulings that were archived, and a sentence that says what was done."""

    archived = ArchivedSerializer(many=True)

    class Meta(MovedTaskSerializer.Meta):
        fields = [*MovedTaskSerializer.Meta.fields, "archived"]


class PersonsVerb(APIView):
    """An action on a task that only people may take; repeating it with one Idempotency-Key has one effect."""

    roles: ClassVar[frozenset[str]] = MAINTAIN

    def to_change(self, request: Request, ref: str) -> Task:
        """Return the task if the person may take the action on it. Raises Http404 or Refused."""
        if getattr(request.user, "task_pk", None) is not None:
            raise Refused(
                "wrong_role", "No agent takes rounds back.", "A human of the project does.", status=403
            )
        task = _task(request, ref)
        require(request.user, task.project, self.roles, "take rounds back")
        return task


def _task(request: Request, ref: str) -> Task:
    return get_object_or_404(tasks_for(request.user).select_related("project", "section").named(ref))


def _told(request: Request, ref: str, message: str) -> dict[str, Any]:
    """Return the task as it is after the action, its archived rulings, and the message."""
    task = _task(request, ref)
    archived = rollbacks.archived(task).select_related("conflict__submission")[:100]
    told = {**TaskDetailSerializer(task).data, "message": message}
    return {**told, "archived": ArchivedSerializer(archived, many=True).data}


def _documented(name: str, body: type[serializers.Serializer[Any]]) -> Any:
    return extend_schema(operation_id=name, request=body, responses=TakenBackSerializer, tags=["tasks"])


class RollbackView(PersonsVerb):
    @_documented("task_rollback", RollbackSerializer)
    @idempotent()
    def post(self, request: Request, ref: str) -> dict[str, Any]:
        """Take back the rounds after `to_round`. Only maintainers may do this; nothing is deleted."""
        task, data = self.to_change(request, ref), validated(RollbackSerializer, request.data)
        made = rollbacks.roll_back(task, data["to_round"], user=request.user, reason=data["reason"])
        return _told(request, ref, f"{task.ref} begins round {made.to_round + 1} again.")


class ReapplyView(PersonsVerb):
    roles = RULE

    @_documented("task_reapply", ReapplySerializer)
    @idempotent()
    def post(self, request: Request, ref: str) -> dict[str, Any]:
        """Repeat a ruling from a round that was taken back, as it was or with other words."""
        task, data = self.to_change(request, ref), validated(ReapplySerializer, request.data)
        decision = get_object_or_404(rollbacks.archived(task), pk=data["ruling"])
        again = rollbacks.reapply(decision, user=request.user, text=data.get("text"))
        return _told(request, ref, f"{again.conflict.ref} is ruled {again.letter} ({again.option}) again.")


class RevertView(PersonsVerb):
    @_documented("task_revert", RevertSerializer)
    @idempotent()
    def post(self, request: Request, ref: str) -> dict[str, Any]:
        """Make a task that reverts what has landed for this one. Only maintainers may do this."""
        task, data = self.to_change(request, ref), validated(RevertSerializer, request.data)
        made = rollbacks.make_revert_task(task, user=request.user, reason=data["reason"])
        return _told(request, ref, f"{made.ref} will take it back.")

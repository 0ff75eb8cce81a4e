"""The REST API for taking rounds of a task back, used with a person's token."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from disputes.completion import rollbacks
from disputes.models import Decision
from tasks import idempotency
from tasks.access import MAINTAIN, RULE, require, tasks_for
from tasks.api import MovedTaskSerializer, TaskDetailSerializer, validated
from tasks.errors import Refused
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

    ruling = serializers.IntegerField(source="pk")
    conflict = serializers.CharField(source="conflict.ref")
    question = serializers.CharField(source="conflict.question")
    round = serializers.SerializerMethodField()

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

    def once(self, request: Request, ref: str, verb: Callable[[Task], str]) -> Response:
        """Carry out the action and reply with the task and a message. Rights are checked before the body."""

        def work() -> tuple[dict[str, Any], int]:
            task = self._task(request, ref)
            require(request.user, task.project, self.roles, "take rounds back")
            message = verb(task)
            task = self._task(request, ref)
            archived = rollbacks.archived(task).select_related("conflict__submission")[:100]
            told = {**TaskDetailSerializer(task).data, "message": message}
            return {**told, "archived": ArchivedSerializer(archived, many=True).data}, 200

        return idempotency.answer(request, work)

    def _task(self, request: Request, ref: str) -> Task:
        if getattr(request.user, "task_pk", None) is not None:
            raise Refused(
                "wrong_role", "No agent takes rounds back.", "A human of the project does.", status=403
            )
        return get_object_or_404(tasks_for(request.user).select_related("project", "section").named(ref))


def _documented(name: str, body: type[serializers.Serializer[Any]]) -> Any:
    return extend_schema(operation_id=name, request=body, responses=TakenBackSerializer, tags=["tasks"])


class RollbackView(PersonsVerb):
    @_documented("task_rollback", RollbackSerializer)
    def post(self, request: Request, ref: str) -> Response:
        """Take back the rounds after `to_round`. Only maintainers may do this; nothing is deleted."""

        def verb(task: Task) -> str:
            data = validated(RollbackSerializer, request.data)
            made = rollbacks.roll_back(task, data["to_round"], user=request.user, reason=data["reason"])
            return f"{task.ref} begins round {made.to_round + 1} again."

        return self.once(request, ref, verb)


class ReapplyView(PersonsVerb):
    roles = RULE

    @_documented("task_reapply", ReapplySerializer)
    def post(self, request: Request, ref: str) -> Response:
        """Repeat a ruling from a round that was taken back, as it was or with other words."""

        def verb(task: Task) -> str:
            data = validated(ReapplySerializer, request.data)
            decision = get_object_or_404(rollbacks.archived(task), pk=data["ruling"])
            again = rollbacks.reapply(decision, user=request.user, text=data.get("text"))
            return f"{again.conflict.ref} is ruled {again.letter} ({again.option}) again."

        return self.once(request, ref, verb)


class RevertView(PersonsVerb):
    @_documented("task_revert", RevertSerializer)
    def post(self, request: Request, ref: str) -> Response:
        """Make a task that reverts what has landed for this one. Only maintainers may do this."""

        def verb(task: Task) -> str:
            data = validated(RevertSerializer, request.data)
            made = rollbacks.make_revert_task(task, user=request.user, reason=data["reason"])
            return f"{made.ref} will take it back."

        return self.once(request, ref, verb)

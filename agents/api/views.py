"""The endpoints of hand-ins."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from agents.api import handins, serializers
from agents.api.principals import PullPrincipal, RunPrincipal
from agents.crew import refusals
from tasks import idempotency
from tasks.api import validated
from tasks.errors import Refused


class LastCallView(APIView):
    """An endpoint whose call may end its caller's token. A repeated call is answered before it is checked."""

    def perform_authentication(self, request: Request) -> None:
        """Do nothing here: `post` first looks for an earlier reply, whose call may have ended this token."""

    def check_permissions(self, request: Request) -> None:
        """Do nothing here: `answered` checks."""

    def check_throttles(self, request: Request) -> None:
        """Do nothing here: `answered` checks."""

    def answered(self, request: Request) -> Response | None:
        """Return the reply to the same call before; without one, check the caller and return None."""
        earlier = idempotency.earlier_reply(request)
        if earlier is not None:
            return earlier
        try:
            super().perform_authentication(request)
        except Refused:
            if (earlier := idempotency.earlier_reply(request)) is not None:
                return earlier  # the same request was sent twice at once, and the other one was faster
            raise
        super().check_permissions(request)
        super().check_throttles(request)
        return None


class HandInView(LastCallView):
    """The endpoint of one verb. Sent twice with the same Idempotency-Key, it has one effect and one reply."""

    serializer: ClassVar[type[Serializer[Any]]]
    verb: ClassVar[Callable[..., dict[str, Any]]]
    verb_name: ClassVar[str]
    created = 201

    def post(self, request: Request, ref: str) -> Response:
        if (earlier := self.answered(request)) is not None:
            return earlier
        try:
            said, verb = validated(self.serializer, request.data), type(self).verb
            return idempotency.once(request, lambda: (verb(request.user, ref, said), self.created))
        except Exception as error:
            if isinstance(error, Refused | APIException):
                self._refuse_others(request, ref)
            if isinstance(request.user, RunPrincipal):  # the transaction is undone, but the refusal is kept
                refusals.note(request.user.run, type(self).verb_name, error)
            raise

    def _refuse_others(self, request: Request, ref: str) -> None:
        """Raise Refused if the caller may not do this at all, whatever the body holds."""
        with transaction.atomic():
            handins.caller_of(request.user, type(self).verb_name, ref)


def _view(name: str, verb: Callable[..., dict[str, Any]], body: type[Serializer[Any]]) -> Any:
    @extend_schema(
        operation_id=f"task_{name}", request=body, summary=(verb.__doc__ or name).strip().splitlines()[0],
        responses={201: serializers.HandedInSerializer}, tags=["hand-ins"],
    )  # fmt: skip
    def post(self: HandInView, request: Request, ref: str) -> Response:
        return HandInView.post(self, request, ref)

    members = {
        "verb": staticmethod(verb),
        "verb_name": name,
        "serializer": body,
        "post": post,
        "__doc__": verb.__doc__,
    }
    return type(f"{name.capitalize()}View", (HandInView,), members).as_view()


def _approve(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Approve the verified submission."""
    return handins.review(user, ref, data, approves=True)


def _reject(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Reject the verified submission, with findings."""
    return handins.review(user, ref, data, approves=False)


HAND_INS = {
    name: _view(name, verb, body)
    for name, verb, body in (
        ("submit", handins.submit, serializers.SubmitSerializer),
        ("approve", _approve, serializers.ReviewSerializer),
        ("reject", _reject, serializers.ReviewSerializer),
        ("dispute", handins.dispute, serializers.OpenDisputeSerializer),
        ("log", handins.log, serializers.LogSerializer),
        ("blocked", handins.blocked, serializers.BlockedSerializer),
        ("escalate", handins.escalate, serializers.EscalateSerializer),
        ("comment", handins.comment, serializers.CommentSerializer),
        ("opinion", handins.opinion, serializers.GiveOpinionSerializer),
    )
}


class MeView(APIView):
    """Says whose token this is."""

    is_for_pullers = True

    @extend_schema(operation_id="me", responses=serializers.MeSerializer, tags=["me"])
    def get(self, request: Request) -> Response:
        user = request.user
        if isinstance(user, RunPrincipal):
            run = user.run
            return Response(
                {"kind": "run", "name": user.get_username(), "role": run.role, "task": run.task.ref}
            )
        if isinstance(user, PullPrincipal):
            return Response({"kind": "agent", "name": user.agent.name, "role": user.agent.role, "task": ""})
        return Response({"kind": "person", "name": user.get_username(), "role": "", "task": ""})

"""A request that carries an Idempotency-Key takes effect once, however often it is sent (C18)."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import IntegrityError, transaction
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from tasks.access import bearer_of
from tasks.database.locking import repeated
from tasks.database.prepared import Prepared, PreparedInsert
from tasks.errors import Invalid, Refused
from tasks.models import Idempotency, StaleTask
from tasks.states import IllegalMove

KEY_MAX = 80


def _actor(request: Request) -> str:
    """Return the hash of the token, so that a reply is found after the token died, or else the user's key."""
    token = bearer_of(request)  # a proxy in front may sign in for all with another header
    return hashlib.sha256(token.encode()).hexdigest() if token else f"user-{request.user.pk}"


def key_of(request: Request) -> str:
    """Return the key by which a request is recognised when it is sent again; empty if it has none."""
    key = request.headers.get("Idempotency-Key", "")
    return key if len(key) <= KEY_MAX else hashlib.sha256(key.encode()).hexdigest()


def _hash(request: Request) -> str:
    return hashlib.sha256(request.path.encode() + b"\0" + request.body).hexdigest()


_earlier = Prepared(lambda actor, key: Idempotency.objects.filter(actor=actor, key=key).order_by())


_new_replies = PreparedInsert(Idempotency)


def earlier_reply(request: Request) -> Response | None:
    """Return the stored reply to this same request, even if its token died with it; None if there is none.

    Raises Refused("key_reused") if the key was sent with another request before.
    """
    key = key_of(request)
    found = _earlier.found(_actor(request), key) if key else []
    if not found:
        return None
    (row,) = found
    if row.request_hash != _hash(request):
        raise Invalid(
            "key_reused", "This Idempotency-Key was sent with another request before.",
            "Use a new key for a new request.",
        )  # fmt: skip
    return Response(row.reply, status=row.status)


def once(request: Request, work: Callable[[], tuple[dict[str, Any], int]]) -> Response:
    """Do the work and store its reply in one transaction.

    The work may run twice, so it must read its rows itself each time.
    """
    actor, key, hashed = _actor(request), key_of(request), _hash(request)

    @repeated
    @transaction.atomic
    def work_and_keep() -> tuple[dict[str, Any], int]:
        reply, status = work()
        if key:
            _new_replies.insert(
                Idempotency(actor=actor, key=key, request_hash=hashed, status=status, reply=reply)
            )
        return reply, status

    try:
        reply, status = work_and_keep()
    except (IntegrityError, Refused, IllegalMove, StaleTask):
        if (earlier := earlier_reply(request)) is not None:
            return earlier  # the same request, sent twice at once, was faster
        raise
    return Response(reply, status=status)


def idempotent(status: int = 200) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., Response]]:
    """Make an endpoint of a method that returns its reply; sent again, it gets the reply from before.

    It raises what `earlier_reply` and `once` raise.
    """

    def endpoint(method: Callable[..., dict[str, Any]]) -> Callable[..., Response]:
        @wraps(method)
        def answer(view: Any, request: Request, **kwargs: Any) -> Response:
            return earlier_reply(request) or once(request, lambda: (method(view, request, **kwargs), status))

        return answer

    return endpoint


def acting(form: type[BaseSerializer[Any]], reply: type[BaseSerializer[Any]], **more: Any) -> Any:
    """Make a POST below one row's address of a method that returns its reply; see `idempotent`."""

    def endpoint(method: Callable[..., dict[str, Any]]) -> Any:
        posted = action(detail=True, methods=["post"], **more)(idempotent()(method))
        return extend_schema(request=form, responses=reply)(posted)

    return endpoint

"""One effect per Idempotency-Key, however often the request is sent (C18)."""

import hashlib
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, transaction
from rest_framework.request import Request
from rest_framework.response import Response

from tasks.errors import Refused
from tasks.locking import repeated
from tasks.models import Idempotency, StaleTask
from tasks.models.prepared import Prepared, PreparedInsert
from tasks.states import IllegalMove

KEY_MAX = 80


def _actor(request: Request) -> str:
    """The token's hash, so that a reply is found again after the token died; else the person."""
    header = request.headers.get("Authorization", "")
    return hashlib.sha256(header.encode()).hexdigest() if header else f"user-{request.user.pk}"


def key_of(request: Request) -> str:
    """What the request is known by when it is sent again; empty where it has none."""
    return request.headers.get("Idempotency-Key", "")[:KEY_MAX]


def _hash(request: Request) -> str:
    return hashlib.sha256(request.path.encode() + b"\0" + request.body).hexdigest()


_earlier = Prepared(lambda actor, key: Idempotency.objects.filter(actor=actor, key=key).order_by())


_new_replies = PreparedInsert(Idempotency)


def earlier_reply(request: Request) -> Response | None:
    """The stored reply to this very request, also for a token that died with it.

    Raises Refused where the key was used for another request.
    """
    key = key_of(request)
    found = _earlier.found(_actor(request), key) if key else []
    if not found:
        return None
    (row,) = found
    if row.request_hash != _hash(request):
        raise Refused(
            "key_reused", "This Idempotency-Key was sent with another request before.",
            "Use a new key for a new request.", status=422,
        )  # fmt: skip
    return Response(row.reply, status=row.status)


def once(request: Request, work: Callable[[], tuple[dict[str, Any], int]]) -> Response:
    """Do the work and store its reply in one transaction; the work reads its rows itself, each time anew."""
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


def answer(request: Request, work: Callable[[], tuple[dict[str, Any], int]]) -> Response:
    """The stored reply to this very request, or what the work gives the first time. Raises as both do."""
    return earlier_reply(request) or once(request, work)

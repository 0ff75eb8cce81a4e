"""Every error of the API is JSON with a code, a sentence and what to do next."""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from disputes.protocol.documents import DocumentError
from tasks.errors import Refused
from tasks.models import StaleTask
from tasks.states import IllegalMove

log = logging.getLogger(__name__)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn what our verbs raise, and what the framework raises, into one shape."""
    refused = as_refused(error)
    if refused is None:
        return None
    set_rollback()
    headers = {}
    if isinstance(error, exceptions.APIException):
        if wait := getattr(error, "wait", None):
            headers["Retry-After"] = str(int(wait) + 1)
        if challenge := getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = challenge
    return Response(refused.as_json(), status=refused.status, headers=headers)


def as_refused(error: Exception) -> Refused | None:
    """The refusal that this error means; None for one that is our fault."""
    match error:
        case Refused():
            return error
        case IllegalMove():
            return Refused("wrong_status", str(error), "Look at the task again: `steroids tasks show`.")
        case StaleTask():
            return Refused(
                "stale_turn", str(error), "Reload it and decide again.", status_now=error.status_now
            )
        case DocumentError():
            problems = [{"line": problem.line, "reason": problem.reason} for problem in error.problems]
            first = (
                f"line {problems[0]['line']}: {problems[0]['reason']}" if problems else "it cannot be read"
            )
            return Refused(
                error.code, f"The document cannot be taken; {first}.",
                "Correct it and hand in again; this run goes on.", status=422, details=problems,
            )  # fmt: skip
        case Http404():
            return Refused(
                "not_found", "There is nothing of that name that you may see.", "Check the name.", status=404
            )
        case PermissionDenied() | exceptions.PermissionDenied():
            return Refused(
                "no_right",
                str(error) or "You may not do this.",
                "Ask a maintainer of the project.",
                status=403,
            )
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return Refused(
                "not_signed_in", "There is no valid token with this request.",
                "Send `Authorization: Bearer TOKEN`; `steroids login` keeps one for you.", status=401,
            )  # fmt: skip
        case exceptions.ValidationError():
            return Refused(
                "invalid", "Some fields cannot be taken.", "Correct them and send it again.", status=422,
                details=_field_problems(error.detail),
            )  # fmt: skip
        case exceptions.Throttled():
            return Refused("too_many", "Too many requests.", "Wait a moment, then send it again.", status=429)
        case exceptions.APIException():
            return Refused(str(error.default_code), str(error.detail), "", status=error.status_code)
    return None


def _field_problems(detail: Any) -> list[dict[str, str]]:
    if isinstance(detail, dict):
        return [
            {
                "field": field,
                "reason": " ".join(
                    str(word) for word in (reasons if isinstance(reasons, list) else [reasons])
                ),
            }
            for field, reasons in detail.items()
        ]
    return [{"field": "", "reason": str(reason)} for reason in detail]

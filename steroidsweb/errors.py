"""The errors of the API: JSON with a code, a sentence and what to do next."""

import logging
import sys
from collections.abc import Callable
from typing import Any

from django.core.exceptions import DisallowedHost, PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from disputes.protocol.text.documents import DocumentError
from tasks.database.locking import is_gone, is_passing, why_not
from tasks.errors import Invalid, Refused
from tasks.models import StaleTask
from tasks.states import IllegalMove
from tasks.text.unseen import visible

log = logging.getLogger(__name__)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn whatever a view raised, expected or not, into an answer of one shape."""
    request = context["request"]
    refused = as_refused(error) or _gone_meanwhile(request, error)
    if refused is not None and refused.status == 503:
        log.warning("A request to %s is to be sent again: %s", request.path, error)
    if refused is None:
        log.exception("A request to %s failed.", request.path, exc_info=error)
        refused = MISTAKE
    set_rollback()
    headers = {"Retry-After": "1"} if refused.status == 503 else {}
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait) + 1)
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(refused.as_json(), status=refused.status, headers=headers)


HINTS = {
    400: "Send well-formed JSON.",
    404: "Check the address; /api/docs/ lists them all.",
    405: "Check the method; /api/docs/ lists them all.",
    406: "Ask for application/json.",
    415: "Send JSON, with `Content-Type: application/json`.",
}


TOO_LARGE = Refused("too_large", "The request is larger than 1 MiB.", "Send less.", status=413)
MISTAKE = Refused(
    "server_error", "The program made a mistake; it is in its log.",
    "Send it again; tell whoever runs this installation if it happens twice.", status=500,
)  # fmt: skip
GONE = Refused(
    "not_found", "Nothing was done: what this is about was deleted meanwhile.", "Look at what is left.",
    status=404,
)  # fmt: skip
UNREADABLE = Refused("bad_request", "What was sent cannot be read.", "Go back and send it again.", status=400)
BAD_ADDRESS = Refused(
    "bad_request", "What this address asks for cannot be read.",
    "Leave out what follows its question mark.", status=400,
)  # fmt: skip
BAD_HOST = Refused(
    "bad_host", "This installation does not answer under this name.",
    "Whoever runs it adds the name to ALLOWED_HOSTS.", status=400,
)  # fmt: skip


def busy(error: BaseException) -> Refused:
    """Return the refusal for a database that cannot do its work at the moment, with the reason."""
    return Refused(
        "busy", f"The database cannot do this at the moment: {why_not(error)}.",
        "Send it again in a second; with the same Idempotency-Key it counts once.", status=503,
    )  # fmt: skip


def bare(request: HttpRequest, title: str, refused: Refused, words: str = "") -> HttpResponse:
    """Return a refusal as JSON or on a page without our frame; neither asks the session or the database."""
    headers = {"Retry-After": "1"} if refused.status == 503 else {}
    if request.path.startswith("/api/"):
        return JsonResponse(refused.as_json(), status=refused.status, headers=headers)
    context = {"title": title, "words": words or f"{refused.message} {refused.hint}"}
    return HttpResponse(loader.render_to_string("bare.html", context), status=refused.status, headers=headers)


def _gone_meanwhile(request: Any, error: BaseException | None) -> Refused | None:
    """Return the refusal of a write whose rows somebody deleted meanwhile; of any other error None.

    A read is not told so by its error, which may be any, but by reading once more: see `read_again`.
    """
    if error is None or request.method in {"GET", "HEAD"} or not is_gone(error):
        return None
    log.warning("What a request to %s is about was deleted meanwhile.", request.path, exc_info=error)
    return GONE


def read_again(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware right before the view: read once more if that failed, since rows may have gone meanwhile.

    A project may be deleted between two of a page's queries. The second time it is not found at once.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code == 500 and request.method in {"GET", "HEAD"}:
            return get_response(request)
        return response

    return middleware


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the answer for a request that failed by a fault of the program, or by the state of its rows."""
    error = sys.exc_info()[1]
    if gone := _gone_meanwhile(request, error):
        return bare(request, "Nothing was done", gone)
    if error is None or not is_passing(error):
        return bare(request, "Something went wrong", MISTAKE)
    words = f"The reason: {why_not(error)}. Go back and send it again in a few seconds."
    return bare(request, "The database cannot do this at the moment", busy(error), words)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the answer for a request that cannot be read, or that came to a name we do not answer to."""
    refused = BAD_ADDRESS if request.method == "GET" else UNREADABLE
    if isinstance(exception, DisallowedHost):
        refused = BAD_HOST
    return bare(request, "This cannot be answered", refused)


@csrf_exempt  # it does nothing, and who has no cookie is to read this answer instead of a page about cookies
def not_found(request: HttpRequest, path: str = "") -> JsonResponse:
    """Return the JSON answer for a URL of the API that does not exist."""
    refused = Refused("not_found", f"There is nothing at {request.path[:200]}.", HINTS[404], status=404)
    return JsonResponse(refused.as_json(), status=404)


def as_refused(error: Exception) -> Refused | None:
    """Return the refusal that this error means; None if the error is a fault of the program."""
    match error:
        case Refused():
            return error
        case Exception() if is_passing(error):
            return busy(error)
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
            return Invalid(
                error.code, f"The document cannot be taken; {first}.",
                "Correct it and hand in again; this run goes on.", details=problems,
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
        case RequestDataTooBig():
            return TOO_LARGE
        case RecursionError():
            return Refused("parse_error", "The JSON is nested too deep.", HINTS[400], status=400)
        case exceptions.APIException():
            return _of_the_framework(error)
    return None


def _of_the_framework(error: exceptions.APIException) -> Refused:
    """Return the refusal for an error that the REST framework raised."""
    match error:
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return Refused(
                "not_signed_in", "There is no valid token with this request.",
                "Send `Authorization: Bearer TOKEN`; `steroids login` keeps one for you.", status=401,
            )  # fmt: skip
        case exceptions.ValidationError():
            return Invalid(
                "invalid", "Some fields cannot be taken.", "Correct them and send it again.",
                details=_field_problems(error.detail),
            )  # fmt: skip
        case exceptions.Throttled():
            return Refused("too_many", "Too many requests.", "Wait a moment, then send it again.", status=429)
    hint = HINTS.get(error.status_code, "Correct it and send it again.")
    message = f"{str(error.detail).rstrip('.')}."
    return Refused(str(error.default_code), message, hint, status=error.status_code)


def _field_problems(detail: Any, at: str = "") -> list[dict[str, str]]:
    """Return each field at fault with its reasons; what is wrong inside a field is named like tags.1.

    A reason may quote what was sent, of which lone surrogates are no text, so nothing could answer with them.
    """
    if isinstance(detail, dict):
        inner = [_field_problems(held, f"{at}.{name}".strip(".")) for name, held in detail.items()]
        return [problem for problems in inner for problem in problems]
    if isinstance(detail, list) and at:
        detail = " ".join(str(reason) for reason in detail)
    return [{"field": visible(at), "reason": visible(str(reason))} for reason in ([detail] if at else detail)]

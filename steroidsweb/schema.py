"""The refusals in the OpenAPI schema: every way in which the API says no."""

from typing import Any

from steroidsweb.errors import HINTS

SHAPE = {
    "type": "object",
    "description": "Why it was not done. Some codes bring fields of their own, such as status_now.",
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string", "description": "What happened, to what."},
        "hint": {"type": "string", "description": "What to do next."},
        "details": {
            "type": "array",
            "items": {"type": "object", "additionalProperties": {}},
            "description": "The fields or lines at fault.",
        },
    },
    "required": ["code", "message", "hint"],
    "additionalProperties": {},
}
REFUSALS = {
    400: "The body is no well-formed JSON.",
    401: "There is no valid token with this request.",
    403: "The token may not do this.",
    404: "There is nothing of that name that you may see.",
    406: HINTS[406],
    409: "It cannot be done as things stand: another status, a newer turn, a run that handed in.",
    413: "The request is too large.",
    415: HINTS[415],
    422: "A field, a filter or the document cannot be taken, or the Idempotency-Key is of another request.",
    429: "Too many requests; Retry-After says when to send the next one.",
    503: "The database cannot do it at the moment; Retry-After says when to send it again.",
}
KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string"},
    "description": "The same key has the same effect and reply.",
}
ALWAYS = {401, 403, 406, 409, 429, 503}
WITH_BODY = {400, 413, 415, 422}
WRITING = {"post", "put", "patch", "delete"}


def refusals(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add to each operation the refusals that it can give, as a hook of drf-spectacular.

    Whatever is posted takes an Idempotency-Key, which is added, too.
    """
    result["components"].setdefault("schemas", {})["Refusal"] = SHAPE
    answer = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            for status in sorted(_refusals_of(path, method, operation)):
                operation["responses"].setdefault(
                    str(status), {"description": REFUSALS[status], "content": answer}
                )
            if method == "post":
                operation.setdefault("parameters", []).append(KEY)
    return result


def _refusals_of(path: str, method: str, operation: dict[str, Any]) -> set[int]:
    found = set(ALWAYS)
    if method in WRITING:
        found |= WITH_BODY
    asked = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
    if "{" in path or "page" in asked:
        found.add(404)
    if asked:
        found.add(422)
    if (method, path) == ("post", "/api/v1/tasks/"):  # its body names a project
        found.add(404)
    return found

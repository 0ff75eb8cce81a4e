"""A run may not flood the API, nor an address with tokens that are none; people are not limited here."""

from typing import Any

from rest_framework.throttling import SimpleRateThrottle

from agents.models import Run
from tasks.addresses import address_of


class RunThrottle(SimpleRateThrottle):
    """So many requests per run and minute (setting STEROIDS_RUN_RATE)."""

    scope = "run"

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        return f"run-{request.auth.pk}" if isinstance(request.auth, Run) else None


class UnknownTokenThrottle(SimpleRateThrottle):
    """So many unknown tokens per address and minute (setting STEROIDS_UNKNOWN_TOKEN_RATE), each process for
    itself. It is asked after a token was not found: a good one from the same address is never held up.
    """

    scope = "unknown_token"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"unknown-token-{address_of(request)}"

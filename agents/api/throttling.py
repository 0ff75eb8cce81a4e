"""Limits on requests: of runs and pulled agents, and of addresses that send unknown tokens.

People are not limited here.
"""

from typing import Any

from rest_framework.throttling import SimpleRateThrottle

from agents.models import Run, Token
from tasks.addresses import address_of


class RunThrottle(SimpleRateThrottle):
    """Limits the requests per minute of a run or of a pulled agent's token (setting STEROIDS_RUN_RATE)."""

    scope = "run"

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        if isinstance(request.auth, Run):
            return f"run-{request.auth.pk}"
        if isinstance(request.auth, Token) and request.auth.agent_id:
            return f"token-{request.auth.pk}"
        return None


class UnknownTokenThrottle(SimpleRateThrottle):
    """Limits the unknown tokens per minute and address (setting STEROIDS_UNKNOWN_TOKEN_RATE).

    Each process counts for itself. The limit is checked only after a token was not found, so a good one
    from the same address is never held up.
    """

    scope = "unknown_token"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"unknown-token-{address_of(request)}"

"""A run or an agent elsewhere may not flood the API, nor an address with tokens that are none.

People are not limited here.
"""

from typing import Any

from rest_framework.throttling import SimpleRateThrottle

from agents.models import Run, Token
from tasks.addresses import address_of


class RunThrottle(SimpleRateThrottle):
    """So many requests per run, or agent's token, and minute (setting STEROIDS_RUN_RATE)."""

    scope = "run"

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        if isinstance(request.auth, Run):
            return f"run-{request.auth.pk}"
        if isinstance(request.auth, Token) and request.auth.agent_id:
            return f"token-{request.auth.pk}"
        return None


class UnknownTokenThrottle(SimpleRateThrottle):
    """So many unknown tokens per address and minute (setting STEROIDS_UNKNOWN_TOKEN_RATE), each process for
    itself. It is asked after a token was not found: a good one from the same address is never held up.
    """

    scope = "unknown_token"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"unknown-token-{address_of(request)}"

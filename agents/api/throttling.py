"""A run may not flood the API; people are not limited here."""

from typing import Any

from rest_framework.throttling import SimpleRateThrottle

from agents.models import Run


class RunThrottle(SimpleRateThrottle):
    """So many requests per run and minute (setting STEROIDS_RUN_RATE)."""

    scope = "run"

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        return f"run-{request.auth.pk}" if isinstance(request.auth, Run) else None

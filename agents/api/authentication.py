"""Authentication by token: a run's, which dies with the run, a person's, or a pulled agent's.

Identity comes from the token only.
"""

from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Q
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import Throttled
from rest_framework.request import Request

from agents.api.principals import PullPrincipal, RunPrincipal
from agents.api.throttling import UnknownTokenThrottle
from agents.models import TOKEN_PREFIX, Agent, Run, Token, token_hash
from tasks import log_lines
from tasks.access import bearer_of, may_enter
from tasks.database.clock import estimated_time
from tasks.database.locking import attempted
from tasks.database.prepared import Prepared
from tasks.errors import Refused

NOTED_EVERY = 60  # seconds


def _note_use(token: Token, now: datetime) -> None:
    """Note now and then that the token was used, unless the database takes no writes: reads go on then."""
    if token.used_at and (now - token.used_at).total_seconds() <= NOTED_EVERY:
        return
    left_out = f"token-use-{token.pk}-left-out"
    row = Token.objects.filter(pk=token.pk)
    if not cache.get(left_out) and not attempted(lambda: row.update(used_at=now)):
        cache.set(left_out, True, NOTED_EVERY)


_of_token = Prepared(
    lambda hashed: Run.objects.filter(token_hash=hashed).select_related("task__project", "agent").order_by()
)


class TokenAuthentication(BaseAuthentication):
    """Authentication by the header `Authorization: Bearer stx_…`."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        secret = bearer_of(request)
        if not secret:
            return None
        hashed = token_hash(secret)
        for run in _of_token.found(hashed):  # at most one
            log_lines.note(run=run.pk, task=run.task.ref)
            return RunPrincipal(run), run
        token = Token.objects.filter(hash=hashed).select_related("user", "agent").first()
        now = estimated_time()
        if token and (token.expires_at is None or token.expires_at > now):
            _note_use(token, now)
            if token.agent:
                return self._puller(token.agent, request), token
            if token.user and may_enter(token.user):
                return token.user, token
        refused = self._dead(hashed, known_shape=secret.startswith(TOKEN_PREFIX))
        throttle = UnknownTokenThrottle()
        if refused.code == "bad_token" and not throttle.allow_request(request, None):
            raise Throttled(throttle.wait())
        raise refused

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    def _puller(self, agent: Agent, request: Request) -> PullPrincipal:
        """Return the pulled agent as the caller, if the endpoint is open to it. Raises Refused otherwise."""
        if not agent.is_active or agent.provider != Agent.Provider.PULL:
            what = "is switched off" if not agent.is_active else "does not claim its own work any more"
            raise Refused(
                "agent_off", f"The agent {agent.name} {what}.", "Ask whoever runs this installation.",
                status=403,
            )  # fmt: skip
        view = (request.parser_context or {}).get("view")
        if not getattr(view, "is_for_pullers", False):
            raise Refused(
                "only_claims", f"The token of the agent {agent.name} claims work and does nothing else.",
                "POST /api/v1/pull/claim/, then go on with the token of the run.", status=403,
            )  # fmt: skip
        return PullPrincipal(agent)

    def _dead(self, hashed: str, *, known_shape: bool) -> Refused:
        run = Run.objects.filter(~Q(spent_hash=""), spent_hash=hashed).select_related("task__project").first()
        if run is None:
            what = (
                "This token is unknown or has expired."
                if known_shape
                else "This is no token of this program."
            )
            return Refused("bad_token", what, "Ask for a new one in the admin, under Tokens.", status=401)
        if run.submission_id or run.review_id or run.status == Run.Status.CLOSING:
            return Refused(
                "handed_in", f"Run {run.pk} on {run.task.ref} has handed in; nothing more is taken from it.",
                "End your work. The next run goes on from what was handed in.", status=409,
            )  # fmt: skip
        return Refused(
            "run_over", f"Run {run.pk} on {run.task.ref} is over; its token died with it.",
            run.how_to_end, status=401,
        )  # fmt: skip


class TokenScheme(OpenApiAuthenticationExtension):
    """The description of our tokens in the OpenAPI schema."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A run's, a person's or an agent's."}

"""The endpoints for pulled agents: claim, fetch the work, beat, bring commits, give back (COL-3).

A claim is made with the agent's own token, everything else with the token of the run that the claim
returned.
"""

import secrets
from copy import copy
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import transaction
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.principals import PullPrincipal, RunPrincipal
from agents.api.views import LastCallView
from agents.crew import choosing
from agents.loop import orchestrator
from agents.models import Agent, Prompt, PullBundle, Run, token_hash
from agents.pull import leases
from agents.pull import pull_serializers as bodies
from tasks import idempotency
from tasks.access import bearer_of
from tasks.api import validated
from tasks.errors import Refused
from tasks.models import Project
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.text.repository_urls import redact

NOTHING_SECONDS = 10  # between two requests for work while there is none
READY_SECONDS = 1


class _Nothing(Exception):
    """Raised if there is no work for the agent."""


class ClaimView(APIView):
    """Claims the next run in the columns that the agent watches."""

    is_for_pullers = True

    @extend_schema(
        operation_id="pull_claim", summary="Claim the next piece of work", tags=["pull"], request=None,
        responses={
            201: bodies.ClaimedSerializer,
            204: OpenApiResponse(description="Nothing to do now; ask again after Retry-After seconds."),
        },
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        agent = _puller(request)
        if (earlier := idempotency.earlier_reply(request)) is not None:
            return self._with_token(request, earlier)
        try:
            reply = idempotency.once(request, lambda: (_claim(request, agent), 201))
        except _Nothing:
            return Response(status=204, headers={"Retry-After": str(NOTHING_SECONDS)})
        return self._with_token(request, reply)

    def _with_token(self, request: Request, reply: Response) -> Response:
        """Return the reply with the run's token, which is never stored but derived again from the caller's.

        Raises Refused if the run is over or belongs to another token.
        """
        told = dict(reply.data or {})
        token = leases.run_token(told["run"], told.pop("nonce"), bearer_of(request))
        if not Run.objects.filter(pk=told["run"], token_hash=token_hash(token)).exists():
            raise Refused(
                "run_over", f"Run {told['run']}, which this claim got, is over.", "Claim with a new key."
            )
        return Response({**told, "token": token}, status=reply.status_code)


def _puller(request: Request) -> Agent:
    if not isinstance(request.user, PullPrincipal):
        raise Refused(
            "not_a_puller", "Only an agent that claims its own work may do this.",
            "Use the token of an agent of provider pull; a superuser mints one in the admin, under Tokens.",
            status=403,
        )  # fmt: skip
    return request.user.agent


def _claim(request: Request, agent: Agent) -> dict[str, Any]:
    """Claim one run by the same rules as the tick, and return the reply. Raises _Nothing."""
    projects = Project.objects.filter(status=Project.Status.ACTIVE)
    if agent.projects.exists():
        projects = projects.filter(agents=agent)
    done, crew = orchestrator.Ticked(), choosing.Crew(agent)
    for pk in projects.order_by("last_started_at", "pk").values_list("pk", flat=True):
        orchestrator.tick_project(pk, done, crew)
        if done.claimed:
            break
    run = done.claimed
    if run is None:
        raise _Nothing
    nonce = idempotency.key_of(request) or secrets.token_urlsafe(16)
    leases.give_token(run, leases.run_token(run.pk, nonce, bearer_of(request)))
    record(run.project, "claimed", task=run.task, data={"run": run.pk, "role": run.role}, note=agent.name)
    here = f"/api/v1/pull/runs/{run.pk}/"
    names = ("beat", "base", "bundle", "release")
    return {
        "run": run.pk, "nonce": nonce, "task": run.task.ref, "title": run.task.title, "role": run.role,
        "stage": run.stage, "round": run.round, "beat_seconds": settings.DURATIONS["pull_lease"] / 6,
        "lease_seconds": settings.DURATIONS["pull_lease"],
        "addresses": {"work": here} | {name: f"{here}{name}/" for name in names},
    }  # fmt: skip


# --- With the run's token -----------------------------------------------------------------------------------


class PulledRunView(APIView):
    """Base of the endpoints that only the run itself may use."""

    def run_of(self, request: Request, pk: int) -> Run:
        """Return the run that makes the request. Raises Refused for any other caller."""
        if not isinstance(request.user, RunPrincipal) or not request.user.run.is_pulled:
            raise Refused(
                "not_this_run", f"Only the agent that claimed run {pk} may do this, with the run's token.",
                "Use the token that the claim gave you.", status=403,
            )  # fmt: skip
        run = request.user.run
        if run.pk != pk:
            raise Refused(
                "other_run", f"This is the token of run {run.pk}, not of {pk}.",
                "Use the addresses that the claim gave you with this token.", status=403,
            )  # fmt: skip
        return run

    def ready_run_of(self, request: Request, pk: int) -> Run:
        """Return the run that makes the request. Raises Refused also while its work is not prepared."""
        run = self.run_of(request, pk)
        if not leases.is_ready(run):
            raise Refused("not_ready", f"The work of run {pk} is not ready yet.", "Ask again in a second.")
        return run


class WorkView(PulledRunView):
    """Returns the work of a claimed run."""

    @extend_schema(
        operation_id="pull_work", summary="Come for the work of a claimed run", tags=["pull"],
        responses={200: bodies.WorkSerializer, 202: bodies.WorkSerializer},
    )  # fmt: skip
    def get(self, request: Request, pk: int) -> Response:
        run = self.run_of(request, pk)
        told = {"ready": leases.is_ready(run), "run": run.pk, "task": run.task.ref, "role": run.role}
        if not told["ready"]:
            return Response(told, status=202, headers={"Retry-After": str(READY_SECONDS)})
        has_bundle = PullBundle.objects.filter(run=run, base__isnull=False).exists()
        return Response(
            told
            | {
                "stage": run.stage, "round": run.round, "prompt": Prompt.objects.get(run=run).text,
                "repo_url": without_password(run.project.repo_url),
                "target_branch": run.project.target_branch,
                "branch": f"steroids/{run.task.ref}" if run.role == Run.Role.CODER else "",
                "base_sha": run.base_sha, "base_bundle": has_bundle, "base_ref": leases.base_ref(run.pk),
                "hand_in_ref": leases.HAND_IN_REF,
            }
        )  # fmt: skip


def without_password(url: str) -> str:
    """Return the URL without its credentials, which are the host's and not the agent's."""
    parts = urlsplit(url)
    if parts.scheme in {"http", "https"}:
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return redact(url)


class BeatView(PulledRunView):
    """Takes a beat of the agent: it is alive."""

    @extend_schema(
        operation_id="pull_beat", summary="Say that the agent is alive; learn whether to stop",
        tags=["pull"], request=bodies.BeatSerializer, responses=bodies.BeatenSerializer,
    )  # fmt: skip
    def post(self, request: Request, pk: int) -> Response:
        run = self.run_of(request, pk)
        said = validated(bodies.BeatSerializer, _without_nul(request.data))
        log = said.pop("log")
        return idempotency.once(request, lambda: (self._beaten(copy(run), log, said), 200))

    def _beaten(self, run: Run, log: str, usage: dict[str, Any]) -> dict[str, Any]:
        locked_task(run.task_id)  # of two beats at once, one waits for the other
        reason = leases.beat(run, log=log, usage=usage)
        run.refresh_from_db(fields=["status"])
        seconds = settings.DURATIONS["pull_lease"]
        return {
            "stop": bool(reason), "reason": reason, "ready": leases.is_ready(run), "lease_seconds": seconds,
        }  # fmt: skip


def _without_nul(data: Any) -> Any:
    """Return the data with NUL removed from the log: a program may print it, but a text cannot hold it."""
    log = data.get("log") if isinstance(data, dict) else None
    return {**data, "log": log.replace("\0", "")} if isinstance(log, str) else data


class BaseView(PulledRunView):
    """Returns the commits up to the base that the remote lacks."""

    @extend_schema(
        operation_id="pull_base", summary="The commits up to the base that the remote lacks, as a bundle",
        tags=["pull"],
        responses={
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            204: OpenApiResponse(description="The remote's target branch has the base."),
        },
    )  # fmt: skip
    def get(self, request: Request, pk: int) -> HttpResponse | Response:
        run = self.ready_run_of(request, pk)
        found = PullBundle.objects.filter(run=run).first()
        if found is None or not found.base:
            return Response(status=204)
        data = bytes(found.base)
        return HttpResponse(
            data, content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="run-{pk}.bundle"'},
        )  # fmt: skip


class BundleParser(BaseParser):
    """Reads a bundle without interpreting it, up to a limit."""

    media_type = "application/octet-stream"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> bytes:
        data: bytes = stream.read(leases.BUNDLE_MAX + 1)
        return data


class BundleView(PulledRunView):
    """Takes the commits of a hand-in."""

    parser_classes = (BundleParser,)

    @extend_schema(
        operation_id="pull_bundle", summary="Bring the commits of a hand-in, as a bundle", tags=["pull"],
        request={"application/octet-stream": OpenApiTypes.BINARY}, responses=bodies.BroughtSerializer,
        description="At most 8 MiB, with the one ref refs/steroids/hand-in. Submit its commit afterwards. "
        "Sent again it replaces what was brought before.",
    )  # fmt: skip
    def put(self, request: Request, pk: int) -> Response:
        run = self.ready_run_of(request, pk)
        data = request.data if isinstance(request.data, bytes) else b""
        if len(data) > leases.BUNDLE_MAX:
            raise Refused(
                "too_large", f"The bundle is larger than {leases.BUNDLE_MAX} bytes.",
                "Hand in smaller steps; leave out what a build makes.", status=413,
            )  # fmt: skip
        with transaction.atomic():
            tip = leases.bring(run, data)
        return Response({"message": f"{tip[:12]} is here; submit it.", "sha": tip, "bytes": len(data)})


class ReleaseView(LastCallView, PulledRunView):
    """Takes back the work of an agent that gives it up."""

    @extend_schema(
        operation_id="pull_release", summary="Give the work back", tags=["pull"],
        request=bodies.ReleaseSerializer, responses=bodies.ReleasedSerializer,
    )  # fmt: skip
    def post(self, request: Request, pk: int) -> Response:
        if (earlier := self.answered(request)) is not None:
            return earlier  # the first call ended the token
        run = self.run_of(request, pk)
        said = validated(bodies.ReleaseSerializer, request.data)

        def release() -> tuple[dict[str, Any], int]:
            leases.release(run, **said)
            return {"message": f"{run.task.ref} is given back."}, 200

        return idempotency.once(request, release)

"""The runs of pulled agents, which claim their work and fetch it over REST (COL-3).

No host holds such a run. It lives as long as its agent beats; if its lease runs out, the run ends and the
work goes to somebody else. What the agent hands in arrives as a bundle, which any host can read.
"""

import base64
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, Sum
from django.db.models.functions import Length, Now
from django.utils.crypto import salted_hmac

from agents import outputs
from agents.hosts.masking import clean
from agents.loop import run_ends
from agents.models import TOKEN_PREFIX, PullBundle, Run, token_hash
from agents.money import metering
from tasks.database.clock import estimated_time
from tasks.errors import Invalid, Refused
from tasks.models import Bundle, Submission
from tasks.text.regex import regex

BUNDLE_MAX = 8 * 1024 * 1024
HAND_IN_REF = "refs/steroids/hand-in"
HEADER_MAX = 64 * 1024
LOG_MAX = 1024 * 1024  # characters of one run
SHA_FORM = regex(r"[0-9a-f]{40}([0-9a-f]{24})?")


def base_ref(run_pk: int) -> str:
    """Return the ref under which the bundle of a run's base names the base."""
    return f"refs/steroids/bases/{run_pk}"


def lease() -> timedelta:
    """Return how long a run may go on without a beat."""
    return timedelta(seconds=settings.DURATIONS["pull_lease"])


# --- The run's token ----------------------------------------------------------------------------------------


def run_token(run_pk: int, nonce: str, agent_token: str) -> str:
    """Return the token of a claimed run. Repeating the same claim gives the same token; it is stored nowhere.

    Deriving it takes the server's secret and the agent's own token, of which only the hash is stored.
    """
    secret = f"{settings.SECRET_KEY}\0{agent_token}"
    mac = salted_hmac("agents.pull.leases", f"{run_pk}:{nonce}", secret=secret, algorithm="sha256")
    return TOKEN_PREFIX + base64.urlsafe_b64encode(mac.digest()).decode().rstrip("=")


def give_token(run: Run, token: str) -> None:
    """Let the run answer to this token from now on."""
    hashed = token_hash(token)
    Run.objects.filter(pk=run.pk).update(token_hash=hashed, spent_hash=hashed)


# --- Its life -----------------------------------------------------------------------------------------------


def is_ready(run: Run) -> bool:
    """Whether a host has prepared the run's work: base, prompt and rulings."""
    return run.status == Run.Status.RUNNING


def why_stop(run: Run) -> str:
    """Return why the agent has to end its work; empty while it may go on."""
    if run.stop_requested:
        return "Somebody asked this run to stop."
    if run.task.version != run.task_version:
        return f"{run.task.ref} moved on; it is {run.task.status} now."
    if run.agent is None or not run.agent.is_active:
        return "The agent was switched off."
    if _is_past_wall(run):
        return f"The run took longer than {settings.DURATIONS['wall']:.0f} s."
    return ""


def _is_past_wall(run: Run) -> bool:
    """Whether the run took too long, by the database's clock, since several machines may answer for it."""
    since = Now() - timedelta(seconds=settings.DURATIONS["wall"])
    return Run.objects.filter(pk=run.pk, started_at__lt=since).exists()


def beat(run: Run, *, log: str = "", usage: dict[str, Any] | None = None) -> str:
    """Note that the agent is alive and prolong its lease, unless it has to stop.

    Returns why it has to stop, or an empty string. Raises Refused if the lease has run out or the run has
    ended.
    """
    if log:
        add_log(run, log)
    if usage and (reached := metering.take_usage(run, **usage)):
        return reached  # it has ended the run
    if (reason := why_stop(run)) or not is_ready(run):
        return reason
    live = Run.objects.filter(pk=run.pk, fence=run.fence, status=Run.Status.RUNNING)
    if not live.filter(lease_until__gte=Now()).update(lease_until=Now() + lease()):
        raise Refused(
            "run_over", f"The lease of run {run.pk} on {run.task.ref} has run out; others may have it now.",
            "End your work and claim again.",
        )  # fmt: skip
    return ""


def add_log(run: Run, text: str) -> None:
    """Append to the run's log, up to the limit of one run; a last line says that the rest is left out."""
    left = LOG_MAX - (run.outputs.aggregate(used=Sum(Length("text")))["used"] or 0)
    if left <= 0:
        return
    text = clean(text.encode("utf-8", "replace"))
    if len(text) >= left:
        text = f"{text[:left]}\n[the rest of the log is left out]\n"
    outputs.add(run, text)
    Run.objects.filter(pk=run.pk).update(last_output_at=estimated_time())


def release(run: Run, *, reason: str, failed: bool) -> None:
    """Give the work back.

    If the agent says that it failed, that counts as a run without result. Otherwise nothing is counted, but
    a task that is given back again and again waits longer. Raises Refused if the run is over already.
    """
    outcome = Run.Outcome.NOT_TAKEN if run.refusals else Run.Outcome.NOTHING
    if not failed:
        outcome, reason = Run.Outcome.STOPPED, f"Given back by its agent. {reason}".strip()
    if not run_ends.end(run, outcome, reason=reason):
        raise Refused("run_over", f"Run {run.pk} is over already.", "Claim again.")
    if not failed and run.task.version == run.task_version:
        run_ends.rest_after(run)


def reap() -> int:
    """End runs that have handed in, and those whose agent was not heard of in time.

    Returns how many of the latter it ended.
    """
    pulled = Run.objects.filter(is_pulled=True).select_related("task__project", "project", "agent")
    for run in pulled.filter(status=Run.Status.CLOSING):
        run_ends.end(run, Run.Outcome.HANDED_IN)
    ended = 0
    for run in pulled.filter(status__in=Run.WORKING, lease_until__lt=Now()):
        mine = Run.objects.filter(pk=run.pk, fence=run.fence, status__in=Run.WORKING, lease_until__lt=Now())
        if mine.update(fence=F("fence") + 1):  # a beat that arrives from here on finds nothing to prolong
            run.fence += 1
            ended += _end_silent(run)
    over = PullBundle.objects.filter(run__status=Run.Status.ENDED)
    over.exclude(run__submission__state=Submission.State.RECEIVED).delete()
    return ended


def _end_silent(run: Run) -> bool:
    """End a run whose lease is over, as stopped or too long if it had been told to end, otherwise as lost."""
    if run.stop_requested:
        return run_ends.end(run, Run.Outcome.STOPPED, reason="It was asked to stop.")
    if run.task.version != run.task_version:
        return run_ends.end(run, Run.Outcome.STOPPED, reason="The task moved on while it worked.")
    if _is_past_wall(run):
        return run_ends.end(run, Run.Outcome.WALL, reason=why_stop(run))
    return run_ends.end(
        run,
        Run.Outcome.LOST,
        reason=f"{run.agent_label} was not heard of for {lease().total_seconds():.0f} s.",
    )


# --- Commits that it brings ---------------------------------------------------------------------------------


def read_header(data: bytes) -> str:
    """Return the commit that a bundle ends with, from its first lines.

    Git reads the rest on a host, in a separate repository. Raises Refused if this is not a bundle with
    exactly the one ref that we take.
    """
    head, found, _ = data[:HEADER_MAX].partition(b"\n\n")
    lines = head.decode("utf-8", "replace").split("\n")
    if not found or lines[0] not in {"# v2 git bundle", "# v3 git bundle"}:
        raise _no_bundle("That is no git bundle.")
    refs = [line for line in lines[1:] if not line.startswith(("-", "@"))]
    if any(line.startswith("@filter") for line in lines):
        raise _no_bundle("A bundle with a filter lacks objects.")
    sha, _, name = refs[0].partition(" ") if len(refs) == 1 else ("", "", "")
    if name != HAND_IN_REF or not SHA_FORM.fullmatch(sha):
        raise _no_bundle(f"A bundle holds {HAND_IN_REF} and no other ref.")
    return sha


def _no_bundle(message: str) -> Refused:
    return Invalid(
        "bad_bundle", message,
        f"Make it with `git update-ref {HAND_IN_REF} HEAD` and `git bundle create FILE {HAND_IN_REF} ^BASE`.",
    )  # fmt: skip


def bring(run: Run, data: bytes) -> str:
    """Keep the agent's bundle until it hands in the commit, which is returned. Raises Refused."""
    if run.role != Run.Role.CODER:
        raise Refused(
            "wrong_role", f"A {run.role} brings no commits.", "Hand in your review.", status=403,
        )  # fmt: skip
    tip = read_header(data)
    PullBundle.objects.update_or_create(run=run, defaults={"work": data, "tip": tip})
    return tip


def hand_over(run: Run, submission: Submission) -> None:
    """Give a pulled run's submission the commits that its agent brought. Raises Refused if it did not."""
    brought = PullBundle.objects.filter(run=run, tip=submission.sha).first()
    if brought is not None and brought.work:
        Bundle.objects.create(submission=submission, data=brought.work)
    elif submission.sha != run.base_sha:
        raise Invalid(
            "no_bundle", f"The commit {submission.sha[:12]} is on your machine only.",
            f"Send it first, as a bundle: PUT /api/v1/pull/runs/{run.pk}/bundle/.",
        )  # fmt: skip

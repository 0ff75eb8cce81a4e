"""A row of every model, hanging on one project: for tests that look at every page."""

from datetime import timedelta

from django.contrib.auth.models import Group, User
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule, Success
from django_q.signing import SignedPackage

from agents.models import Output, Prompt, PromptText, ProviderPause, Trial
from disputes.models import (
    Amendment,
    Bulk,
    Channel,
    Conflict,
    Decision,
    Delivery,
    Dispute,
    Flag,
    Follow,
    Guideline,
    HeuristicScore,
    OnCall,
    Opinion,
    SavedView,
    Tally,
)
from steroidsweb.accounts import invitations
from tasks.models import (
    Answer,
    Bundle,
    Checkpoint,
    Comment,
    Dependency,
    Event,
    Idempotency,
    Landing,
    Membership,
    Project,
    Rollback,
    Verification,
)
from tests.factories import (
    create_agent,
    create_finding,
    create_host,
    create_review,
    create_run,
    create_section,
    create_submission,
    create_task,
    create_token,
    create_user,
)


def fill(project: Project, seed: int, user: User) -> None:
    """At least one row of every model, hanging on one new task of the project."""
    section = create_section(project)
    task, before = create_task(project, section=section), create_task(project, section=section)
    Dependency.objects.create(task=task, on=before)
    submission = create_submission(
        task, response="Done.", diff="+x = 1\n", aside_branch=f"disputed/{task.ref}-0c5ae1f2"
    )
    Bundle.objects.create(submission=submission, data=b"PACK" * 300)
    Verification.objects.create(project=project, sha=submission.sha, commands_hash="c" * 64, green=True)
    Landing.objects.create(
        project=project, task=task, submission=submission, sha=submission.sha, target="main"
    )
    review = create_review(submission, text="See below.")
    finding = create_finding(review)
    Rollback.objects.create(task=task, from_round=1, to_round=0, reason="Wrong way.", by_label="Lea")
    Checkpoint.objects.create(project=project, number=seed)
    Answer.objects.create(submission=submission, finding=finding, kind="declined", text="It is bounded.")
    Comment.objects.create(
        project=project, task=task, body="Look here.", by_label="Lea", by_kind="person", by_user=user
    )
    Event.objects.create(
        project=project, task=task, kind="submit", from_status="in_progress", to_status="review",
        actor_kind="agent", label="coder-1",
    )  # fmt: skip
    inviter = User.objects.filter(is_superuser=True).first() or user  # nobody else invites anybody
    invitations.invite(inviter, {project: "viewer"})
    dispute = Dispute.objects.create(
        project=project, task=task, severity="high", question="Back off, or not?"
    )
    conflict = Conflict.objects.create(
        dispute=dispute, kind="disagreement", origin="disagree", opened_as="coder", finding=finding,
        submission=submission, severity="high", effect="hold", question="Back off, or not?",
        reviewer_position="Wait between tries.", coder_position="It is bounded.",
    )  # fmt: skip
    Opinion.objects.create(
        conflict=conflict, kind="judge", state="given", verdict="enforce", reasons="It is unbounded.",
        by_agent="wise-1", by_model="sage", by_vendor="elsewhere", given_at=timezone.now(), asked_by=user,
    )  # fmt: skip
    decision = Decision.objects.create(
        conflict=conflict, option="uphold_reviewer", action="revise", expects_change=True, user=user
    )
    Amendment.objects.create(
        decision=decision, path="docs/SPEC.md", words="> **Ruling**: wait.", asked_by=user, state="drafted",
        sha=submission.sha, base_sha=submission.base_sha, diff="+> **Ruling**: wait.\n",
    )  # fmt: skip
    Flag.objects.create(finding=finding, submission=submission, level="warn", heuristics=["H1", "H4"])
    HeuristicScore.objects.create(project=project, heuristic=f"H{seed}", confirmed=3, refused=1)
    host = create_host(f"host-{seed}")
    run = create_run(task, agent=create_agent(), host=host, submission=submission, started_at=timezone.now())
    Prompt.objects.create(run=run, text="Do it.\n")
    PromptText.objects.create(
        project=project, name="coder", version=seed + 1, text="{{ body }}\n", hash="d" * 64, is_active=False
    )
    for seq in range(2):
        Output.objects.create(run=run, seq=seq, text=f"line {seq}\n")
    create_token(user, f"laptop {seed}")
    Idempotency.objects.create(
        actor="run:1", key=f"k{seed}", request_hash="r" * 64, status=200, reply={"a": 1}
    )
    ended = {"status": "ended", "ended_at": timezone.now(), "steps": [{"name": "tests", "seconds": 3}]}
    Trial.objects.create(
        project=project, why="search", sha="e" * 40, ordinal=1, source="pyproject.toml", test="pytest",
        outcome="red", problem="tests ended with 1", failed=["tests/test_a.py::test_b"], flaky=["test_c"],
        tail="1 failed\n", **ended,
    )  # fmt: skip
    Group.objects.create(name=f"group {seed}")
    Membership.objects.create(project=project, user=create_user(f"colleague{seed}"), role="viewer")
    ProviderPause.objects.create(
        name=f"codex-{project.slug}-{seed}", kind="quota", reason="Its quota is used up",
        until=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    Schedule.objects.create(name=f"tick {seed}", func="agents.jobs.tick", schedule_type=Schedule.MINUTES)
    times = {"started": timezone.now(), "stopped": timezone.now(), "func": "agents.jobs.tick"}
    Success.objects.create(id=f"s{seed}", name=f"s{seed}", success=True, **times)
    Failure.objects.create(id=f"f{seed}", name=f"f{seed}", success=False, result="boom", **times)
    job = {"id": f"q{seed}", "name": f"q{seed}", "func": "agents.jobs.tick", "args": (), "kwargs": {}}
    OrmQ.objects.create(key="steroids", payload=SignedPackage.dumps(job), lock=timezone.now())
    _triage(project, dispute, user, seed)


def _triage(project: Project, dispute: Dispute, user: User, seed: int) -> None:
    """What people add to a dispute, and whom it was told."""
    today = timezone.now().date()
    Follow.objects.create(dispute=dispute, user=user)
    SavedView.objects.create(user=user, name=f"Mine {seed}", tab="queue", query="severity=high")
    Guideline.objects.create(project=project, text=f"Retry at most thrice {seed}.", by=user)
    OnCall.objects.create(
        project=project,
        user=user,
        first_day=today + timedelta(days=seed),
        last_day=today + timedelta(days=seed),
    )
    Bulk.objects.create(user=user, verb="snooze", note="Until Monday.", results=[])
    channel = Channel.objects.create(user=user, name=f"Mail {seed}", service="mailto", sealed_address="")
    event = Event.objects.filter(project=project).latest("pk")
    Delivery.objects.create(event=event, channel=channel, topic="opened", error="It does not answer.")
    Tally.objects.create(project=project, day=today, measure="opened", key=f"coder-{seed}", n=1)

"""A task nobody can solve, with real processes: up the ladder, to a senior, to a human, and on again."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from agents.models import Run
from disputes.models import Conflict
from disputes.protocol.rulings.options import Option
from disputes.rulings import decide
from tasks.models import Comment, Membership, Task
from tests.end_to_end.loop import (
    APPROVER,
    CODER,
    Loop,
    bare_remote,
    command_agent,
    git,
    script,
    small_project,
    task_in,
)

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

LADDERS = {
    "dev-agent": {"0-1": "small", "2-3": "mid", "4-5": "top", "6+": "escalate"},
    "senior-dev-agent": {"0": "top", "1+": "escalate"},
}
GIVES_UP = """
    import sys
    print("I cannot see why it fails.")
    sys.exit(0)
"""
ESCALATES = """
    import subprocess, sys
    words = ["steroids", "escalate", "--reason", "concurrency", "--notes", "Two writers race."]
    sys.exit(subprocess.run(words).returncode)
"""


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare_remote(tmp_path, {"README.md": "Small.\n"})


def steps(task: Task) -> list[tuple[str, str]]:
    """Who tried on which step, in order."""
    coders = Run.objects.filter(task=task, role="coder").order_by("pk")
    return list(coders.values_list("agent_label", "step"))


def test_up_the_ladder_to_a_senior_to_a_human_and_on(
    loop: Loop, remote: Path, tmp_path: Path, lea: User
) -> None:
    project = small_project(remote, model_ladder=LADDERS)
    Membership.objects.create(project=project, user=lea, role="maintainer")
    task = task_in(project)
    for tier in ("small", "mid", "top"):
        command_agent(
            "coder", script(tmp_path, tier, GIVES_UP), name=tier, tier=tier, model=tier, kind="dev-agent"
        )
    senior = script(tmp_path, "senior", GIVES_UP)
    command_agent("coder", senior, name="senior", tier="top", kind="senior-dev-agent")
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))

    loop.until(task, "disputed")

    assert steps(task) == [
        ("small", "0-1: small"), ("small", "0-1: small"), ("mid", "2-3: mid"), ("mid", "2-3: mid"),
        ("top", "4-5: top"), ("top", "4-5: top"), ("senior", "0: top"),
    ]  # fmt: skip
    card = Conflict.objects.get()
    assert (card.kind, card.origin, len(card.evidence)) == ("help", "ladder", 7)
    assert Comment.objects.get(task=task).body.count("\n- ") == 6
    assert (task.stage, task.home_stage) == ("needs-senior-dev", "dev")

    script(tmp_path, "senior", CODER)  # she has slept over it
    decide(card, Option.RETRY, user=lea)
    loop.until_idle()

    task.refresh_from_db()
    assert (task.status, git(remote, "rev-parse", "main")) == ("completed", task.landed_sha)
    assert steps(task)[7:] == [("senior", "0: top")]


def test_an_agent_that_says_so_goes_to_the_specialist_of_its_reason(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    task = task_in(small_project(remote))
    command_agent("coder", script(tmp_path, "dev", ESCALATES), name="dev", kind="dev-agent")
    command_agent(
        "coder", script(tmp_path, "expert", CODER), name="expert", watches=["needs-concurrency-expert"]
    )
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))

    loop.until_idle()

    task.refresh_from_db()
    assert (task.status, git(remote, "rev-parse", "main")) == ("completed", task.landed_sha)
    assert [who for who, _ in steps(task)] == ["dev", "expert"]
    assert "Two writers race." in Comment.objects.get(task=task).body
    assert not Conflict.objects.exists()


def test_three_reviewers_at_the_same_time(loop: Loop, remote: Path, tmp_path: Path) -> None:
    project = small_project(remote, reviewers="all")
    project.max_parallel = 4
    project.save()
    task = task_in(project)
    command_agent("coder", script(tmp_path, "coder", CODER))
    approver = script(tmp_path, "reviewer", APPROVER)
    for name in ("ann", "ben", "cleo"):
        command_agent("reviewer", approver, name=name)

    loop.until_idle()

    task.refresh_from_db()
    assert (task.status, git(remote, "rev-parse", "main")) == ("completed", task.landed_sha)
    reviews = task.submissions.get().reviews
    assert sorted(reviews.values_list("by_agent", flat=True)) == ["ann", "ben", "cleo"]

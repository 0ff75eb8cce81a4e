"""Pipelines with real agents, git and HTTP: the full preset to its landing, and two stages that disagree."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from agents.models import Prompt, Run
from disputes import rulings
from disputes.models import Conflict
from tasks.models import Comment, Event, Project, Review, Task
from tests.end_to_end.loop import APPROVER, Loop, bare_remote, command_agent, git, script, task_in
from tests.factories import create_project, create_user

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# Writes the file of its stage, and hands in; a stage without a file changes nothing.
WORKER = """
    import pathlib, subprocess, sys
    name = {name!r}
    if name:
        pathlib.Path(name).write_text("By this stage.\\n")
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", "feat: " + name], check=True)
    sys.exit(subprocess.run(["steroids", "tasks", "update", "--status", "review"]).returncode)
"""
# Stands by its test until a human has ruled.
TEST_ARCHITECT = """
    import pathlib, subprocess, sys
    prompt = sys.stdin.read()
    if "sent this task back to you" in prompt:
        words = ["comment", "--body", "The test is right.", "--disagree"]
    else:
        ruled = "Decided since your last run" in prompt
        pathlib.Path("tests.md").write_text("async\\n" if ruled else "sync\\n")
        subprocess.run(["git", "add", "tests.md"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", "test: cancel"], check=True)
        words = ["tasks", "update", "--status", "review"]
    sys.exit(subprocess.run(["steroids", *words]).returncode)
"""
DEV = """
    import pathlib, re, subprocess, sys
    prompt = sys.stdin.read()
    if "async" in pathlib.Path("tests.md").read_text():
        pathlib.Path("trade.py").write_text("async def cancel(): ...\\n")
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", "feat: cancel"], check=True)
        words = ["tasks", "update", "--status", "review"]
    elif again := re.search(r"--parent (\\d+)", prompt):
        words = ["comment", "--parent", again[1], "--body", "The test is wrong still.", "--back"]
    else:
        words = ["comment", "--target", "tests.md", "--body", "The test is wrong.", "--back"]
    sys.exit(subprocess.run(["steroids", *words]).returncode)
"""


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare_remote(tmp_path, {"README.md": "Small.\n"})


def staged(remote: Path, stages: object, *, tom: User | None = None) -> Project:
    return create_project(
        "ledger", repo_url=str(remote), members={tom: "triager"} if tom else None,
        settings={"stages": stages, "detect_commands": False, "undo_seconds": 0},
    )  # fmt: skip


def places(task: Task, *kinds: str) -> list[tuple[str, str, str]]:
    """The moves between stages, in order."""
    events = Event.objects.filter(task=task, kind__in=kinds).order_by("pk")
    return [(event.kind, event.data["from_stage"], event.data["stage"]) for event in events]


def test_a_task_goes_through_all_stages_and_lands_once(loop: Loop, remote: Path, tmp_path: Path) -> None:
    task = task_in(staged(remote, "full"))
    work = {
        "story-agent": "story.md", "architect-agent": "arch.md", "test-architect": "tests.md",
        "dev-agent": "ledger.py", "review-agent": "", "qa-agent": "",
    }  # fmt: skip
    for kind, name in work.items():
        argv = script(tmp_path, kind, WORKER.format(name=name))
        command_agent("coder", argv, name=kind, kind=kind)
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))

    loop.until_idle()

    task.refresh_from_db()
    assert (task.status, task.stage, task.round) == ("completed", "qa", 6)
    assert git(remote, "rev-parse", "main") == task.landed_sha
    assert git(remote, "ls-tree", "--name-only", "main").split() == [
        "README.md", "arch.md", "ledger.py", "story.md", "tests.md",
    ]  # fmt: skip
    names = ["stories", "arch", "tests", "dev", "review", "qa"]
    assert places(task, "advance") == [("advance", *pair) for pair in zip(names, names[1:], strict=False)]
    assert list(task.submissions.order_by("pk").values_list("stage", flat=True)) == names
    assert list(Run.objects.filter(role="coder").order_by("pk").values_list("agent_label", flat=True)) == [
        *work
    ]
    assert task.landings.count() == 1
    # What nobody reviewed was passed on by itself; what changed nothing is the same commit.
    assert set(Review.objects.values_list("submission__stage", flat=True)) == {*names} - {"review"}
    assert len(set(task.submissions.filter(stage__in=["dev", "review", "qa"]).values_list("sha"))) == 1
    told = Prompt.objects.get(run__agent_label="qa-agent").text
    assert "stage 6 of 6" in told
    assert "hand in the commit as it is" in told


def test_two_stages_that_disagree_end_at_a_human_and_go_on_as_ruled(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    tom = create_user("tom")
    task = task_in(staged(remote, ["tests", "dev"], tom=tom))
    architect = script(tmp_path, "architect", TEST_ARCHITECT)
    command_agent("coder", architect, name="test-architect", kind="test-architect")
    command_agent("coder", script(tmp_path, "dev", DEV), name="dev-agent", kind="dev-agent")
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))

    loop.until(task, "disputed")

    card = Conflict.objects.exclude(kind="alert").get()
    assert card.evidence[:3] == [
        "Agents disagree after 3 rounds - human decision needed", "Rounds: 3",
        "Agents: dev-agent, test-architect, dev-agent, test-architect",
    ]  # fmt: skip
    assert places(task, "advance", "backflow", "forward") == [
        ("advance", "tests", "dev"), ("backflow", "dev", "tests"), ("forward", "tests", "dev"),
        ("backflow", "dev", "tests"),
    ]  # fmt: skip

    rulings.decide(card, "uphold_reviewer", user=tom)
    loop.until_idle()

    task.refresh_from_db()
    assert (task.status, task.stage) == ("completed", "dev")
    assert git(remote, "show", "main:tests.md") == "async"
    assert git(remote, "show", "main:trade.py") == "async def cancel(): ..."
    root = Comment.objects.get(parent=None)
    assert (root.status, root.resolution) == ("resolved", "accepted")

"""Any command can be an agent; what goes wrong is said in a sentence and loses nothing."""

from pathlib import Path
from textwrap import dedent

import pytest

from agents.crew import pauses
from agents.models import Prompt, ProviderPause, Run
from agents.web.standing import standing
from disputes.models import Conflict
from tasks.models import Answer, Submission
from tests.end_to_end.installation import ROOT
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


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare_remote(tmp_path, {"README.md": "Small.\n", "AGENTS.md": "Be kind.\n"})


def test_a_task_goes_through_coder_review_and_landing(loop: Loop, remote: Path, tmp_path: Path) -> None:
    task = task_in(small_project(remote))
    command_agent("coder", script(tmp_path, "coder", CODER))
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))
    loop.until_idle()
    task.refresh_from_db()
    assert task.status == "completed"
    assert git(remote, "rev-parse", "main") == task.landed_sha
    assert git(remote, "show", "main:hello.txt") == "hello"
    assert "Be kind." in Prompt.objects.get(run__role="coder").text


ONCE_NOT_PLEASED = """
    import pathlib, subprocess, sys
    again = pathlib.Path(__file__).with_name("rejected")
    words = ["approve", "--notes", "Fine."]
    if not again.exists():
        again.touch()
        review = pathlib.Path("review.md")
        review.write_text("## Verdict\\n\\nNEEDS_REVISION\\n\\n- [MUST] DONE.md:1 Say it twice\\n")
        words = ["reject", "--file", str(review)]
    sys.exit(subprocess.run(["steroids", "tasks", *words]).returncode)
"""


def test_the_example_coder_answers_each_finding_of_a_rejection(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    task = task_in(small_project(remote))
    command_agent("coder", ROOT / "examples" / "agents" / "coder.sh")
    command_agent("reviewer", script(tmp_path, "reviewer", ONCE_NOT_PLEASED))
    loop.until_idle()
    task.refresh_from_db()
    assert (task.status, task.rejections) == ("completed", 1)
    answered = Answer.objects.get(submission__round=2)
    assert (answered.finding.code, answered.kind) == ("ISSUE-R1-001", "addressed")


def test_an_agent_sees_nothing_of_the_servers_environment(
    loop: Loop, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL_SECRET", "hunter2")
    task_in(small_project(remote))
    seen = tmp_path / "seen"
    look = f"""
        import os, pathlib
        lines = [f"{{name}}={{value}}" for name, value in os.environ.items()]
        pathlib.Path({str(seen)!r}).write_text(chr(10).join(lines))
    """
    coder = dedent(look) + dedent(CODER)
    command_agent("coder", script(tmp_path, "coder", coder))
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))
    loop.until_idle()
    environment = seen.read_text()
    assert "hunter2" not in environment
    assert "SECRET_KEY" not in environment
    assert "stx_" not in environment
    assert "STEROIDS_CONTEXT=" in environment


def test_an_absent_program_rests_its_account_until_somebody_installs_it(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    task = task_in(small_project(remote))
    program = tmp_path / "my-agent"
    agent = command_agent("coder", program)
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))
    loop.until_so(ProviderPause.objects.exists)
    said = f"The program '{program}' is not on this host. Install it, or correct the agent's settings."
    run = Run.objects.get()
    assert (run.outcome, run.is_counted, run.reason) == ("provider", False, said)
    assert said in ProviderPause.objects.get().reason
    task.refresh_from_db()
    assert said in standing(task).line, "its page says what to do"
    script(tmp_path, "my-agent", CODER)
    pauses.end(agent.account)
    loop.until(task, "completed")
    assert not ProviderPause.objects.exists()


def test_a_missing_repository_is_named_and_nothing_is_counted(loop: Loop, tmp_path: Path) -> None:
    project = small_project(tmp_path / "nowhere.git")
    task = task_in(project)
    command_agent("coder", script(tmp_path, "coder", CODER))
    for _ in range(40):
        loop.turn()
    project.refresh_from_db()
    task.refresh_from_db()
    assert "nowhere.git cannot be reached" in project.trouble
    assert task.status == "pending"
    assert not Run.objects.exists()


def test_work_goes_on_once_the_remote_is_back(loop: Loop, remote: Path, tmp_path: Path) -> None:
    away = remote.with_name("away.git")
    remote.rename(away)
    project = small_project(remote)
    task = task_in(project)
    command_agent("coder", script(tmp_path, "coder", CODER))
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))
    for _ in range(10):
        loop.turn()
    away.rename(remote)
    loop.until_idle(within=30)
    task.refresh_from_db()
    project.refresh_from_db()
    assert task.landed_sha
    assert project.trouble == ""


def test_an_agent_that_does_nothing_is_tried_six_times_then_a_human_is_asked(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    task = task_in(small_project(remote))
    command_agent("coder", script(tmp_path, "coder", "print('I thought about it.')"))
    loop.until(task, "disputed")
    assert Run.objects.filter(outcome="nothing", is_counted=True).count() == 6
    card = Conflict.objects.exclude(kind="alert").get()
    assert "6 runs of coder-script ended without a hand-in" in card.question


def test_hand_ins_that_are_all_refused_are_told_to_the_next_run_and_then_to_a_human(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    task = task_in(small_project(remote))
    coder = """
        import os, pathlib, subprocess, sys
        pathlib.Path("hello.txt").write_text("hello\\n")
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "feat: say hello"], check=True)
        bad = pathlib.Path(os.environ["TMPDIR"], "bad.md")
        bad.write_text("Done.\\n\\n## DISAGREE: ISSUE-R9-009\\n\\nNo reason.\\n")
        hand_in = ["steroids", "tasks", "update", "--status", "review", "--response", bad]
        sys.exit(subprocess.run(hand_in).returncode)
    """
    command_agent("coder", script(tmp_path, "coder", coder))
    loop.until(task, "disputed")
    runs = Run.objects.filter(role="coder").order_by("pk")
    assert [(run.outcome, run.refusals) for run in runs] == [("not_taken", 1)] * 3
    reason = "line 3: the block on ISSUE-R9-009 has no **Rationale:** with text"
    assert all(reason in run.reason for run in runs)
    first, *later = (prompt.text for prompt in Prompt.objects.filter(run__role="coder").order_by("run_id"))
    assert "not accepted" not in first
    assert all(text.startswith("## Your last run was not accepted") and reason in text for text in later)
    assert "MAX_RETRIES_EXHAUSTED" in Conflict.objects.exclude(kind="alert").get().coder_position


def test_a_malformed_hand_in_is_refused_with_its_line_and_the_run_goes_on(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    task_in(small_project(remote))
    coder = """
        import pathlib, subprocess, sys, os
        pathlib.Path("hello.txt").write_text("hello\\n")
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", "feat: say hello"], check=True)
        bad = pathlib.Path(os.environ["TMPDIR"], "bad.md")
        bad.write_text("Done.\\n\\n## DISAGREE: ISSUE-R9-009\\n\\nNo reason.\\n")
        first = subprocess.run(["steroids", "tasks", "update", "--status", "review", "--response", bad])
        print("first", first.returncode, flush=True)
        good = pathlib.Path(os.environ["TMPDIR"], "good.md")
        good.write_text("Done.\\n")
        hand_in = ["steroids", "tasks", "update", "--status", "review", "--response", good]
        sys.exit(subprocess.run(hand_in).returncode)
    """
    command_agent("coder", script(tmp_path, "coder", coder))
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))
    loop.until_idle()
    run = Run.objects.get(role="coder")
    output = "".join(run.outputs.values_list("text", flat=True))
    assert run.submission is not None
    assert "line 3: the block on ISSUE-R9-009 has no **Rationale:** with text" in output
    assert "first 1" in output


def test_a_rejection_a_disagreement_and_a_ruling(
    loop: Loop, remote: Path, tmp_path: Path, lea: object
) -> None:
    from disputes import rulings

    task = task_in(small_project(remote))
    coder = """
        import os, pathlib, subprocess, sys
        prompt = pathlib.Path(sys.argv[1]).read_text()
        text = "hello"
        response = "Done."
        if "Decided since your last run" in prompt:
            text = "HELLO"
        elif "ISSUE-R1-001" in prompt:
            text = "hello there"
            response = ("## DISAGREE: ISSUE-R1-001\\n\\n**Reviewer Concern:**\\n> Shout\\n\\n"
                        "**Engineer Position:**\\nNo shouting.\\n\\n**Rationale:**\\nIt is rude.\\n")
        pathlib.Path("hello.txt").write_text(text + "\\n")
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", "feat: " + text], check=True)
        file = pathlib.Path(os.environ["TMPDIR"], "response.md")
        file.write_text(response)
        hand_in = ["steroids", "tasks", "update", "--status", "review", "--response", file]
        sys.exit(subprocess.run(hand_in).returncode)
    """
    reviewer = """
        import os, pathlib, subprocess, sys
        if pathlib.Path("hello.txt").read_text() == "hello\\n":
            file = pathlib.Path(os.environ["TMPDIR"], "review.md")
            file.write_text("### High Priority\\n\\n- **ISSUE-R1-001**: Shout\\n"
                            "  - **Location:** hello.txt:1\\n\\n## Verdict: NEEDS_REVISION\\n")
            sys.exit(subprocess.run(["steroids", "tasks", "reject", "--file", file]).returncode)
        sys.exit(subprocess.run(["steroids", "tasks", "approve"]).returncode)
    """
    command_agent("coder", script(tmp_path, "coder", coder))
    command_agent("reviewer", script(tmp_path, "reviewer", reviewer))
    task.project.memberships.create(user=lea, role="maintainer")
    loop.until(task, "disputed")
    loop.until_idle()
    conflict = Conflict.objects.exclude(kind="alert").get()
    assert conflict.finding is not None
    assert conflict.finding.excerpt == "hello"
    assert task.last_submission().state == Submission.State.KEPT  # type: ignore[union-attr]
    assert git(remote, "rev-list", "--count", "main") == "1"  # held: nothing of it is on the remote
    rulings.decide(conflict, "uphold_reviewer", user=lea)
    loop.until_idle()
    task.refresh_from_db()
    conflict.refresh_from_db()
    assert task.landed_sha
    assert git(remote, "show", "main:hello.txt") == "HELLO"
    assert conflict.followed == Conflict.Followed.APPLIED
    assert conflict.dispute.status == "closed"

"""`review_after_rebase` with real agents and git: a branch that never rests, a ruling, one review more."""

from pathlib import Path

import pytest

from agents.models import Prompt, Run
from disputes import rulings
from disputes.models import Conflict
from tasks.models import Event, Landing, Review, Submission, Verification
from tests.end_to_end.loop import Loop, bare_remote, command_agent, git, script, small_project, task_in
from tests.factories import create_user

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# Says hello, and thinks nothing of the reviewer's wish to shout.
CODER = """
    import os, pathlib, subprocess, sys
    response = ("## DISAGREE: ISSUE-R1-001\\n\\n**Reviewer Concern:**\\n> Shout\\n\\n"
                "**Engineer Position:**\\nNo shouting.\\n\\n**Rationale:**\\nIt is rude.\\n")
    hello = pathlib.Path("hello.txt")
    hello.write_text("hello there\\n" if hello.exists() else "hello\\n")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "feat: say hello"], check=True)
    file = pathlib.Path(os.environ["TMPDIR"], "response.md")
    file.write_text(response if "ISSUE-R1-001" in sys.stdin.read() else "Done.")
    sys.exit(subprocess.run(
        ["steroids", "tasks", "update", "--status", "review", "--response", file]).returncode)
"""
# Whenever it approves, a colleague has just pushed something to the target branch.
REVIEWER = """
    import os, pathlib, subprocess, sys, tempfile
    if pathlib.Path("hello.txt").read_text() == "hello\\n":
        file = pathlib.Path(os.environ["TMPDIR"], "review.md")
        file.write_text("### High Priority\\n\\n- **ISSUE-R1-001**: Shout\\n  - **Location:** hello.txt:1\\n"
                        "  - **Impact:** Nobody hears it.\\n\\n## Verdict: NEEDS_REVISION\\n")
        sys.exit(subprocess.run(["steroids", "tasks", "reject", "--file", file]).returncode)
    clone = tempfile.mkdtemp()
    subprocess.run(["git", "clone", "-q", {remote!r}, clone], check=True)
    pathlib.Path(clone, os.path.basename(clone)).write_text("theirs")
    subprocess.run(["git", "-C", clone, "add", "-A"], check=True)
    subprocess.run(["git", "-C", clone, "-c", "user.name=Colleague", "-c", "user.email=c@example.org",
                    "commit", "-q", "-m", "chore: something else"], check=True)
    subprocess.run(["git", "-C", clone, "push", "-q", "origin", "HEAD:main"], check=True)
    sys.exit(subprocess.run(["steroids", "tasks", "approve"]).returncode)
"""


def test_rebased_work_is_reviewed_once_more_and_then_lands(loop: Loop, tmp_path: Path) -> None:
    remote = bare_remote(tmp_path, {"README.md": "Small.\n"})
    project = small_project(remote, test_command="test -f README.md", review_after_rebase=True)
    command_agent("coder", script(tmp_path, "coder", CODER))
    command_agent("reviewer", script(tmp_path, "reviewer", REVIEWER.format(remote=str(remote))))
    task = loop.until(task_in(project), "disputed")
    rulings.decide(Conflict.objects.get(), "uphold_coder", user=create_user("ruler", is_superuser=True))
    loop.until_idle()
    task.refresh_from_db()
    assert (task.status, task.round) == ("completed", 2), list(Event.objects.values_list("kind", "note"))

    # One review of the work, one of its rebase; the second rebase has none.
    submission = task.last_submission()
    assert submission is not None
    assert [review.verdict for review in Review.objects.order_by("pk")] == [
        "NEEDS_REVISION", "APPROVED", "APPROVED"
    ]  # fmt: skip
    assert list(submission.reviews.order_by("pk")) == list(Review.objects.order_by("pk"))[1:]
    landings = list(Landing.objects.order_by("pk"))
    assert [landing.status for landing in landings] == ["superseded", "landed"]
    handed_in, reviewed, landed = submission.rebased_from, submission.sha, task.landed_sha
    assert (landings[0].rebased_from, landings[0].sha) == (handed_in, reviewed)
    assert (landings[1].rebased_from, landings[1].sha) == (reviewed, landed)
    assert len({handed_in, reviewed, landed}) == 3
    assert git(remote, "rev-parse", "main") == landed
    assert len(git(remote, "log", "--format=%s", "main").splitlines()) == 5  # the seed, two of each
    for sha in (handed_in, reviewed, landed):
        assert Verification.objects.get(sha=sha).green, sha

    # The reviewer is told that only the rebase is new; the answers and the ruling came along.
    runs = Run.objects.filter(role=Run.Role.REVIEWER).order_by("pk")
    assert [run.sha for run in runs][1:] == [handed_in, reviewed]
    first, second, third = (Prompt.objects.get(run=run).text for run in runs)
    for prompt in (first, second):
        assert "Only the rebase is new" not in prompt
    assert "Only the rebase is new" in third
    assert f"approved as commit `{handed_in[:12]}`" in third
    assert "raised only points that a human has settled" not in third
    for prompt in (second, third):
        settled = prompt.partition("Settled. Do not raise again.")[2].partition("\n## ")[0]
        assert "ISSUE-R1-001" in settled
        assert "DISAGREE: ISSUE-R1-001" in prompt
    assert submission.answers.count() == 1
    assert Conflict.objects.get().followed == Conflict.Followed.APPLIED
    assert Submission.objects.count() == 2
    assert "theirs" not in submission.diff

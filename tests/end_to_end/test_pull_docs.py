"""docs/pull.md by its word: the curl examples, one after the other, against a server with a host."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from agents.models import Agent, Output, Run, Token
from tasks.models import Project, Submission, Task
from tests.cases import for_each
from tests.end_to_end.installation import ROOT, wait_for
from tests.end_to_end.loop import Loop, bare_remote, small_project, task_in

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DOCUMENT = ROOT / "docs" / "pull.md"


def test_the_examples_carry_a_task_into_review(loop: Loop, tmp_path: Path) -> None:
    project = small_project(bare_remote(tmp_path, {"README.md": "Hello.\n"}))
    while project.base_state not in Project.FIT:  # a host has looked at the branch before anybody claims
        loop.turn()
        project.refresh_from_db()
    task_in(project)
    agent = Agent.objects.create(name="by-hand", role="coder", provider="pull")
    script = "set -eu\n" + "\n".join(re.findall(r"^```sh\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S))
    folder = tmp_path / "there"
    folder.mkdir()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "URL": loop.url,
        "TOKEN": Token.mint_for(agent, "docs")[1], "GIT_AUTHOR_NAME": "Far", "GIT_COMMITTER_NAME": "Far",
        "GIT_AUTHOR_EMAIL": "far@example.org", "GIT_COMMITTER_EMAIL": "far@example.org",
    }  # fmt: skip
    with (folder / "said").open("wb") as said:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, env=environment, stdout=said, stderr=said,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def over() -> bool:
        loop.turn()
        return shell.poll() is not None

    try:
        wait_for(over, "the end of the examples")
    finally:
        shell.kill()
    assert shell.returncode == 0, (folder / "said").read_text()
    assert "is handed in at" in (folder / "said").read_text()
    loop.turn()
    submission = Submission.objects.get()
    assert submission.state in {"kept", "verified"}, submission.problem
    assert Task.objects.get().status == "review"
    assert Output.objects.get(run__agent=agent).text == "Reading the code.\n"
    run = Run.objects.get(agent=agent)
    assert (run.tokens_in, run.tokens_out, str(run.cost)) == (1200, 80, "0.020000")


@for_each("word", ["add_pull_agent", "mcp_server", "steroids-mcp", "STEROIDS_PULL_LEASE"])
def test_the_document_names_what_there_is(word: str) -> None:
    sources = [*ROOT.glob("agents/**/*.py"), ROOT / "docs" / "settings.md"]
    text = "".join(path.stem + path.read_text() for path in sources)
    assert word in DOCUMENT.read_text()
    assert word.removeprefix("STEROIDS_") in text

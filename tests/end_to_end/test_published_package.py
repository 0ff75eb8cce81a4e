"""A repository that nobody here wrote: the source of a published package, its own commands, a plain agent."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasks.models import Verification
from tests.end_to_end.loop import (
    APPROVER,
    Loop,
    bare_remote,
    command_agent,
    git,
    script,
    small_project,
    task_in,
)

pytestmark = [pytest.mark.slow, pytest.mark.online, pytest.mark.django_db(transaction=True)]

PACKAGE = "h11==0.14.0"
CODER = """
    import pathlib, re, subprocess, sys
    prompt = pathlib.Path(sys.argv[1]).read_text()
    title = re.search(r"^# Task \\S+: (.+)$", prompt, re.MULTILINE)[1]
    assert "pip install -e ." in prompt and "pytest" in prompt
    name = re.sub(r"[^a-z]+", "_", title.lower())
    test = f"import h11\\n\\n\\ndef test_{name}():\\n    assert h11.Request.__name__ == 'Request'\\n"
    pathlib.Path("tests").mkdir(exist_ok=True)
    pathlib.Path("tests", f"test_{name}.py").write_text(test)
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "test: " + title.lower()], check=True)
    sys.exit(subprocess.run(["steroids", "tasks", "update", "--status", "review"]).returncode)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source of the package; the test is skipped where no index can be reached."""
    folder = tmp_path_factory.mktemp("package")
    for _ in range(3):  # an index may be away for a moment
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
             "--dest", str(folder), PACKAGE],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if archives := list(folder.glob("*.tar.gz")):
            break
    else:
        pytest.skip(f"no package index can be reached: {done.stderr.strip()[-200:]}")
    unpacked = folder / "unpacked"
    unpacked.mkdir()
    subprocess.run(
        ["tar", "--extract", "--no-same-owner", "--file", archives[0], "--directory", unpacked], check=True
    )
    return next(unpacked.iterdir())


def test_a_task_on_a_strangers_repository_lands(
    source: Path, loop: Loop, tmp_path: Path, settings: Any
) -> None:
    settings.SANDBOX, settings.SANDBOX_HOSTS = "required", ["*"]  # an index may lie in a private network
    settings.PASS_TO_BUILDS = [
        "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "PIP_FIND_LINKS", "SSL_CERT_FILE", "HTTPS_PROXY",
        "REQUESTS_CA_BUNDLE",
    ]  # fmt: skip
    remote = bare_remote(tmp_path, source)
    project = small_project(remote, detect_commands=True, build_timeout=3600, test_timeout=3600)
    task = task_in(project, "Read a number")
    command_agent("coder", script(tmp_path, "coder", CODER))
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))
    loop.until_idle()
    task.refresh_from_db()
    tried = list(project.trials.values_list("prepare", "test", "problem", "tail"))
    assert task.landed_sha, [[r.reason for r in task.runs.all()], tried]
    assert git(remote, "rev-list", "--count", "main") == "2"
    results = Verification.objects.filter(project=project)
    assert all(result.green for result in results)
    assert any(" passed" in result.tail for result in results)

"""The five steps of the README for one's own project and agents, as a person types them."""

import re
from pathlib import Path

import pytest

from tests.end_to_end.installation import ROOT, Installation
from tests.end_to_end.loop import bare_remote, git

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text()


def commands() -> list[str]:
    """The manage.py lines of the README's section on one's own project, one command at a time."""
    section = README.split("### The same, one command at a time", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\.venv/bin/python manage\.py (.+)$", section, re.MULTILINE)


def test_the_five_steps_work(folder: Installation, tmp_path: Path) -> None:
    remote = bare_remote(tmp_path, {"README.md": "Mine.\n"})
    todo = tmp_path / "TODO.md"
    todo.write_text(re.search(r"```markdown\n(# my-app\n.+?)```", README, re.DOTALL)[1])  # type: ignore[index]
    assert folder.manage("migrate", "--verbosity", "0").returncode == 0
    typed = commands()
    assert len(typed) == 4
    for line in typed:
        words = (
            line.replace("git@example.org:team/my-app.git", str(remote)).replace("TODO.md", str(todo)).split()
        )
        words = [word.replace("examples/", f"{ROOT}/examples/") for word in words]
        done = folder.manage(*words)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    done = folder.manage("run_orchestrator", "--until-idle", "--no-web")
    assert done.returncode == 0, done.stdout + done.stderr + folder.log()
    happened, _, report = done.stdout.partition("TASK")
    assert report.count("completed") == 2
    lines = [line.split("  ", 2) for line in happened.splitlines()]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", line[0]) for line in lines)
    assert [line[2] for line in lines if line[1] == "my-app-1"][:1] == [
        "start: pending → in progress, System"
    ]
    print(happened)
    assert git(remote, "show", "main:DONE.md").splitlines() == ["- Say what it does", "- Say how to start it"]


def test_a_repository_or_branch_that_is_not_there_is_named_and_nothing_is_added(
    installation: Installation, tmp_path: Path
) -> None:
    remote = bare_remote(tmp_path, {"README.md": "Mine.\n"})
    for words, why in (
        (("/nowhere/my-app.git",), "/nowhere/my-app.git cannot be used"),
        ((str(remote), "--branch", "nope"), f"{remote} has no branch nope. Name another one, or leave"),
    ):
        done = installation.manage("add_project", "my-app", *words)
        assert (done.returncode, why in done.stderr) == (1, True), done.stderr
    assert installation.value("SELECT count(*) FROM tasks_project") == 0
    assert list((installation.home / "mirrors").iterdir()) == []


def test_an_agent_without_a_program_is_refused(installation: Installation) -> None:
    done = installation.manage("add_agent", "x", "--role", "coder", "--", "tool", "{secret}")
    assert done.returncode == 1
    assert "unknown placeholder" in done.stderr


def test_no_agent_may_be_given_what_belongs_to_the_program(installation: Installation) -> None:
    done = installation.manage("add_agent", "x", "--role", "coder", "--pass", "SECRET_KEY", "--", "tool")
    assert done.returncode == 1
    assert "SECRET_KEY belongs to this program" in done.stderr

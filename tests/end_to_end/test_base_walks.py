"""The target branch goes red under us, turns green, has known failures, a flaky test, lacks a tool."""

import signal
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agents.hosts import processes
from agents.hosts.reconciler import Reconciler
from agents.models import Agent, Run, Trial
from agents.verification import trying
from agents.web import standing
from agents.web.standing import Standing
from disputes import rulings
from disputes.models import Conflict, Decision
from disputes.rulings.offers import shown_hash
from tasks.base import find_commands
from tasks.configuration.changing import configure
from tasks.errors import Refused
from tasks.events import SYSTEM
from tasks.models import Membership, Project, Task, Verification
from tests.end_to_end import loop as scripts
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
from tests.factories import create_user

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

GREEN = """
    import unittest

    class Sums(unittest.TestCase):
        def test_one(self): self.assertEqual(1 + 1, 2)
        def test_two(self): self.assertEqual(2 + 2, 4)
        def test_three(self): self.assertEqual(3 + 3, 6)
"""
RED = GREEN.replace("2 + 2, 4", "2 + 2, 5")
TESTS = "python3 -m unittest -v test_sums"
# One that hands in something new each time.
CODER = scripts.CODER.replace('write_text("hello\\n")', "write_text(prompt)")
BREAKER = CODER.replace(
    'pathlib.Path("hello.txt").write_text(prompt)',
    'path = pathlib.Path("test_sums.py");'
    'path.write_text(path.read_text().replace("3 + 3, 6", "3 + 3, 7") + "#")',
)


@pytest.fixture
def lea(db: None) -> Any:
    return create_user("lea", is_superuser=True)


def with_agents(folder: Path, coder: str = CODER) -> None:
    command_agent("coder", script(folder, "coder", coder))
    command_agent("reviewer", script(folder, "reviewer", APPROVER))


def project_with_tests(remote: Path, lead: Any, **settings: Any) -> Project:
    project = small_project(remote, **({"test_command": TESTS} | settings))
    Membership.objects.create(project=project, user=lead, role="maintainer", is_lead=True)
    return project


def push(remote: Path, name: str, text: str, message: str = "Somebody else was here") -> str:
    """Somebody's commit on main of the remote."""
    work = remote.parent / "work"
    if not work.exists():
        git(remote.parent, "clone", "-q", str(remote), str(work))
    git(work, "pull", "-q")
    (work / name).write_text(dedent(text))
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", message)
    git(work, "push", "-q", "origin", "HEAD:main")
    return git(work, "rev-parse", "HEAD")


def until_base(loop: Loop, project: Project, *states: str) -> None:
    def is_so() -> bool:
        project.refresh_from_db()
        return project.base_state in states

    loop.until_so(is_so)


def base_card(project: Project) -> Conflict:
    return Conflict.objects.select_related("dispute__project").get(
        dispute__project=project, origin="base", status="open"
    )


def rule(card: Conflict, option: str, user: Any, **more: Any) -> Decision:
    return rulings.decide(card, option, user=user, shown=shown_hash(card), **more)


def coders() -> int:
    return Run.objects.filter(role="coder").count()


def test_a_branch_that_turns_red_waits_for_people_and_goes_on_once_it_is_green(
    loop: Loop, tmp_path: Path, lea: Any, settings: Any
) -> None:
    remote = bare_remote(tmp_path, {"test_sums.py": GREEN})
    project = project_with_tests(remote, lea)
    with_agents(tmp_path)
    first = task_in(project, "First")
    loop.until_idle()
    first.refresh_from_db()
    assert first.landed_sha
    assert Trial.objects.get().outcome == "green"

    settings.DURATIONS = settings.DURATIONS | {"fresh": 0.0}  # who begins sees at once that it has moved
    push(remote, "test_sums.py", RED)
    spent = coders()
    second = task_in(project, "Second")
    until_base(loop, project, "red")
    loop.until_idle()
    second.refresh_from_db()
    assert second.status in {"pending", "in_progress"}
    assert Run.objects.filter(role="coder", pk__gt=0, outcome="handed_in").count() == spent
    card = base_card(project)
    assert "test_two" in card.question
    assert any("test_two" in fact for fact in card.evidence)
    assert "AssertionError" in card.coder_position

    push(remote, "test_sums.py", GREEN)
    until_base(loop, project, "green")
    loop.until_idle()
    second.refresh_from_db()
    card.refresh_from_db()
    assert second.landed_sha
    assert card.status == "moot"
    assert card.dispute.__class__.objects.get(pk=card.dispute_id).status == "closed"

    settings.DURATIONS = settings.DURATIONS | {"fresh": 60.0}  # and who begins now only when it lands
    push(remote, "test_sums.py", RED, "Red again")
    third = task_in(project, "Third")
    until_base(loop, project, "red")
    loop.until_idle()
    third.refresh_from_db()
    assert third.status == "completed"
    line = "Approved; waits to land, since main is red."
    assert standing.standing(third) == Standing("wait", line, setup=project.slug)
    push(remote, "test_sums.py", GREEN, "Green again")
    until_base(loop, project, "green")
    loop.until_idle()
    third.refresh_from_db()
    assert third.landed_sha


def test_what_was_accepted_as_red_does_not_count_and_what_is_newly_red_does(
    loop: Loop, tmp_path: Path, lea: Any
) -> None:
    remote = bare_remote(tmp_path, {"test_sums.py": RED})
    project = project_with_tests(remote, lea)
    with_agents(tmp_path)
    task = task_in(project, "First")
    until_base(loop, project, "red")
    loop.until_idle()
    assert coders() == 0
    rule(base_card(project), "accept_base", lea)
    loop.until_idle()
    task.refresh_from_db()
    project.refresh_from_db()
    assert task.landed_sha
    assert project.base_state == "accepted"
    assert coders() == 1

    command_agent("coder", script(tmp_path, "breaker", BREAKER), name="breaker", priority=9)
    Agent.objects.filter(name="coder-script").update(is_active=False)
    other = task_in(project, "Second")
    loop.until(other, "disputed")
    result = Verification.objects.filter(green=False, fault="").exclude(newly_red=[]).first()
    assert result is not None
    assert [name for name in result.newly_red if "test_three" in name] == result.newly_red
    assert len(result.failed) == 2
    card = Conflict.objects.get(origin="verifying", status="open")
    assert any("test_three" in fact for fact in card.evidence)
    assert not any("test_two" in fact for fact in card.evidence)


def test_a_flaky_test_is_tried_once_more_and_named(loop: Loop, tmp_path: Path, lea: Any) -> None:
    flaky = (
        GREEN
        + """
        def test_weather(self):
            import pathlib
            seen = pathlib.Path("seen")
            first = not seen.exists()
            seen.touch()
            self.assertFalse(first)
    """.replace("\n        ", "\n        ")
    )
    remote = bare_remote(tmp_path, {"test_sums.py": flaky, ".gitignore": "seen\n__pycache__\n"})
    project = project_with_tests(remote, lea)
    with_agents(tmp_path)
    task = task_in(project, "First")
    loop.until_idle()
    task.refresh_from_db()
    assert task.landed_sha
    assert coders() == 1
    trial = Trial.objects.get()
    assert trial.outcome == "green"
    assert len(trial.flaky) == 1
    assert "test_weather" in trial.flaky[0]
    verified = Verification.objects.get(sha=task.landed_sha)
    assert "test_weather" in verified.flaky[0]
    event = task.events.get(kind="verified_green")
    assert "test_weather" in event.note


def test_a_missing_program_asks_people_at_once_and_mended_commands_go_on_by_themselves(
    loop: Loop, tmp_path: Path, lea: Any
) -> None:
    remote = bare_remote(tmp_path, {"test_sums.py": GREEN})
    project = project_with_tests(remote, lea, test_command="no-such-runner --all")
    with_agents(tmp_path)
    task = task_in(project, "First")
    until_base(loop, project, "broken")
    loop.until_idle()
    assert coders() == 0
    card = base_card(project)
    assert "no-such-runner" in card.question
    with pytest.raises(Refused) as refused:
        rule(card, "accept_base", lea)
    assert refused.value.code == "nothing_ran"
    configure(project, {"test_command": TESTS}, actor=SYSTEM)
    loop.until_idle()
    task.refresh_from_db()
    card.refresh_from_db()
    assert task.landed_sha
    assert card.status == "moot"
    assert coders() == 1


def test_surroundings_that_fail_on_the_work_alone_are_tried_on_the_branch_first(
    loop: Loop, tmp_path: Path, lea: Any
) -> None:
    """A tool vanishes while a coder works: nobody is blamed, and the same commit lands once it is back."""
    tool = tmp_path / "bin" / "runner"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexec python3 -m unittest test_sums\n")
    tool.chmod(0o755)
    remote = bare_remote(tmp_path, {"test_sums.py": GREEN})
    project = project_with_tests(remote, lea, test_command=f"PATH=$PATH:{tool.parent}; runner")
    vanish = CODER.replace(
        "sys.exit(", f"pathlib.Path({str(tool)!r}).rename({str(tool) + '.away'!r}); sys.exit("
    )
    with_agents(tmp_path, vanish)
    task = task_in(project, "First")
    until_base(loop, project, "green")
    until_base(loop, project, "broken")
    loop.until_idle()
    task.refresh_from_db()
    assert task.status == "review"
    assert coders() == 1
    assert not Conflict.objects.filter(dispute__task=task).exists()
    Path(f"{tool}.away").rename(tool)
    rule(base_card(project), "try_again", lea)
    loop.until_idle()
    task.refresh_from_db()
    assert task.landed_sha
    assert coders() == 1


def test_a_card_of_red_tests_verifies_the_same_commit_again(loop: Loop, tmp_path: Path, lea: Any) -> None:
    gate = tmp_path / "open"
    gate.touch()
    remote = bare_remote(tmp_path, {"test_sums.py": GREEN})
    project = project_with_tests(remote, lea, test_command=f"{TESTS} && test -e {gate}")
    with_agents(
        tmp_path,
        CODER.replace("sys.exit(", f"pathlib.Path({str(gate)!r}).unlink(missing_ok=True); sys.exit("),
    )
    task = task_in(project, "First")
    loop.until(task, "disputed")
    spent = coders()
    card = Conflict.objects.select_related("dispute__task").get(origin="verifying", status="open")
    gate.touch()
    rule(card, "verify", lea)
    loop.until_idle()
    task.refresh_from_db()
    assert task.landed_sha
    assert coders() == spent


def test_a_coder_finds_the_commands_and_they_are_verified_by_running_them(
    loop: Loop, tmp_path: Path, lea: Any
) -> None:
    remote = bare_remote(tmp_path, {"spec/check.weird": "exit 0\n", "Makefile": "test:\n\tfalse\n"})
    project = project_with_tests(remote, lea, test_command="", detect_commands=True)
    finder = CODER.replace(
        '"hello.txt").write_text(prompt)', '"steroids.yaml").write_text("test: sh spec/check.weird\\n")'
    )
    with_agents(tmp_path, finder)
    until_base(loop, project, "red", "broken")
    assert coders() == 0
    rule(base_card(project), "find_commands", lea)
    loop.until_idle()
    project.refresh_from_db()
    assert project.base_state == "green"
    assert project.config.test_command == "sh spec/check.weird"
    task = Task.objects.get(origin="setup")
    assert task.landed_sha
    assert find_commands(project, actor=SYSTEM).pk != task.pk  # that one is over


def test_a_host_that_dies_while_it_tries_is_followed_by_another(loop: Loop, tmp_path: Path, lea: Any) -> None:
    remote = bare_remote(tmp_path, {"test_sums.py": GREEN})
    project = project_with_tests(remote, lea, test_command=f"sleep 3; {TESTS}")
    running = Trial.objects.filter(status="running")
    loop.until_so(running.exists)
    trial = running.get()
    shim = None
    while shim is None:
        shim = processes.read_identity(trying.folder_of(trial.pk) / "pid")
    processes.signal_all([shim], signal.SIGKILL)
    until_base(loop, project, "green")
    trial.refresh_from_db()
    assert trial.attempts == 2
    with Reconciler() as host:
        assert not trying.folder_of(trial.pk).exists()
        assert host.row.pk == trial.host_id

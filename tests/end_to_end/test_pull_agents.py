"""Agents on machines of their own: nothing but HTTP and git lies between them and the server."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agents.loop import run_ends
from agents.models import Agent, Output, Run, Token
from tasks.events import SYSTEM
from tasks.models import Project, Submission, Task
from tests.end_to_end.installation import ROOT, wait_for
from tests.end_to_end.loop import APPROVER, CODER, Loop, bare_remote, git, script, small_project, task_in

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

WAITER = """
    import os, pathlib, subprocess, sys, time
    pathlib.Path("hello.txt").write_text("too late\\n")
    subprocess.run(["git", "commit", "-q", "-a", "--allow-empty", "-m", "feat: too late"], check=True)
    print("waiting", flush=True)
    pathlib.Path(os.environ["HOME"], "pid").write_text(str(os.getpid()))
    while not pathlib.Path(os.environ["HOME"], "go").exists():
        time.sleep(0.05)
    done = subprocess.run(["steroids", "tasks", "submit"], capture_output=True, text=True)
    pathlib.Path(os.environ["HOME"], "said").write_text(f"{done.returncode} {done.stderr}")
"""


class Machine:
    """Another computer: a home, a token, and the one file of the command. It cannot see the data folder."""

    def __init__(self, folder: Path, role: str, url: str, **agent: Any) -> None:
        self.home = folder
        self.home.mkdir(mode=0o700)
        self.agent = Agent.objects.create(name=folder.name, role=role, provider="pull", slots=2, **agent)
        (self.home / "token").write_text(Token.mint_for(self.agent, "tests")[1])
        (self.home / "steroids.py").write_bytes((ROOT / "agents" / "cli.py").read_bytes())
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "STEROIDS_URL": url,
            "STEROIDS_TOKEN_FILE": str(self.home / "token"), "STEROIDS_RETRY_SECONDS": "30",
            "GIT_AUTHOR_NAME": "Far", "GIT_AUTHOR_EMAIL": "far@example.org",
            "GIT_COMMITTER_NAME": "Far", "GIT_COMMITTER_EMAIL": "far@example.org",
        }  # fmt: skip
        self.begun: list[subprocess.Popen[bytes]] = []

    def pull(self, body: str, how: str = "--once", *more: str) -> subprocess.Popen[bytes]:
        """`steroids pull` with an agent that is this script."""
        program = script(self.home, "agent", body)
        words = ["pull", how, "--every", "0.2", "--command", f"{program} {{prompt}}", *more]
        with (self.home / "pull.log").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(self.home / "steroids.py"), *words], cwd=self.home,
                env=self.environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.begun.append(process)
        return process

    def said(self) -> str:
        return (self.home / "pull.log").read_text()

    def end(self) -> None:
        for process in self.begun:
            process.kill()
            process.wait()
        pid = self.home / "pid"
        if pid.exists():
            (self.home / "go").touch()


Machines = Callable[..., Machine]


@pytest.fixture
def machine(tmp_path: Path, loop: Loop) -> Iterator[Machines]:
    made: list[Machine] = []

    def make(name: str, role: str = "coder", **agent: Any) -> Machine:
        made.append(Machine(tmp_path / name, role, loop.url, **agent))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def task(tmp_path: Path, loop: Loop) -> Task:
    remote = bare_remote(tmp_path, {"README.md": "Hello.\n"})
    project = small_project(remote)
    while project.base_state not in Project.FIT:  # a host has looked at the branch before anybody claims
        loop.turn()
        project.refresh_from_db()
    return task_in(project)


def turns_until(loop: Loop, fact: Callable[[], Any], what: str) -> Any:
    """The host's loop goes on until the fact is true."""

    def look() -> Any:
        loop.turn()
        return fact()

    return wait_for(look, what)


def test_coder_and_reviewer_on_two_machines_land_a_task(
    loop: Loop, machine: Machines, task: Task, tmp_path: Path
) -> None:
    coder, reviewer = machine("far-coder"), machine("far-reviewer", "reviewer")
    coder.pull(CODER, "--loop")
    reviewer.pull(APPROVER, "--loop")
    turns_until(loop, lambda: Task.objects.get().landed_sha, "the landing")
    assert git(tmp_path / "remote.git", "show", "main:hello.txt") == "hello"
    loop.turn()
    pulled = Run.objects.filter(is_pulled=True)
    assert sorted(pulled.values_list("agent_label", "outcome")) == [
        ("far-coder", "handed_in"), ("far-reviewer", "handed_in"),
    ]  # fmt: skip
    assert not pulled.exclude(host=None).exists()
    for one in (coder, reviewer):
        one.begun[0].send_signal(signal.SIGTERM)
        assert one.begun[0].wait(60) == 130
        assert not list((one.home / ".cache" / "steroids" / "pull").iterdir()), "its clones are gone"


def test_a_machine_that_dies_loses_its_run_to_another_and_cannot_hand_in_any_more(
    loop: Loop, machine: Machines, task: Task, tmp_path: Path
) -> None:
    first, second = machine("first"), machine("second")
    process = first.pull(WAITER, "--once", "--keep")
    turns_until(loop, lambda: (first.home / "pid").exists() or None, "the agent on the first machine")
    process.kill()  # its agent lives on, and nobody beats for it
    turns_until(loop, lambda: Run.objects.filter(outcome="lost").exists(), "the end of its lease")
    second.pull(CODER)
    turns_until(loop, lambda: Submission.objects.filter(state="verified").exists(), "the second's hand-in")
    (first.home / "go").touch()
    late = wait_for(
        lambda: (first.home / "said").exists() and (first.home / "said").read_text(), "the late one"
    )
    assert late.startswith("1 ")
    assert "its token died with it" in late
    assert "on your machine only" in late
    assert Submission.objects.get().by_agent == "second"
    lost = Run.objects.get(outcome="lost")
    assert (lost.agent_label, lost.is_counted) == ("first", False)


def test_the_stop_button_ends_the_command_elsewhere(loop: Loop, machine: Machines, task: Task) -> None:
    far = machine("far")
    process = far.pull(WAITER)
    turns_until(loop, lambda: (far.home / "pid").exists() or None, "the agent")
    run_ends.ask_to_stop(Run.objects.get(), actor=SYSTEM)
    assert process.wait(120) == 0
    run = Run.objects.get()
    assert (run.outcome, run.is_counted) == ("stopped", False)
    with pytest.raises(ProcessLookupError):
        os.kill(int((far.home / "pid").read_text()), 0)
    assert "waiting" in "".join(Output.objects.values_list("text", flat=True))
    (clone,) = far.home.glob(".cache/steroids/pull/run-*/clone")
    assert f"Its commits are left in {clone}." in far.said()
    assert (clone / "hello.txt").read_text() == "too late\n"


def test_a_command_that_hands_in_nothing_counts_and_is_said(
    loop: Loop, machine: Machines, task: Task
) -> None:
    far = machine("far")
    process = far.pull("import sys; print('no idea\\n' * 20_000 + 'the end'); sys.exit(3)")
    turns_until(loop, lambda: process.poll() is not None, "its end")
    run = Run.objects.get()
    assert (run.outcome, run.is_counted) == ("nothing", True)
    assert run.reason == "The command ended with 3 and handed in nothing."
    log = "".join(Output.objects.order_by("seq").values_list("text", flat=True))
    assert log == "no idea\n" * 20_000 + "the end\n"
    assert "is given back" in far.said()


def test_a_command_that_is_not_there_gives_the_work_back(loop: Loop, machine: Machines, task: Task) -> None:
    far = machine("far")
    words = ["pull", "--once", "--command", "no-such-program {prompt}"]
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(far.home / "steroids.py"), *words], env=far.environment,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    far.begun.append(process)  # type: ignore[arg-type]
    turns_until(loop, lambda: process.poll() is not None, "its end")
    assert process.returncode == 1
    assert "no-such-program cannot be started" in process.stderr.read()  # type: ignore[union-attr]
    assert Run.objects.get().outcome == "nothing"


def test_the_agent_elsewhere_never_sees_the_token_that_claims(
    loop: Loop, machine: Machines, task: Task
) -> None:
    far = machine("far")
    body = dedent("""
        import os, pathlib
        told = "".join(f"{name}={value}" for name, value in os.environ.items())
        told += pathlib.Path(os.environ["STEROIDS_CONTEXT"]).read_text()
        pathlib.Path(os.environ["HOME"], "told").write_text(told)
    """)
    process = far.pull(body)
    turns_until(loop, lambda: process.poll() is not None, "its end")
    told = (far.home / "told").read_text()
    assert (far.home / "token").read_text() not in told
    assert "STEROIDS_TOKEN_FILE" not in told

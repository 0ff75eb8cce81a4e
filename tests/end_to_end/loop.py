"""The loop in the test's own process: real git, real shims, real agents over real HTTP, one database."""

import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.hosts import processes
from agents.hosts.reconciler import Reconciler
from agents.hosts.resident import idle, newest_event
from agents.loop import orchestrator
from agents.models import Agent
from tasks.models import Project, Task
from tests.factories import create_section, create_task


class Loop:
    """One host, driven turn by turn: when the bell rings, or when it is time to look."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url = home, url

    def turn(self) -> None:
        orchestrator.tick()
        with Reconciler() as host:
            host.step()

    def until_idle(self, seconds: float = 240.0, *, within: float = 3.0) -> None:
        """Turn until nothing is live, startable or to land."""
        deadline = time.monotonic() + seconds
        with Reconciler() as host:
            while time.monotonic() < deadline:
                since = newest_event()
                orchestrator.tick()
                if not host.step() and idle(within, since=since):
                    return
                host.wait()
        raise AssertionError(f"still busy after {seconds:g} s")

    def until_so(self, condition: Callable[[], object], seconds: float = 100.0) -> None:
        """Turn until the condition holds."""
        deadline = time.monotonic() + seconds
        with Reconciler() as host:
            while time.monotonic() < deadline:
                orchestrator.tick()
                host.step()
                if condition():
                    return
                host.wait()
        raise AssertionError(f"not so after {seconds:g} s")

    def until(self, task: Task, *statuses: str, seconds: float = 240.0) -> Task:
        """Turn until the task has one of the statuses."""
        deadline = time.monotonic() + seconds
        with Reconciler() as host:
            while time.monotonic() < deadline:
                orchestrator.tick()
                host.step()
                task.refresh_from_db()
                if task.status in statuses:
                    return task
                host.wait()
        raise AssertionError(f"{task.ref} is {task.status} after {seconds:g} s, not {' or '.join(statuses)}")


def end_all_runs(home: Path) -> None:
    """End whatever runs in this data folder have started, not their shims alone: commands start commands."""
    for _ in range(5):  # what is ended may just have started something
        processes.end_all([who for _, who in processes.of_runs(home / "runs")], 0.5)


def git(folder: Path, *words: str) -> str:
    """Git as a developer has it on the machine."""
    identity = ["-c", "user.name=Dev", "-c", "user.email=dev@example.org"]
    done = subprocess.run(
        ["git", *identity, "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def bare_remote(folder: Path, files: dict[str, str] | Path) -> Path:
    """A bare repository whose main branch holds these files in one commit."""
    work = folder / "seed"
    if isinstance(files, Path):
        files.rename(work)
    else:
        for name, text in files.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
    subprocess.run(["git", "init", "-q", "-b", "main", str(work)], check=True)
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "As it stands")
    remote = folder / "remote.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(remote)], check=True)
    return remote


def script(folder: Path, name: str, body: str) -> Path:
    """An executable agent, written in Python."""
    path = folder / name
    path.write_text(f"#!{sys.executable} -I\n" + textwrap.dedent(body))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def command_agent(role: str, program: Path | str, **more: Any) -> Agent:
    """An agent of provider `command`; gets the prompt's path as its argument."""
    return Agent.objects.create(
        name=more.pop("name", f"{role}-script"), role=role, slots=4,
        settings={"argv": [str(program), "{prompt}"]}, **more,
    )  # fmt: skip


def small_project(remote: Path | str, **settings: Any) -> Project:
    """A project on that remote with one section, and nothing to build."""
    project = Project.objects.create(
        slug="small", name="Small", repo_url=str(remote),
        settings={"detect_commands": False, "undo_seconds": 0} | settings,
    )  # fmt: skip
    create_section(project, "Work")
    return project


def task_in(project: Project, title: str = "Say hello", **more: Any) -> Task:
    return create_task(project, title=title, number=project.tasks.count() + 1, **more)


CODER = """
    import pathlib, subprocess, sys
    prompt = pathlib.Path(sys.argv[1]).read_text()
    assert sys.stdin.read() == prompt
    pathlib.Path("hello.txt").write_text("hello\\n")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "feat: say hello"], check=True)
    sys.exit(subprocess.run(["steroids", "tasks", "update", "--status", "review"]).returncode)
"""
APPROVER = """
    import subprocess, sys
    sys.exit(subprocess.run(["steroids", "tasks", "approve", "--notes", "Fine."]).returncode)
"""

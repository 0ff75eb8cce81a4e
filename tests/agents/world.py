"""A small world with real git in it: a bare remote, people who commit, and rows that point at them."""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from agents.hosts import paths, submissions
from agents.hosts.git.mirror import Mirror
from agents.hosts.git.remotes import Network
from agents.models import Run
from agents.verification import commands
from tasks.events import Actor
from tasks.models import Landing, Submission, Task, Verification
from tests.factories import create_host, create_project, create_run, create_section, create_task

Files = dict[str, str | None]  # a path and its text; None deletes it
FIRST: Files = {"README.md": "A ledger.\n", "ledger.py": "total = 0\n" * 20, "docs/SPEC.md": "# Ledger\n"}
CODER = Actor("run", "coder-1")
REVIEWER = Actor("run", "reviewer-1")


def git(folder: Path, *arguments: str, stdin: str = "", **environment: str) -> str:
    """One git command, as a person or an agent would give it, without anything of this machine's."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env={
            "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org", **environment,
        },
        input=stdin, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def write(folder: Path, files: Files) -> None:
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def commit(folder: Path, files: Files, message: str = "Work", **environment: str) -> str:
    """Commit these files in a clone. The commit's name."""
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message, **environment)
    return git(folder, "rev-parse", "HEAD")


def hook(repository: Path, name: str, script: str) -> Path:
    """A hook of the remote's own."""
    path = repository / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def import_commit(repository: Path, files: Files, message: str, parent: str = "") -> None:
    """A commit on main of a bare repository, without a clone and without its hooks."""
    stream = f"commit refs/heads/main\ncommitter Bob <bob@example.org> {time.time():.0f} +0000\n"
    stream += f"data {len(message)}\n{message}\n{parent}"
    for name, text in files.items():
        size = len((text or "").encode())
        stream += f"D {name}\n" if text is None else f"M 100644 inline {name}\ndata {size}\n{text}\n"
    git(repository, "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", stdin=stream)


@cache
def template() -> tuple[Path, str]:
    """A remote with one commit, and a mirror of it, which each test copies. The commit's name."""
    folder = Path(tempfile.mkdtemp(prefix="steroids-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    remote = folder / "remote.git"
    git(folder, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(remote))
    import_commit(remote, FIRST, "First")
    first = Mirror(folder / "mirror.git", str(remote), "main", Network()).fetch_target()
    git(folder / "mirror.git", "repack", "-adq")
    shutil.rmtree(folder / "mirror.git" / "hooks")
    return folder, first


class Remote:
    """A bare repository somewhere else, with one commit on main."""

    def __init__(self, folder: Path) -> None:
        ready, self.first = template()
        self.path = folder / "remote.git"
        shutil.copytree(ready / "remote.git", self.path)

    def push(self, files: Files, message: str = "Somebody else was faster") -> str:
        """Somebody's commit appears on main; no hook is asked. Its name."""
        import_commit(self.path, files, message, "from refs/heads/main^0\n")
        return self.head()

    def head(self, branch: str = "main") -> str:
        return git(self.path, "rev-parse", f"refs/heads/{branch}")

    def mirror(self, path: Path, **network: Any) -> Mirror:
        """A mirror of this remote on some host, as of its first commit."""
        shutil.copytree(template()[0] / "mirror.git", path)
        return Mirror(path, str(self.path), "main", Network(**({"timeout": 120.0} | network)))

    def count_pushes(self) -> Path:
        """From now on each push that arrives is a line in this file."""
        log = self.path / "pushes"
        log.touch()
        hook(self.path, "pre-receive", f"cat >> '{log}'")
        return log


class World:
    """A project with a real remote, and the data folder of one host."""

    def __init__(self, folder: Path, settings: Any) -> None:
        settings.HOME = folder / "home"
        self.settings = settings
        self.duration(fresh=0)  # a test moves the branch faster than anybody else does
        self.remote = Remote(folder)
        self.project = create_project(
            repo_url=str(self.remote.path),
            settings={"detect_commands": False},
            max_parallel=10,
        )
        self.section = create_section(self.project)
        self.mirror = paths.mirror(self.project)
        shutil.copytree(template()[0] / "mirror.git", self.mirror.path)

    def duration(self, **seconds: float) -> None:
        """Some durations are other ones in this test."""
        self.settings.DURATIONS = self.settings.DURATIONS | seconds

    def task(self, **kwargs: Any) -> Task:
        return create_task(section=self.section, **kwargs)

    def coder(self, task: Task | None = None, *, base: str = "", **kwargs: Any) -> Run:
        """A live coder on the task, with its clone."""
        task = task or self.task()
        if task.status == "pending":
            task.start()
        base = base or self.remote.head()
        if not self.mirror.has(base):
            self.mirror.fetch_target()
        kwargs = {"base_sha": base, "host": create_host()} | kwargs
        run = create_run(task, **kwargs)
        clone = paths.clone_of(run)
        clone.parent.mkdir(parents=True)
        self.mirror.checkout(clone, base, f"steroids/{task.ref}")
        return run

    def commit(self, run: Run, files: Files, message: str = "Work") -> str:
        return commit(paths.clone_of(run), files, message)

    def hand_in(self, run: Run, sha: str, **kwargs: Any) -> Submission:
        """The coder names its commit; nobody has fetched it yet."""
        task = run.task
        submission = Submission.objects.create(
            task=task, round=task.round, attempt=task.submissions.filter(round=task.round).count() + 1,
            sha=sha, base_sha=run.base_sha, by_agent="coder-1", **kwargs,
        )  # fmt: skip
        Run.objects.filter(pk=run.pk).update(status=Run.Status.CLOSING, submission=submission)
        run.refresh_from_db()
        task.submit(actor=CODER)
        return submission

    def kept(self, files: Files, **kwargs: Any) -> Submission:
        """A submission with these changes, in the mirror."""
        run = self.coder(**kwargs)
        submission = self.hand_in(run, self.commit(run, files))
        submissions.keep(submission, run)
        submission.refresh_from_db()
        assert submission.state == Submission.State.KEPT, submission.problem
        return submission

    def accepted(self, files: Files, **kwargs: Any) -> Landing:
        """A kept, verified and approved submission, on its way to the target branch."""
        submission = self.kept(files, **kwargs)
        Submission.objects.filter(pk=submission.pk).update(state=Submission.State.VERIFIED)
        submission.task.approve(submission, actor=REVIEWER)
        return self.landing(submission)

    def landing(self, submission: Submission) -> Landing:
        return Landing.objects.create(
            project=self.project, task=submission.task, submission=submission, sha=submission.sha,
            target=self.project.target_branch,
        )  # fmt: skip

    def verify(self, sha: str, *, green: bool = True, **kwargs: Any) -> Verification:
        """Build and tests ran for this commit."""
        known = commands.commands_of(self.project, self.mirror, sha)
        return Verification.objects.create(
            project=self.project, sha=sha, commands_hash=commands.commands_hash(known), green=green, **kwargs
        )

    def lose_mirror(self) -> None:
        """This host has never seen the project: the commits lie on another one."""
        shutil.rmtree(self.mirror.path)


def at_once(*works: Callable[[], object]) -> None:
    """Do all of it in threads that begin at the same moment. Raises what one of them raises."""
    start = Barrier(len(works), timeout=120)

    def one(work: Callable[[], object]) -> None:
        try:
            start.wait()
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        list(pool.map(one, works))


@pytest.fixture(name="world")
def make_world(tmp_path: Path, settings: Any, db: None) -> World:
    return World(tmp_path, settings)

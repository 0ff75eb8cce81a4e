"""Adds a project by its repository and follows the trials of its target branch."""

import contextlib
import functools
import shutil
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from agents.hosts import paths
from agents.hosts.git import remotes
from agents.hosts.git.mirror import Mirror
from agents.hosts.reconciler import HostBusy, Reconciler
from agents.hosts.sandbox import HostUnfit
from agents.models import Host, Trial
from agents.verification import conclusions, trying
from tasks import base
from tasks.adding import begin_project
from tasks.events import SYSTEM, Actor
from tasks.models import Project

POLL = 0.25  # seconds
PATIENCE = 5.0  # seconds between two looks whether this host is free, and before it is said that none is
NOBODY_TRIES = (
    "No host that is alive may try it now; `manage.py host list` shows them. It goes on as soon as one may: "
    "wait, or press Ctrl+C; nothing is lost."
)
WAITS = "It waits for its turn: other branches are tried first. Wait, or press Ctrl+C; nothing is lost."
NOT_BEGUN = "No coder is started. A card in the queue offers what to do."


def address(said: str) -> str:
    """Return the address, a local folder as an absolute path: the host may be started in another folder."""
    path = Path(said).expanduser()
    return str(path.resolve()) if path.is_dir() else said


def add_project(
    slug: str, url: str, *, name: str = "", branch: str = "", settings: dict[str, Any] | None = None,
    kind: str = Project.Kind.CODE, brief: str = "", leads: Iterable[Any] = (), actor: Actor = SYSTEM,
) -> Project:  # fmt: skip
    """Fetch the repository and create its project; if it cannot be fetched, nothing is left behind.

    Without `branch`, the remote's default branch is used. Raises GitError.
    """
    network = paths.network()
    branch = branch or remotes.default_branch(url, network)
    staged = paths.folder("mirrors") / f"new-{uuid.uuid4().hex}.git"
    mirror = Mirror(staged, url, branch, network)
    try:
        mirror.fetch_target()
        project = Project(
            slug=slug, name=name or slug, repo_url=url, target_branch=branch, settings=settings or {},
            kind=kind, brief=brief,
        )  # fmt: skip
        begin_project(project, leads, actor=actor)
        staged.rename(paths.mirror(project).path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        mirror.lock.unlink(missing_ok=True)
    return project


def follow(project: Project, say: Callable[[str], None]) -> None:
    """Wait until the target branch is known, and say what is tried and how it went.

    This process tries the branch itself as soon as no other one holds this host; until then it only watches.
    Raises CommandError if somebody removes the project meanwhile.
    """
    told: set[int] = set()
    begun: set[int] = set()
    say_once = functools.cache(say)
    with contextlib.ExitStack() as stack:
        host = _hold_host(stack, say_once)
        looked = time.monotonic()
        while True:
            if host is None and time.monotonic() - looked >= PATIENCE:
                host = _hold_host(stack, say_once)
                if host is None and not _is_tried_elsewhere(project):
                    say_once(NOBODY_TRIES)
                elif host is None and not begun:
                    say_once(WAITS)
                looked = time.monotonic()
            if host is not None:
                trying.advance(host.row, lambda key, work: work(), only=project.pk)
            _tell(project, begun, told, say)
            try:
                project.refresh_from_db()
            except Project.DoesNotExist:
                raise CommandError(f"{project.slug} was removed while it was being tried.") from None
            if base.said(project) or project.trouble:
                break
            time.sleep(POLL)
    _tell(project, begun, told, say)
    say(base.said(project) or project.trouble)
    if project.base_state in {Project.Base.RED, Project.Base.BROKEN}:
        say(NOT_BEGUN)


def _hold_host(stack: contextlib.ExitStack, say: Callable[[str], None]) -> Reconciler | None:
    try:
        return stack.enter_context(Reconciler(threads=True))  # it beats, however long a turn takes
    except HostBusy:
        return None
    except HostUnfit as error:
        say(str(error))
        return None


def _is_tried_elsewhere(project: Project) -> bool:
    return any(host.takes_work and host.may_run(project) for host in Host.objects.alive())


def _tell(project: Project, begun: set[int], told: set[int], say: Callable[[str], None]) -> None:
    """Say a line for each trial that began, and one for each that ended, since the last call."""
    trials = list(project.trials.order_by("pk"))
    count = max((trial.ordinal for trial in trials), default=0)
    for trial in trials:
        if trial.outcome == Trial.Outcome.SKIPPED:
            continue
        if trial.status != Trial.Status.QUEUED and trial.pk not in begun:
            begun.add(trial.pk)
            what = "; ".join(command for _, command in trial.commands)
            say(
                f"  trying {trial.ordinal} of {count}: {what}"
                + (f"  ({trial.source})" if trial.source else "")
            )
        if trial.status == Trial.Status.ENDED and trial.pk not in told:
            told.add(trial.pk)
            which = f"{trial.ordinal} of {count}: " if count > 1 else ""  # two run at once
            say(f"    {which}{conclusions.says(trial)}")

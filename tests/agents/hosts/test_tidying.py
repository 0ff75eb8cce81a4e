"""What a host keeps for a while and then clears away: folders of ended runs, commits of ended tasks."""

import os
import shutil
import subprocess
import tempfile
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from agents import retention
from agents.hosts import paths, starting, submissions, tidying
from agents.hosts.git.commands import GitError
from agents.hosts.reconciler import Reconciler
from agents.models import Run
from agents.pull import leases
from agents.verification import caches
from disputes.models import Dispute
from tasks.models import Bundle, Project, Submission, Task
from tests.agents.world import World, git, make_world  # noqa: F401
from tests.factories import create_host, create_project, create_run

pytestmark = pytest.mark.django_db
LONG_AGO = time.time() - 60 * tidying.DAY


def aged(path: Path) -> Path:
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def folder_of(run: Run, **changes: object) -> Path:
    Run.objects.filter(pk=run.pk).update(**changes)
    folder = paths.run_folder(run.pk)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "output.log").write_text("It works.\n")
    return aged(folder)


def test_folders_of_ended_runs_go_after_a_while(world: World) -> None:
    now, long_ago = timezone.now(), timezone.now() - timedelta(days=60)
    runs = [create_run(world.task(), host=create_host()) for _ in range(4)]
    live, fresh, old, unfetched = runs
    submission = world.hand_in(coder := world.coder(), "a" * 40)
    submission.task.refresh_from_db()
    Run.objects.filter(pk=coder.pk).update(submission=None)
    kept = [
        folder_of(live),
        folder_of(fresh, status="ended", ended_at=now),
        folder_of(unfetched, status="ended", ended_at=long_ago, submission=submission),
    ]
    gone = [folder_of(old, status="ended", ended_at=long_ago), aged(paths.folder("runs", "987654"))]
    gone += [aged(paths.folder("trials", "7")), aged(paths.folder("checks", "3"))]
    kept.append(aged(paths.folder("runs", "notes")))
    retention.prune_host()
    assert [path.exists() for path in kept] == [True] * 4
    assert [path.exists() for path in gone] == [False] * 4


def test_a_clone_that_was_left_half_made_goes(world: World) -> None:
    """A host that was killed while it prepared a run left the clone for ever."""
    world.duration(beat=0.0)
    run = world.coder(status=Run.Status.ENDED, ended_at=timezone.now())
    clone = paths.clone_of(run)
    assert clone.exists()
    with Reconciler() as host:
        host.step()
        assert not clone.exists()
        (paths.run_folder(run.pk) / "tmp").mkdir()
        host.step()  # it has looked there once
        assert (paths.run_folder(run.pk) / "tmp").exists()


def test_mirrors_are_packed_and_forget_the_commits_of_ended_tasks(world: World) -> None:
    old, new = world.kept({"old.py": "old\n"}), world.kept({"new.py": "new\n"})
    large = world.kept({"large.py": "large\n"})
    Submission.objects.filter(pk=large.pk).update(only_on="test-host")
    ended = Task.objects.filter(pk__in=[old.task_id, large.task_id])
    ended.update(status="cancelled", status_at=timezone.now() - timedelta(days=60))
    for path in (world.mirror.path / "objects").rglob("*"):
        if path.is_file():
            aged(path)
    Run.objects.update(status="ended", ended_at=timezone.now())
    mark = paths.folder("host") / "tidied"
    assert not tidying.is_due()  # a day after the first start
    aged(mark)
    with Reconciler() as host:
        host.step()
    assert not tidying.is_due()
    left = {submissions.ref_of(new), submissions.ref_of(large)}
    assert set(world.mirror.refs("refs/steroids/submissions/")) == left
    assert not world.mirror.has(old.sha)
    assert world.mirror.has(new.sha)
    assert int(git(world.mirror.path, "count-objects", "-v").split("packs: ")[1].split()[0]) == 1


def test_what_a_live_clone_may_borrow_is_kept(world: World) -> None:
    old = world.kept({"old.py": "old\n"})
    Task.objects.filter(pk=old.task_id).update(
        status="cancelled", status_at=timezone.now() - timedelta(days=60)
    )
    world.coder()
    for path in (world.mirror.path / "objects").rglob("*"):
        if path.is_file():
            aged(path)
    retention.prune_host()
    assert world.mirror.refs("refs/steroids/submissions/") == []
    assert world.mirror.has(old.sha)


def test_caches_that_no_run_used_for_long_go_unless_their_project_is_at_work(
    world: World, settings: Any
) -> None:
    """Nothing but the removal of their project ever removed them."""
    busy, idle = world.project, create_project()
    settings.KEEP_DAYS = settings.KEEP_DAYS | {"caches": 30.0}
    world.coder()

    def cache_of(project: Project, *, is_old: bool) -> Path:
        cache = caches.kept_of(project.pk)
        (cache / "go" / "mod").mkdir(parents=True, exist_ok=True)
        (cache / "go" / "mod" / "code.go").write_text("package code\n")
        (cache / "go" / "mod").chmod(0o555)  # as Go leaves its modules
        if is_old:
            aged(cache.parent)
        return cache

    used = cache_of(create_project(), is_old=True)
    caches.prepare(int(used.parts[-3]), world.mirror.path.parent / "run", "verifier")
    kept = [cache_of(busy, is_old=True), cache_of(create_project(), is_old=False), used]
    gone = [cache_of(idle, is_old=True), paths.folder("env", str(idle.pk), "coder", "cache")]
    aged(gone[1].parent)  # as an earlier version left it
    of_removed = paths.folder("env", "987654", "coder")
    aged(of_removed.parent)
    said = StringIO()
    call_command("prune", "--dry-run", stdout=said)
    assert "Would go: 2 caches." in said.getvalue()
    assert all(path.exists() for path in [*kept, *gone])
    assert "Gone: 2 caches." in retention.prune_host()
    assert [path.exists() for path in kept] == [True] * 3
    assert [path.exists() for path in [*gone, of_removed.parent]] == [False] * 3
    settings.KEEP_DAYS = settings.KEEP_DAYS | {"caches": 0.0}
    Run.objects.update(status="ended", ended_at=timezone.now())
    retention.prune_host()
    assert [path.exists() for path in kept] == [True] * 3


def test_folders_that_nobody_may_write_to_are_removed_as_well() -> None:
    """Go makes its modules so; only root is not stopped by that."""
    folder = Path(tempfile.mkdtemp())
    (folder / "mod" / "code").mkdir(parents=True)
    (folder / "mod" / "code" / "code.go").write_text("package code\n")
    (folder / "mod" / "code").chmod(0o555)
    (folder / "mod").chmod(0o555)
    (folder / "link").symlink_to("/")
    user = os.geteuid()
    if not user:
        subprocess.run(["chown", "-Rh", "65534", str(folder)], check=True)
        os.seteuid(65534)
    try:
        paths.remove(folder / "mod")
    finally:
        os.seteuid(user)
    assert [path.name for path in folder.iterdir()] == ["link"]
    shutil.rmtree(folder)


def test_commits_of_what_is_over_are_let_go_and_never_those_that_something_needs(world: World) -> None:
    """Bases, drafts and work that a person finished stayed for ever, as did all of projects that ended."""
    old = timezone.now() - timedelta(days=60)
    works = {name: world.kept({f"{name}.py": "x\n"}) for name in (
        "by hand", "by hand just now", "by hand, disputed", "by hand, landing", "by hand, unfetched",
        "by hand, at work", "in review", "in progress", "put off", "left with a card", "approved",
    )}  # fmt: skip
    tasks = {name: Task.objects.get(pk=work.task_id) for name, work in works.items()}
    Run.objects.update(status="ended", ended_at=old)
    statuses = {"in progress": "in_progress", "left with a card": "in_progress", "put off": "deferred"}
    for name, task in tasks.items():
        Task.objects.filter(pk=task.pk).update(status=statuses.get(name, "review"))
    by_hand = Task.objects.filter(pk__in=[task.pk for name, task in tasks.items() if "by hand" in name])
    by_hand.update(status="completed", finished_by="hand", status_at=old)
    Task.objects.filter(pk=tasks["by hand just now"].pk).update(status_at=timezone.now())
    Dispute.objects.create(project=world.project, task=tasks["by hand, disputed"], severity="high")
    Dispute.objects.create(project=world.project, task=tasks["left with a card"], severity="low")
    world.landing(works["by hand, landing"])
    Submission.objects.filter(pk=works["by hand, unfetched"].pk).update(state="received")
    create_run(tasks["by hand, at work"], seat="again")
    Task.objects.filter(pk=tasks["approved"].pk).update(status="completed", accepted=works["approved"])

    runs = {name: create_run(world.task(), status="ended", ended_at=old) for name in ("over", "over as well")}
    runs["unfetched"] = Run.objects.get(submission=works["by hand, unfetched"])
    runs["ended just now"] = create_run(world.task(), status="ended", ended_at=timezone.now())
    runs["live"] = create_run(world.task())
    for run in runs.values():
        world.mirror.keep(world.remote.first, leases.base_ref(run.pk))
    world.mirror.keep(world.remote.first, f"refs/steroids/dropped/{world.remote.first}")

    def left() -> set[str]:
        """What a night leaves, of refs and of bundles alike."""
        retention.prune_rows(60)
        retention.prune_host()
        refs = world.mirror.refs("refs/steroids/submissions/")
        kept = {name for name, work in works.items() if submissions.ref_of(work) in refs}
        bundles = set(Bundle.objects.values_list("submission", flat=True))
        assert kept == {name for name, work in works.items() if work.pk in bundles}
        return kept

    assert left() == works.keys() - {"by hand"}
    bases = world.mirror.refs("refs/steroids/bases/")
    assert set(bases) == {leases.base_ref(run.pk) for name, run in runs.items() if "over" not in name}
    Project.objects.update(status="finished", exit_type="abandoned", exit_at=timezone.now())
    assert left() == works.keys() - {"by hand"}
    Project.objects.update(exit_at=old)
    assert left() == works.keys() - {"by hand", "in progress", "put off"}
    assert len(world.mirror.refs("refs/steroids/dropped/")) == 1
    assert {"approved", "in review", "by hand, landing", "by hand, disputed"} <= left()


def test_a_task_that_is_taken_up_again_after_its_commits_were_let_go_begins_on_the_target(
    world: World,
) -> None:
    """Each run of it was refused: its commit was said to be on another host."""
    submission = world.kept({"old.py": "old\n"})
    Task.objects.filter(pk=submission.task_id).update(status="in_progress")
    coder = create_run(submission.task, seat="again")
    assert starting.base_of(coder, world.mirror) == submission.sha
    world.lose_mirror()
    assert starting.base_of(coder, world.mirror) == submission.sha  # out of the database
    world.lose_mirror()
    Bundle.objects.all().delete()
    assert starting.base_of(coder, world.mirror) == world.remote.first
    Submission.objects.update(only_on="elsewhere")
    with pytest.raises(GitError, match="on another host"):
        starting.base_of(coder, world.mirror)

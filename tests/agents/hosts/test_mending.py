"""Mirrors that a crash or a bad disk has damaged: whole again at the next use, whatever was broken."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.hosts import landing as landings
from agents.hosts import launching, paths, submissions
from agents.hosts.git.commands import GitError
from agents.hosts.git.remotes import HostTrouble, Unreachable, over_network
from agents.hosts.mending import LOCK_OLD, LOCK_YOUNG, MendingMirror
from agents.hosts.reconciler import Reconciler
from agents.models import Run
from disputes.models import Conflict
from tasks.models import Landing, Project, Submission, Task
from tests.agents.world import World, git, make_world  # noqa: F401
from tests.cases import rows_put_back
from tests.factories import create_run

pytestmark = pytest.mark.django_db
FULL = {"f_blocks": 1000, "f_bavail": 100, "f_frsize": 10**6, "f_files": 1000, "f_favail": 900, "f_flag": 0}
LONG_AGO = time.time() - 2 * LOCK_OLD


def lock(path: Path) -> None:
    for name in ("packed-refs.lock", "refs/steroids/target/main.lock", "HEAD.lock"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).touch()
        os.utime(path / name, (LONG_AGO, LONG_AGO))


def half_an_init(path: Path) -> None:
    (path / "HEAD").unlink()
    (path / "config").unlink()


def empty_head(path: Path) -> None:
    (path / "HEAD").write_bytes(b"")


def no_objects(path: Path) -> None:
    shutil.rmtree(path / "objects")


def empty_packs(path: Path) -> None:
    for pack in path.glob("objects/pack/*.pack"):
        pack.chmod(0o600)
        pack.write_bytes(b"")


def empty_refs(path: Path) -> None:
    for ref in (path / "refs").rglob("*"):
        if ref.is_file():
            ref.write_bytes(b"")


DAMAGES: list[Callable[[Path], None]] = [
    lock, half_an_init, empty_head, no_objects, empty_packs, empty_refs,
]  # fmt: skip


def test_a_damaged_mirror_is_whole_again_at_the_next_fetch(world: World) -> None:
    """It stopped the project, and the page said that the remote cannot be reached."""
    mirror = paths.mirror(world.project)
    for damage in DAMAGES:
        kept = world.kept({f"{damage.__name__}.py": "one\n"})
        head = world.remote.push({"theirs.py": damage.__name__})
        damage(mirror.path)
        assert mirror.fetch_target() == head, damage.__name__
        submissions.bring_here(kept, mirror)
        assert mirror.is_ancestor(kept.base_sha, kept.sha), damage.__name__
        git(mirror.path, "fsck", "--connectivity-only")


def test_what_only_this_host_has_outlives_a_new_mirror_where_it_can_be_read(world: World) -> None:
    mirror = paths.mirror(world.project)
    run = world.coder()
    world.commit(run, {"half.py": "half\n"})
    saved = submissions.salvage(run)
    git(mirror.path, "repack", "-adq")
    whole = {*mirror.path.glob("objects/pack/*.pack")}
    lost = world.kept({"lost.py": "lost\n"})
    for pack in {*mirror.path.glob("objects/pack/*.pack")} - whole:
        pack.unlink()
    world.remote.push({"theirs.py": "theirs\n"})
    (mirror.path / "refs" / "steroids" / "target" / "main").write_text("f" * 40 + "\n")
    mirror.fetch_target()
    assert mirror.read(saved, "half.py", 100) == "half\n"
    assert not mirror.has(lost.sha)
    submissions.bring_here(lost, mirror)
    assert mirror.has(lost.sha)


def test_a_mirror_that_cannot_be_mended_is_the_hosts_trouble_and_everything_waits(
    world: World, settings: Any
) -> None:
    settings.DURATIONS = settings.DURATIONS | {"fresh": 60.0}  # so that no fetch finds the damage first
    landing = world.accepted({"two.py": "two\n"})
    run = create_run(world.task(), status=Run.Status.STARTING)
    mirror = paths.mirror(world.project)
    world.remote.push({"theirs.py": "theirs\n"})
    mirror.fetch_target()
    no_objects(mirror.path)
    mirror.path.with_name(f"{mirror.path.name}.new").write_text("in the way")
    landings.advance(landing, "test-host")
    landing.refresh_from_db()
    assert (landing.status, landing.claimed_until, landing.attempts) == ("queued", None, 1)
    assert landing.problem.startswith("The remote cannot be worked on by this host")
    assert "cannot be mended" in landing.problem
    launching.launch(run)
    run.refresh_from_db()
    assert (run.status, run.outcome) == (Run.Status.ENDED, Run.Outcome.STOPPED)
    assert "cannot be mended" in run.reason
    assert Task.objects.get(pk=run.task_id).not_before


def test_a_full_disk_blames_neither_the_coder_nor_the_branch(world: World, monkeypatch: Any) -> None:
    """It sent finished work back to its coder, and a landing that was only to be rebased, too."""
    run = world.coder()
    submission = world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    landing = world.accepted({"two.py": "two\n"})
    world.remote.push({"theirs.py": "theirs\n"})

    def fail(*words: Any, **more: Any) -> None:
        raise GitError("git fetch", "fatal: write error: No space left on device\nfatal: index-pack failed")

    with monkeypatch.context() as full:
        full.setattr(MendingMirror, "take", fail)
        full.setattr(MendingMirror, "rebase", fail)
        with rows_put_back():  # an agent can make git say that, but not fill the disk with its clone's files
            submissions.keep(submission, run)
            assert Submission.objects.get(pk=submission.pk).state == Submission.State.LOST
        full.setattr(os, "statvfs", lambda path: SimpleNamespace(**FULL))
        with pytest.raises(HostTrouble, match="No space left"):
            submissions.keep(submission, run)
        landings.advance(landing, "test-host")
    landing.refresh_from_db()
    assert (landing.status, Conflict.objects.count()) == (Landing.Status.QUEUED, 0)
    assert "this host: git fetch: fatal: write error: No space left" in landing.problem
    submissions.keep(submission, run)
    assert Submission.objects.get(pk=submission.pk).state == Submission.State.KEPT


def test_a_damaged_mirror_costs_no_submission_no_landing_and_no_run(world: World) -> None:
    run = world.coder()
    submission = world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    landing = world.accepted({"two.py": "two\n"})
    mirror = paths.mirror(world.project)
    no_objects(mirror.path)
    with pytest.raises(HostTrouble, match="whole again"):
        submissions.keep(submission, run)
    submissions.keep(submission, run)
    submission.refresh_from_db()
    assert submission.state == Submission.State.KEPT
    world.remote.push({"theirs.py": "theirs\n"})
    Project.objects.update(settings={"detect_commands": False, "test_command": "true"})
    world.project.refresh_from_db()
    for turn in range(4):
        if turn == 1:
            empty_packs(mirror.path)
        landings.advance(Landing.objects.select_related("project", "task", "submission").get(), "test-host")
        landing.refresh_from_db()
        if landing.status == Landing.Status.CHECKING and not turn:
            world.verify(landing.sha)
    landing.refresh_from_db()
    assert landing.status == Landing.Status.LANDED, landing.problem
    assert not Conflict.objects.exists()
    other = world.hand_in(again := world.coder(), world.commit(again, {"three.py": "three\n"}))
    held = mirror.path / "refs" / "steroids" / "submissions" / f"{other.pk}.lock"
    held.touch()
    os.utime(held, (LONG_AGO, LONG_AGO))
    with pytest.raises(HostTrouble, match="whole again"):
        submissions.keep(other, again)
    submissions.keep(other, again)
    other.refresh_from_db()
    assert other.state == Submission.State.KEPT


def test_a_lock_that_no_git_holds_any_more_does_not_stop_the_next_one(world: World) -> None:
    mirror = paths.mirror(world.project)
    world.remote.push({"theirs.py": "theirs\n"})
    held = mirror.path / "refs" / "steroids" / "target" / "main.lock"
    held.touch()
    os.utime(held, (recently := time.time() - 2 * LOCK_YOUNG, recently))
    words = ["git", "-C", str(mirror.path), "cat-file", "--batch"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE):
        with pytest.raises(HostTrouble, match="main.lock"):
            mirror.fetch_target()
        assert held.exists()  # that one may hold it
    for age in (2 * LOCK_YOUNG, -3600):  # after it was left, the clock stepped back
        held.touch()
        os.utime(held, (when := time.time() - age, when))
        world.remote.push({f"{age}.py": "theirs\n"})
        assert mirror.fetch_target() == world.remote.head()
        assert not held.exists()


def test_a_push_leaves_the_mirror_at_the_branch_whatever_lock_was_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.hosts.mending.LOCK_YOUNG", 3600.0)  # however long the test takes
    mirror = paths.mirror(world.project)
    run = world.coder()
    sha = world.commit(run, {"one.py": "one\n"})
    submissions.keep(world.hand_in(run, sha), run)
    held = mirror.path / "refs" / "steroids" / "target" / "main.lock"
    held.touch()
    with pytest.raises(HostTrouble, match="main.lock"):
        mirror.push(sha)
    assert world.remote.head() == sha  # the remote has it, and whoever lands it asks the remote
    os.utime(held, (LONG_AGO, LONG_AGO))
    mirror.push(sha)
    assert mirror.resolve(mirror.target_ref) == sha
    assert not held.exists()


def test_trouble_of_this_host_is_not_the_remotes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = paths.mirror(world.project)
    world.remote.push({"theirs.py": "theirs\n"})
    held = mirror.path / "refs" / "steroids" / "target" / "main.lock"
    held.touch()
    monkeypatch.setattr("agents.hosts.mending.LOCK_YOUNG", 3600.0)  # however long the test takes
    with pytest.raises(HostTrouble, match="main.lock"):
        mirror.fetch_target()
    assert held.exists()  # somebody may hold it just now
    run = create_run(world.task(), status=Run.Status.STARTING)
    with Reconciler() as host:
        host._start(run)
    run.refresh_from_db()
    assert (run.status, run.outcome) == ("ended", "stopped")
    assert run.reason.startswith("The repository cannot be worked on by this host.")
    assert Project.objects.get().trouble == ""
    assert Task.objects.get(pk=run.task_id).not_before is not None
    shutil.rmtree(world.remote.path)
    with pytest.raises(Unreachable) as error:
        over_network(mirror.path, mirror.network, mirror.url, "fetch", mirror.url)
    assert not isinstance(error.value, HostTrouble)

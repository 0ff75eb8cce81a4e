"""A host and the folders of its runs: whatever agents make of theirs, no turn and no other run is held up."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from agents.hosts import agent_command, outcomes, paths, processes, slow_work, starting, submissions
from agents.hosts import reconciler as hosts
from agents.hosts.git.commands import GitError
from agents.hosts.reconciler import Reconciler
from agents.loop import bell, run_ends
from agents.models import Output, ProviderPause, Run, token_hash
from agents.money import metering
from tests.agents.world import World, at_once, make_world, write  # noqa: F401
from tests.factories import create_agent, create_host, create_run

pytestmark = pytest.mark.django_db(transaction=True)

FILES = ["closing", "context.json", "copied", "exit.json", "lease", "output.log", "pid", "stop"]
LEFT = {"steps": [{"name": "agent", "code": 0, "seconds": 1.0, "reason": ""}], "reason": ""}


def spoil_by_pipe(path: Path) -> None:
    os.mkfifo(path)


def spoil_by_folder(path: Path) -> None:
    (path / "in" / "it").mkdir(parents=True)


def spoil_by_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def spoil_by_dangling_link(path: Path) -> None:
    path.symlink_to("/nonexistent/file")


SPOILERS: list[Callable[[Path], Any]] = [
    spoil_by_pipe, spoil_by_folder, spoil_by_link, spoil_by_dangling_link,
    lambda path: path.write_bytes(b"\xff\xfe\0{"),
    lambda path: path.write_text("{}"),
    lambda path: path.write_text("[" * 100_000),
    lambda path: path.write_text("1e999"),
    lambda path: path.write_text("-7"),
    lambda path: path.write_text('{"boot_id": "", "pid": 1e999, "start": "x", "steps": [7], "reason": 1}'),
    lambda path: path.write_text('{"reason": "", "steps": [{"name": "a\\u0000b", "code": 1, "seconds": 1}]}'),
    lambda path: path.write_text('{"reason": "", "steps": [{"name": "a", "code": 1e30, "seconds": NaN}]}'),
    lambda path: path.write_bytes(b"9" * 4_000_000),
]  # fmt: skip


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Whoever waits for somebody at the other end of a pipe waits for ever."""

    def give_up(*_: object) -> None:
        pytest.fail(f"it waited for more than {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def held(world: World) -> Iterator[Callable[..., Run]]:
    """A maker of live runs; a process that only sleeps stands for each one's shim."""
    shims = []
    world.duration(beat=0.0, output_copy=0.0, meter=0.0, loop=0.01)
    world.settings.API_URL = "http://127.0.0.1:1"

    def make(*, has_clone: bool = True, **kwargs: Any) -> Run:
        if has_clone:
            run = world.coder(**kwargs)
        else:
            run = create_run(world.task(), host=create_host(), **kwargs)
            paths.run_folder(run.pk).mkdir(parents=True)
        shims.append(subprocess.Popen(["sleep", "600"]))
        folder = paths.run_folder(run.pk)
        processes.write_identity(folder / "pid", processes.identity(shims[-1].pid))
        processes.write_json(folder / "context.json", {"url": "http://127.0.0.1:2"})
        processes.write_json(folder / "job.json", {})
        (folder / "output.log").write_text("It works.\n")
        return run

    yield make
    for shim in shims:
        shim.kill()
        shim.wait()


def end_shim(run: Run, left: object = LEFT) -> None:
    """Its process has ended by itself."""
    who = processes.read_identity(paths.run_folder(run.pk) / "pid")
    assert who is not None
    processes.write_json(paths.run_folder(run.pk) / "exit.json", left)
    os.kill(who.pid, signal.SIGKILL)
    assert processes.is_gone_within(who, 30)


def replace(path: Path, spoil: Callable[[Path], object]) -> None:
    paths.remove(path)
    spoil(path)


def test_a_shim_that_ends_while_its_host_looks_was_not_killed(
    held: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host had read that there was no last word yet, and then found nobody alive."""
    run, read = held(), starting.exit_of

    def ends_meanwhile(folder: Path) -> object:
        found = read(folder)
        if found is None:
            end_shim(run)
        return found

    with Reconciler() as host:
        with monkeypatch.context() as patched:
            patched.setattr(starting, "exit_of", ends_meanwhile)
            host.step()
        host.step()
    run.refresh_from_db()
    assert (run.status, run.outcome != "lost") == ("ended", True), run.reason


def test_no_file_in_a_runs_folder_stops_the_host(held: Callable[..., Run], world: World, caplog: Any) -> None:
    """One agent's `echo '{}' > "$STEROIDS_CONTEXT"` stalled every project of the host."""
    sound = held()
    for name in FILES:
        world.settings.API_URL = f"http://127.0.0.1:1/{name}"
        for spoil in SPOILERS:
            status = Run.Status.CLOSING if name == "closing" else Run.Status.RUNNING
            run = held(has_clone=False, status=status)
            replace(paths.run_folder(run.pk) / name, spoil)
        Run.objects.update(lease_until=None)
        with within(120), Reconciler() as host:
            host.step()
            host.step()
        assert not Run.objects.live().filter(lease_until=None).exists(), f"{name} held up everybody"
        context = json.loads((paths.run_folder(sound.pk) / "context.json").read_text())
        assert context["url"] == world.settings.API_URL
        Run.objects.exclude(pk=sound.pk).update(
            status=Run.Status.ENDED, outcome="lost", ended_at=timezone.now()
        )
    assert "Traceback" not in caplog.text
    assert Output.objects.filter(run=sound).get().text == "It works.\n"


def test_a_run_that_left_anything_ends_all_the_same(
    held: Callable[..., Run], world: World, caplog: Any
) -> None:
    for name in ("context.json", "copied", "exit.json", "output.log", "lease", "clone"):
        runs = [held(has_clone=False, base_sha=world.remote.first) for _ in SPOILERS]
        for run, spoil in zip(runs, SPOILERS, strict=True):
            end_shim(run)
            replace(paths.run_folder(run.pk) / name, spoil)
        with within(60), Reconciler() as host:
            host.step()
        for run in runs:
            run.refresh_from_db()
            assert run.status == Run.Status.ENDED, f"{name} keeps its seat"
            assert not os.path.lexists(paths.run_folder(run.pk) / "context.json")
    assert "Traceback" not in caplog.text


def test_a_log_of_another_kind_is_read_by_nobody(held: Callable[..., Run], tmp_path: Path) -> None:
    run = held()
    log = paths.run_folder(run.pk) / "output.log"
    for spoil in (spoil_by_pipe, spoil_by_folder, spoil_by_link, spoil_by_dangling_link):
        replace(log, spoil)
        with within(60):
            outcomes.copy_rest(run)
            assert outcomes.tail_of(run) == b""
            metering.finish(run)
    assert not Output.objects.filter(run=run).exists()
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("lease", "stop", "prompt.md"):
        os.mkfifo(folder / name)
        os.mkfifo(folder / f"{name}.new")
    with within(60):
        starting.renew_lease(folder)
        agent_command.write_private(folder / "stop", "cost")
        agent_command.write_private(folder / "prompt.md", "Work.")
    assert processes.read_number(folder / "lease") > 0
    assert processes.read_small(folder / "stop") == b"cost"


def test_two_threads_may_renew_a_lease_at_once(tmp_path: Path) -> None:
    def renew() -> None:
        for _ in range(30):
            starting.renew_lease(tmp_path)

    at_once(*[renew] * 4)
    assert [path.name for path in tmp_path.iterdir()] == ["lease"]


def test_a_folder_is_made_anew_although_its_lease_is_renewed_meanwhile(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path
    folder = tmp_path / "trials" / "14"
    (folder / "env").mkdir(parents=True)
    over = threading.Event()

    def beat() -> None:
        while not over.is_set():
            starting.renew_lease(folder)

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        for _ in range(30):
            for number in range(5):
                (folder / "env" / str(number)).write_text("")
            paths.make_anew(folder)
            assert {path.name.partition(".")[0] for path in folder.iterdir()} <= {"lease"}
            (folder / "env").mkdir()
    finally:
        over.set()
        beating.join()
    assert list((tmp_path / "going").iterdir()) == []


def test_the_token_is_over_before_what_is_left_is_read(
    held: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lives on could hand in for as long as cleaning up fails."""
    seen = []
    monkeypatch.setattr(
        submissions, "salvage", lambda run: seen.append(Run.objects.get(pk=run.pk).token_hash) or ""
    )
    ended, killed = held(token_hash=token_hash("one")), held(token_hash=token_hash("two"))
    end_shim(ended)
    end_shim(killed)
    (paths.run_folder(killed.pk) / "exit.json").unlink()
    with Reconciler() as host:
        host.step()
    assert seen == [None, None]
    assert set(Run.objects.values_list("status", "outcome")) == {("ended", "nothing"), ("ended", "lost")}


def test_a_run_that_can_never_be_ended_is_lost_in_the_end(
    held: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, long_ago = held(), held(started_at=timezone.now() - timedelta(days=3))
    errors: list[Exception] = [OperationalError("database is locked")] * 20 + [OSError(28, "no space")] * 5

    def finish(*_: object) -> None:
        raise errors.pop() if errors else ValueError("a poisoned\0 folder")

    monkeypatch.setattr(outcomes, "finish", finish)
    end_shim(run)
    deadline = time.monotonic() + 120
    with Reconciler() as host:
        while errors:
            host.step()
            assert Run.objects.get(pk=run.pk).status == "running", "the host's own trouble is not the run's"
            assert time.monotonic() < deadline
        end_shim(long_ago)
        turns = 0
        while Run.objects.get(pk=run.pk).status == "running":
            host.step()
            turns += 1
            assert time.monotonic() < deadline
    run.refresh_from_db()
    assert (run.status, run.outcome, run.is_counted) == ("ended", "lost", False)
    assert run.reason == "What it left could not be read. ValueError: a poisoned folder"
    assert turns >= slow_work.FAILED_TURNS_MAX - 1
    assert Run.objects.get(pk=long_ago.pk).outcome == "lost"


def test_leases_are_prolonged_however_long_a_turn_takes(held: Callable[..., Run], world: World) -> None:
    world.duration(beat=0.05)
    run = held()
    lease = paths.run_folder(run.pk) / "lease"
    with Reconciler(threads=True):
        seen = set()
        deadline = time.monotonic() + 120
        while len(seen) < 4:  # and nobody takes a step
            seen.add((lease.read_text(), Run.objects.get(pk=run.pk).lease_until))
            assert time.monotonic() < deadline
            time.sleep(0.02)
    last = lease.read_text()
    time.sleep(0.2)
    assert lease.read_text() == last
    assert not [thread for thread in threading.enumerate() if thread.name == "beat"]


def test_a_run_that_a_killed_process_was_starting_is_begun_anew_at_once(world: World) -> None:
    host = create_host(hosts.host_name())
    now = timezone.now()
    left, held, mute = (
        create_run(world.task(), status=status, host=host, started_at=now)
        for status in (Run.Status.STARTING, Run.Status.STARTING, Run.Status.RUNNING)
    )  # the shim of the last one could not even write its number, on a full disk
    folder = paths.run_folder(held.pk)
    folder.mkdir(parents=True)
    marks = os.environ | {"STEROIDS_RUN": str(held.pk), "STEROIDS_CONTEXT": f"{folder}/context.json"}
    with subprocess.Popen(["sleep", "60"], env=marks) as shim:  # was started, and has not said so yet
        with Reconciler() as one:
            one.step()
        shim.kill()
    for run in (left, held, mute):
        run.refresh_from_db()
    assert (mute.status, mute.outcome) == ("ended", "lost")
    assert (left.status, left.outcome) == ("ended", "stopped")
    assert left.reason == "Host test-host gave up while it was starting."
    assert held.status == "starting"


def test_a_run_that_a_host_cannot_begin_is_given_back_at_once(world: World, monkeypatch: Any) -> None:
    """On a full disk a start fails, and so may the row that says so: the run kept its seat for a minute."""
    world.duration(backoff_first=60)
    first, second = (create_run(world.task(), "verifier", status="queued") for _ in range(2))

    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(paths, "make_anew", full)
    with Reconciler() as host:
        end = run_ends.end

        def refuse(run: Run, *words: Any, **more: Any) -> Any:
            if run.pk == second.pk:
                raise OperationalError("database or disk is full")
            return end(run, *words, **more)

        with monkeypatch.context() as patched:
            patched.setattr(run_ends, "end", refuse)
            host.step()
        for run, status in ((first, "ended"), (second, "starting")):
            run.refresh_from_db()
            assert run.status == status
        host.step()
    second.refresh_from_db()
    assert first.outcome == "stopped"
    assert first.reason == "Host test-host could not begin it: No space left on device."
    assert first.task.not_before > timezone.now()
    assert (second.status, second.outcome) == ("ended", "stopped")


def test_an_agent_whose_program_is_not_there_rests_and_its_task_has_not_failed(world: World) -> None:
    agent = create_agent("coder", settings={"argv": ["no-such-agent", "{prompt}"]})
    run = create_run(world.task(), "coder", agent=agent, status="queued")
    with Reconciler() as host:
        host.step()
    run.refresh_from_db()
    said = "The program 'no-such-agent' is not on this host. Install it, or correct the agent's settings."
    assert (run.status, run.outcome, run.is_counted, run.reason) == ("ended", "provider", False, said)
    pause = ProviderPause.objects.get(name=agent.account)
    assert (pause.kind, pause.reason) == ("start", f"Its command could not be started: {said}")
    assert pause.until > timezone.now()


def test_a_host_without_room_takes_no_run_and_says_that_it_is_full(world: World, monkeypatch: Any) -> None:
    """Another host may have room; and once there is some here, the run begins with the next turn."""
    run = create_run(world.task(), "verifier", status="queued")
    begun: list[int] = []
    monkeypatch.setattr(starting, "start", lambda run: begun.append(run.pk))
    there = {"f_bavail": 10**6, "f_frsize": 1024**2, "f_files": 10**7, "f_favail": 10**6}
    with Reconciler() as host:
        for lack in ({"f_bavail": 1}, {"f_favail": 1000}):
            with monkeypatch.context() as full:
                full.setattr(os, "statvfs", lambda path, lack=lack: SimpleNamespace(**there | lack))
                host.step()
                assert host.row.state(is_alive=True) == "full", lack
        assert begun == []
        host.step()
    assert begun == [run.pk]


def test_a_run_that_filled_the_disk_is_ended_with_what_was_held_back_of_it(
    held: Callable[..., Run], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database had no room to note the end, so what the run had written was never removed."""
    run = held(status="running")
    create_run(world.task(), "verifier", status="queued")
    monkeypatch.setattr(starting, "start", lambda run: None)
    reserve, ended = paths.folder("host") / "reserve", run_ends.end_token
    left = {"f_bavail": 0, "f_frsize": 1024**2, "f_files": 0}

    def end_token(run: Run) -> None:
        if reserve.exists():
            raise OperationalError("database or disk is full")
        ended(run)

    monkeypatch.setattr(run_ends, "end_token", end_token)
    with Reconciler() as host:
        host.step()
        assert sum(file.stat().st_size for file in reserve.iterdir()) == 4 * 1024**2
        monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**left))
        end_shim(run)
        (paths.run_folder(run.pk) / "exit.json").unlink()
        host.step()
        run.refresh_from_db()
        said = "The disk of this host was full, so its shim could not say how it ended."
        assert (run.outcome, run.reason, reserve.exists()) == ("lost", said, False)
        assert not (paths.run_folder(run.pk) / "clone").exists()


def test_a_full_disk_asks_nobody_and_a_commit_that_is_gone_does(world: World, monkeypatch: Any) -> None:
    """However often it is tried, the one comes right with the disk, and the other by no host's patience."""
    words = ["fatal: bad object 1234567", "error: unable to write file a.py: No space left on device"]
    runs = [create_run(world.task(), "coder", status="queued") for _ in words]
    said = {run.pk: GitError("git checkout", text) for run, text in zip(runs, words, strict=True)}

    def fail(run: Run) -> None:
        raise said[run.pk]

    monkeypatch.setattr(starting, "start", fail)
    with Reconciler() as host:
        host.step()
    assert [Run.objects.get(pk=run.pk).outcome for run in runs] == ["refused", "stopped"]


def test_slow_work_on_one_run_holds_no_other_run_up(
    held: Callable[..., Run], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of 390 MB blocked the loop, and three other runs were lost."""
    slow, other = held(), held()
    may_end, finish, keep = threading.Event(), outcomes.finish, submissions.keep
    monkeypatch.setattr(outcomes, "finish", lambda *words: may_end.wait(120) and finish(*words))
    monkeypatch.setattr(submissions, "keep", lambda *words: may_end.wait(120) and keep(*words))
    handed = held()
    submission = world.hand_in(handed, world.commit(handed, {"a.py": "a\n"}))
    end_shim(slow)
    deadline = time.monotonic() + 120
    with Reconciler(threads=True) as host:
        for _ in range(5):
            host.step()
        assert Output.objects.filter(run=other).exists()
        assert Run.objects.get(pk=slow.pk).status == "running"
        may_end.set()
        while Run.objects.get(pk=slow.pk).status == "running" or submission.state == "received":
            host.wait(5)
            host.step()
            submission.refresh_from_db()
            assert time.monotonic() < deadline
    assert submission.state == "kept"


def test_an_agent_whose_api_was_away_has_not_failed(held: Callable[..., Run]) -> None:
    """It ended with 3, as `steroids` did, and counted as a run without a result."""
    for said, outcome, counts in (
        ("steroids: The server cannot be reached: refused.\n", "lost", False),
        ("Something else.\n", "crash", True),
    ):
        run = held()
        (paths.run_folder(run.pk) / "output.log").write_text(said)
        end_shim(run, {"steps": [{"name": "agent", "code": 3, "seconds": 1.0, "reason": ""}], "reason": ""})
        with Reconciler() as host:
            host.step()
        run.refresh_from_db()
        assert (run.outcome, run.is_counted) == (outcome, counts)
        assert (run.reason == "The agent ended with 3: Something else.") == counts


def test_salvage_reads_a_branch_that_git_packed(world: World) -> None:
    run = world.coder()
    made = world.commit(run, {"half.py": "half\n"})
    clone = paths.clone_of(run)
    subprocess.run(["git", "-C", str(clone), "pack-refs", "--all", "--prune"], check=True)
    branch = clone / ".git" / "refs" / "heads" / "steroids" / run.task.ref
    assert not branch.exists()
    assert submissions.salvage(run) == made
    branch.parent.mkdir(parents=True, exist_ok=True)
    for spoil in SPOILERS:
        replace(branch, spoil)
        write(clone, {"rest.py": "rest\n"})
        with within(60):
            saved = submissions.salvage(run)
        assert world.mirror.read(saved, "rest.py", 100) == "rest\n"


def test_where_many_runs_are_at_work_one_pass_serves_all_that_rings_for_a_moment(
    held: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "APART", 0.5)
    monkeypatch.setattr(hosts, "APART_MAX", 1.5)
    with Reconciler() as host:
        for runs, is_heard_at_once in ((1, True), (4, False)):
            while Run.objects.on_host().count() < runs:
                held()
            host.step()
            later = threading.Timer(0.3, bell.wake)
            later.start()
            bell.wake()
            assert host.wait()
            assert later.is_alive() == is_heard_at_once
            later.join()
            assert host.wait(0.01) == is_heard_at_once

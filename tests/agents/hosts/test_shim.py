"""The shim, started the way a host starts it, on a folder, with real processes in it."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.hosts import processes
from agents.hosts.shims import nursery
from agents.hosts.shims.nursery import NURSERY, Nursery

SHIMS = Path(__file__).resolve().parents[3] / "agents" / "hosts" / "shims"
MARK = "STEROIDS_SHIM_TEST"
LIMITS = {
    "silence": 300.0, "wall": 300.0, "orphan": 300.0, "grace": 0.3, "bytes": 1_000_000,
    "processes": 1000, "memory": 1e12, "disk": 1e12, "files": 1e9,
}  # fmt: skip
PATIENCE = 60.0

# Two forks and a session of its own: neither the step's process group nor its parent knows it any more.
DAEMON = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
open("daemon", "w").write(str(os.getpid()))
time.sleep(60)
"""
DAEMONISE = f"{sys.executable} -I -S -c '{DAEMON}'; while ! test -s daemon; do sleep 0.01; done"


def until(true: Callable[[], object], what: str) -> None:
    """Wait for it."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE:g} s"
        time.sleep(0.01)


class Held:
    """The folder of one run, and the shim that holds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.environment = {"PATH": os.environ["PATH"], MARK: str(folder)}
        self.limits: dict[str, float] = dict(LIMITS)
        self.steps: list[dict[str, Any]] = []

    def add(self, script: str, **more: Any) -> "Held":
        """A step that the shell runs."""
        return self.add_argv(["/bin/sh", "-c", script], **more)

    def add_argv(self, argv: list[str], **more: Any) -> "Held":
        step = {
            "name": f"step {len(self.steps) + 1}", "argv": argv, "cwd": str(self.folder),
            "env": self.environment, "timeout": 300.0, "stdin": "",
        }  # fmt: skip
        self.steps.append(step | more)
        return self

    def lease(self, age: float = 0.0) -> None:
        """Renew it whole, as a host does: half a lease is none."""
        fresh = self.folder / "lease.new"
        fresh.write_text(f"{processes.boottime() - age:.3f}")
        fresh.replace(self.folder / "lease")

    def prepare(self, *, lease: bool = True, **limits: float) -> "Held":
        """All that a shim finds in its folder."""
        job = {"steps": self.steps, "limits": self.limits | limits, "bell": str(self.folder / "bell")}
        (self.folder / "job.json").write_text(json.dumps(job))
        if lease:
            self.lease()
        return self

    def start(self, *, lease: bool = True, **limits: float) -> "Held":
        NURSERY.start_shim(self.prepare(lease=lease, **limits).folder)
        return self

    @property
    def shim(self) -> processes.Identity:
        path = self.folder / "pid"
        until(path.exists, "the shim's pid file")
        who = processes.read_identity(path)
        assert who is not None
        return who

    def has(self, name: str) -> Path:
        """A file that a step writes, once it is there with text in it."""
        path = self.folder / name
        until(lambda: path.exists() and path.read_text(), f"{name}")
        return path

    def pid_in(self, name: str) -> processes.Identity:
        """The process whose number a step wrote."""
        return processes.identity(int(self.has(name).read_text()))

    def wait(self) -> dict[str, Any]:
        """What the shim wrote at its end."""
        until((self.folder / "exit.json").exists, "exit.json")
        left: dict[str, Any] = json.loads((self.folder / "exit.json").read_text())
        until(lambda: not processes.is_alive(self.shim), "the shim's end")
        return left

    def last(self) -> dict[str, Any]:
        """The last step that ran, with the reason of the whole."""
        left = self.wait()
        assert left["steps"][-1]["reason"] == left["reason"]
        return dict(left["steps"][-1])

    @property
    def log(self) -> str:
        return (self.folder / "output.log").read_text()

    def is_locked(self) -> bool:
        with (self.folder / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def end(self) -> None:
        """Leave nothing behind, whatever the test did."""
        left = processes.marked(MARK, str(self.folder))
        assert processes.end_all(left, 0)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    run = Held(tmp_path / "run")
    yield run
    run.end()


def codes(left: dict[str, Any]) -> list[int | None]:
    return [step["code"] for step in left["steps"]]


# --- Steps ------------------------------------------------------------------------------------------------


def test_it_runs_the_steps_in_order(held: Held) -> None:
    left = held.add("echo one").add("echo two; echo more >&2").add("echo three").start().wait()
    assert codes(left) == [0, 0, 0]
    assert left["reason"] == ""
    assert held.log == "one\ntwo\nmore\nthree\n"


def test_it_stops_at_the_first_step_that_fails(held: Held) -> None:
    left = held.add("echo one").add("exit 7").add("echo three").start().wait()
    assert codes(left) == [0, 7]
    assert [step["name"] for step in left["steps"]] == ["step 1", "step 2"]
    assert held.log == "one\n"


def test_it_tells_a_signal_from_an_exit_code(held: Held) -> None:
    assert held.add("kill -SEGV $$").start().last()["code"] == -signal.SIGSEGV


def test_it_measures_how_long_a_step_took(held: Held) -> None:
    assert held.add("sleep 0.2").start().last()["seconds"] >= 0.2


def test_it_ends_at_once_where_there_is_nothing_to_do(held: Held) -> None:
    assert held.start().wait() == {"steps": [], "reason": ""}


def test_it_refuses_a_program_that_is_not_there(held: Held) -> None:
    left = held.add_argv(["/no/such/agent"]).add("echo never").start().wait()
    assert codes(left) == [None]
    assert left["reason"] == "refused"
    assert held.log == "cannot start /no/such/agent: No such file or directory\n"


def test_it_refuses_a_step_whose_input_is_not_there(held: Held) -> None:
    held.add("echo never", stdin=str(held.folder / "gone.md")).start()
    until(lambda: not processes.is_alive(held.shim), "the shim's end")
    left = json.loads((held.folder / "exit.json").read_text())
    assert (left["reason"], codes(left)) == ("refused", [None])


def test_it_gives_the_step_its_input(held: Held) -> None:
    prompt = held.folder / "prompt.md"
    prompt.write_text("Do this.\n")
    held.add("cat", stdin=str(prompt)).add("cat; echo nothing").start().wait()
    assert held.log == "Do this.\nnothing\n"


def test_it_runs_the_step_in_its_folder(held: Held) -> None:
    (held.folder / "clone").mkdir()
    held.add("pwd", cwd=str(held.folder / "clone")).start().wait()
    assert held.log == f"{held.folder / 'clone'}\n"


def test_the_step_has_exactly_the_environment_it_was_given(held: Held) -> None:
    held.environment = {MARK: str(held.folder), "GIVEN": "a value"}
    held.add_argv(["/bin/cat", "/proc/self/environ"]).start().wait()
    assert sorted(held.log.split("\0")) == ["", "GIVEN=a value", f"{MARK}={held.folder}"]


def test_the_step_inherits_no_open_file_but_its_three_and_the_lock(held: Held) -> None:
    with (held.folder / "secret").open("w") as secret:
        held.add_argv(["/bin/ls", "-l", "/proc/self/fd"])
        (held.folder / "job.json").write_text(
            json.dumps({"steps": held.steps, "limits": LIMITS, "bell": str(held.folder / "bell")})
        )
        held.lease()
        os.set_inheritable(secret.fileno(), True)
        Nursery().start_shim(held.folder)
        held.wait()
    open_files = [line.split(" -> ")[1] for line in held.log.splitlines() if " -> " in line]
    names = sorted(Path(name).name.partition(":")[0] for name in open_files if not name.startswith("/proc/"))
    assert names == ["lock", "null", "pipe", "pipe"]


def test_what_the_step_writes_is_for_its_owner_only(held: Held) -> None:
    held.add("echo mine > made").start().wait()
    for name in ("made", "output.log", "exit.json", "pid"):
        assert (held.folder / name).stat().st_mode & 0o777 == 0o600


def test_the_step_hears_every_signal_as_a_program_does_that_a_person_starts(held: Held) -> None:
    held.add("grep -E '^Sig(Blk|Ign):' /proc/self/status").start().wait()
    ours = sum(1 << (number - 1) for number in signal.valid_signals())  # the C library keeps two for itself
    assert [int(line.split()[1], 16) & ours for line in held.log.splitlines()] == [0, 0]


def test_the_step_gives_way_to_whoever_else_wants_the_processors(held: Held) -> None:
    held.add("nice; cat /proc/self/autogroup 2>/dev/null || true").start().wait()
    niceness, *group = held.log.split("\n", 1)
    assert int(niceness) == min(os.nice(0) + processes.GIVING_WAY, 19)
    if os.geteuid() == 0:  # the kernel takes a few such wishes a second of anybody else
        assert not group[0] or group[0].rstrip().endswith(f"nice {processes.GIVING_WAY}")


def test_the_step_leaves_no_core_file(held: Held) -> None:
    held.add("ulimit -c").start().wait()
    assert held.log == "0\n"


# --- The shim itself --------------------------------------------------------------------------------------


def test_it_leaves_its_starter_at_once(held: Held) -> None:
    held.add("sleep 300").start()
    assert not (held.folder / "exit.json").exists()
    assert os.getsid(held.shim.pid) != os.getsid(0)


def test_it_writes_who_it_is(held: Held) -> None:
    held.add("sleep 30").start()
    assert processes.is_alive(held.shim)
    assert held.shim == processes.identity(held.shim.pid)


def test_it_rings_once_everything_is_written(held: Held) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.settimeout(PATIENCE)
        bell.bind(str(held.folder / "bell"))
        held.add("true").start()
        assert bell.recv(8) == b"x"
    assert (held.folder / "exit.json").exists()


def test_nobody_needs_to_hear_the_bell(held: Held) -> None:
    assert codes(held.add("true").start().wait()) == [0]


def test_the_lock_is_held_while_the_step_lives(held: Held) -> None:
    held.add("echo up > up; sleep 30").start()
    held.has("up")
    assert held.is_locked()
    (held.folder / "stop").touch()
    held.wait()
    until(lambda: not held.is_locked(), "the lock's release")


def test_a_second_shim_on_the_same_folder_leaves_at_once(held: Held) -> None:
    held.add("echo started >> starts; sleep 30").start()
    held.has("starts")
    first = held.shim
    NURSERY.start_shim(held.folder)
    until(lambda: len(shims_of(held)) == 1, "the second shim's leaving")
    assert held.shim == first
    assert held.has("starts").read_text() == "started\n"
    assert not (held.folder / "exit.json").exists()


def shims_of(held: Held) -> list[int]:
    """Living shims on this folder, the ones that are about to leave included."""
    names = {who.pid: Path(f"/proc/{who.pid}/comm") for who in processes.working_in(held.folder)}
    return [pid for pid, name in names.items() if name.exists() and name.read_text().startswith("shim ")]


def test_the_lock_outlives_a_killed_shim_while_a_daemon_of_the_run_lives(held: Held) -> None:
    """Two agents never share a clone, even if the rows are wrong."""
    held.add(f"{DAEMONISE}; sleep 30").start()
    daemon = held.pid_in("daemon")
    processes.signal_all([held.shim], signal.SIGKILL)
    until(lambda: not processes.is_alive(held.shim), "the shim's end")
    assert processes.is_alive(daemon)
    assert held.is_locked()
    NURSERY.start_shim(held.folder)
    until(lambda: not shims_of(held), "the second shim's leaving")
    assert held.log == ""


def test_a_killed_shim_takes_its_step_with_it(held: Held) -> None:
    held.add("echo $$ > step; exec sleep 60").start()
    step = held.pid_in("step")
    processes.signal_all([held.shim], signal.SIGKILL)
    until(lambda: not processes.is_alive(step), "the step's end")
    assert not (held.folder / "exit.json").exists()


def test_a_killed_shim_takes_its_gate_with_it_before_that_has_said_a_word(held: Held) -> None:
    (held.folder / "job.json").write_text(json.dumps({"steps": [], "limits": held.limits, "gate": {}}))
    script = (
        f"import os, pathlib, sys, time; sys.path.insert(0, {str(SHIMS.parents[2])!r})\n"
        "from agents.hosts.shims import shim\n"
        f"folder = pathlib.Path({str(held.folder)!r})\n"
        "def serve(*words, listening):\n"
        "    (folder / 'gate.pid').write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
        "shim.gate.serve = serve\n"
        "shim.Shim(folder).run()\n"
    )
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", script]) as shim:
        gate = held.pid_in("gate.pid")
        shim.kill()
    until(lambda: not processes.is_alive(gate), "the gate's end")


def test_a_gate_that_cannot_listen_leaves_its_reason_in_the_log(held: Held) -> None:
    (held.folder / "gate").mkdir()
    job = {
        "steps": [],
        "limits": held.limits,
        "gate": {"user": -1, "certificates": {}},
        "bell": str(held.folder / "bell"),
    }
    (held.folder / "job.json").write_text(json.dumps(job))
    held.lease()
    NURSERY.start_shim(held.folder)
    assert held.wait()["steps"] == []
    assert "IsADirectoryError" in held.log


def test_shims_outlive_the_process_that_forked_them_and_the_next_one_forks_on(held: Held) -> None:
    nursery = Nursery()
    held.add("echo up > up; sleep 30").prepare()
    nursery.start_shim(held.folder)
    held.has("up")
    forking = nursery._process
    assert forking
    forking.kill()
    forking.wait()
    second = Held(held.folder.with_name("second"))
    nursery.start_shim(second.add("true").prepare().folder)
    assert codes(second.wait()) == [0]
    assert processes.is_alive(held.shim)
    (held.folder / "stop").touch()
    held.wait()


def test_a_process_that_is_stuck_forks_no_more_and_its_late_answer_misleads_nobody(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    nursery = Nursery()
    nursery.start_shim(held.add("true").prepare().folder)
    stuck = nursery._process
    assert stuck
    stuck.send_signal(signal.SIGSTOP)
    monkeypatch.setattr("agents.hosts.shims.nursery.PATIENCE", 3.0)
    second = Held(held.folder.with_name("second"))
    nursery.start_shim(second.add("true").prepare().folder)
    assert stuck.wait(PATIENCE) == -signal.SIGKILL
    assert codes(second.wait()) == [0]
    with pytest.raises(OSError, match="could not take the run"):
        nursery.start_shim(held.folder.with_name("gone"))


def test_a_run_that_no_shim_can_hold_is_refused_at_once(held: Held) -> None:
    for job in ("{", "[]"):
        held.prepare()
        (held.folder / "job.json").write_text(job)
        with pytest.raises(OSError, match="could not take the run"):
            NURSERY.start_shim(held.folder)
    with pytest.raises(OSError, match="could not take the run"):
        NURSERY.start_shim(held.folder / "gone")


def test_the_process_that_forks_shims_ends_with_whoever_started_it(held: Held) -> None:
    script = (
        f"import os, pathlib, sys; sys.path.insert(0, {str(SHIMS.parents[2])!r})\n"
        "from agents.hosts.shims.nursery import NURSERY\n"
        f"NURSERY.start_shim(pathlib.Path({str(held.add('echo up > up; sleep 30').prepare().folder)!r}))\n"
        "print(NURSERY._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    settings = {"DJANGO_SETTINGS_MODULE": "tests.settings", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup()\n{script}"],
        env=settings, cwd=SHIMS.parents[2], capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    forking = processes.identity(int(done.stdout))
    until(lambda: not processes.is_alive(forking), "its end")
    held.has("up")
    assert processes.is_alive(held.shim)
    (held.folder / "stop").touch()
    held.wait()


def test_a_run_goes_on_whose_starter_was_killed_before_it_heard_the_answer(held: Held) -> None:
    forking = nursery._started()
    assert forking.stdin
    assert forking.stdout
    forking.stdout.close()
    forking.stdin.write(os.fsencode(held.add("true").prepare().folder) + b"\0")
    forking.stdin.close()
    assert codes(held.wait()) == [0]
    assert forking.wait(PATIENCE) == 0


def test_a_signal_for_the_terminal_does_not_reach_it(held: Held) -> None:
    held.add("echo up > up; sleep 0.3").start()
    held.has("up")
    processes.signal_all([held.shim], signal.SIGINT)
    processes.signal_all([held.shim], signal.SIGHUP)
    assert codes(held.wait()) == [0]


# --- Ending a step ----------------------------------------------------------------------------------------


def test_it_ends_a_step_that_says_nothing(held: Held) -> None:
    step = held.add("echo hello; sleep 60").start(silence=0.3).last()
    assert (step["reason"], step["code"]) == ("silent", -signal.SIGTERM)


def test_it_does_not_call_a_step_silent_that_goes_on_talking(held: Held) -> None:
    held.add("for n in 1 2 3 4 5 6 7 8 9; do echo $n; sleep 0.4; done").start(silence=3.0)
    assert held.last()["reason"] == ""


def test_it_ends_a_run_that_takes_too_long_though_it_prints_dots(held: Held) -> None:
    step = held.add("while :; do printf .; sleep 0.05; done").start(wall=2.0).last()
    assert step["reason"] == "wall"
    assert held.log.startswith("...")


def test_the_wall_stands_around_all_steps_together(held: Held) -> None:
    for _ in range(3):
        held.add("sleep 0.5")
    assert held.start(wall=1.0).wait()["reason"] == "wall"


def test_it_ends_a_step_after_its_own_time(held: Held) -> None:
    left = held.add("true").add("sleep 60", timeout=0.2).add("echo never").start().wait()
    assert left["reason"] == "timeout"
    assert codes(left) == [0, -signal.SIGTERM]


def test_it_ends_a_run_that_writes_too_much(held: Held) -> None:
    step = held.add("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done").start(bytes=10_000).last()
    assert step["reason"] == "bytes"


FORGER = """
import fcntl, os
os.write(1, b"said\\n")
def cut(): os.ftruncate(1, 0)
def over():
    fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) & ~os.O_APPEND)
    os.pwrite(1, b"FORGED", 0)
def anew(): open("/proc/self/fd/1", "r+b").truncate(0)
for forge in (cut, over, anew):
    try:
        forge()
    except OSError:
        pass
os.write(1, b"end\\n")
"""


def test_a_step_can_only_add_to_the_log(held: Held) -> None:
    """It could take back what it and the steps before it had said, and people read something else."""
    held.add("echo before").add_argv([sys.executable, "-I", "-S", "-c", FORGER]).start()
    first, second = held.wait()["steps"]
    assert held.log == "before\nsaid\nend\n"
    assert (first["log"], second["log"]) == ([0, 7], [7, 16])


def test_all_that_a_step_prints_is_in_the_log(held: Held) -> None:
    """Also more than a pipe holds, what comes last, and what comes after it was told to end."""
    line = "x" * 99
    many = f"i=0; while test $i -lt 5000; do echo {line}; i=$((i+1)); done"
    held.add(many).add(f"trap '{many}; echo heard; exit 3' TERM; echo > up; while :; do sleep 0.02; done")
    held.start(grace=60.0, bytes=10_000_000)
    held.has("up")
    (held.folder / "stop").touch()
    assert held.last()["code"] == 3
    said = held.log.split()
    assert (said.count(line), said[-1]) == (10_000, "heard")


def test_it_ends_a_step_when_it_is_told_to_stop(held: Held) -> None:
    held.add("echo up > up; sleep 60").add("echo never").start()
    held.has("up")
    (held.folder / "stop").touch()
    left = held.wait()
    assert (left["reason"], codes(left)) == ("stopped", [-signal.SIGTERM])


def test_it_ends_a_step_when_nobody_renews_the_lease(held: Held) -> None:
    step = held.add("while :; do echo busy; sleep 0.05; done").start(orphan=0.5).last()
    assert step["reason"] == "orphan"


def test_it_lets_the_step_live_while_the_lease_is_renewed(held: Held) -> None:
    held.add("sleep 4").start(orphan=3.0)
    while not (held.folder / "exit.json").exists():
        held.lease()
        time.sleep(0.1)
    assert held.last()["reason"] == ""


@pytest.mark.parametrize("lease", [None, "", "yesterday"])
def test_a_lease_that_cannot_be_read_is_none(held: Held, lease: str | None) -> None:
    if lease is not None:
        (held.folder / "lease").write_text(lease)
    assert held.add("sleep 60").start(lease=False, orphan=1.0).last()["reason"] == "orphan"


def test_the_lease_comes_before_every_other_reason(held: Held) -> None:
    """A machine that slept must not go on working, nor blame the agent for the time it slept."""
    held.lease(age=100.0)
    (held.folder / "stop").touch()
    assert (
        held.add("sleep 60").start(lease=False, orphan=30.0, wall=0.0, silence=0.0).last()["reason"]
        == "orphan"
    )


def test_it_gives_the_step_a_moment_to_end_by_itself(held: Held) -> None:
    script = "trap 'echo saved > saved; exit 3' TERM; echo up > up; while :; do sleep 0.02; done"
    held.add(script).start(grace=60.0)
    held.has("up")
    (held.folder / "stop").touch()
    assert held.last()["code"] == 3
    assert held.has("saved")


STUBBORN = "trap '' TERM; echo $$ > stubborn; while :; do sleep 0.05; done"


def test_it_kills_a_step_that_ignores_being_told_to_end(held: Held) -> None:
    held.add(STUBBORN).start()
    stubborn = held.pid_in("stubborn")
    (held.folder / "stop").touch()
    step = held.last()
    assert not processes.is_alive(stubborn)
    assert step["seconds"] >= LIMITS["grace"]


def test_a_step_that_was_killed_did_not_end_well(held: Held) -> None:
    held.add(STUBBORN).start()
    held.has("stubborn")
    (held.folder / "stop").touch()
    assert held.last()["code"] == -signal.SIGKILL


@pytest.mark.parametrize("ending", ["true", "exit 1", "touch stop; sleep 60"])
def test_a_daemon_that_left_the_step_is_gone_with_it(held: Held, ending: str) -> None:
    held.add(f"{DAEMONISE}; {ending}").start().wait()
    assert held.has("daemon")
    assert processes.marked(MARK, str(held.folder)) == []


def test_a_background_process_of_one_step_does_not_see_the_next(held: Held) -> None:
    held.add("sleep 60 & echo $! > background").add("kill -0 $(cat background) || echo gone").start()
    assert codes(held.wait()) == [0, 0]
    assert held.log.endswith("gone\n")


def test_a_crowd_of_stubborn_daemons_is_gone_as_well(held: Held) -> None:
    crowd = " ".join(f"(trap '' TERM; exec setsid sleep 6{n}) &" for n in range(12))
    held.add(f"{crowd} touch stop; sleep 60").start().wait()
    assert processes.marked(MARK, str(held.folder)) == []

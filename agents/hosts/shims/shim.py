"""The shim: one small process that holds one run, so that nothing else has to live as long as the agent.

It is forked (forking.py) for one folder. It leaves its starter at once, takes the folder's lock (which every
process inherits that no sandbox holds), runs the steps of `job.json` one after the other until one fails, and
writes `exit.json` as its last act but one; the last is to ring the host's loop.

A sandboxed step is started by bubblewrap; its gate (agents/inside/gate.py) runs beside it.

The shim ends the step if nobody has renewed the lease for too long, if the run is silent or lasts too long,
if it writes too much or takes more processes, memory or disk than it may, or if the file `stop` appears. It
sends TERM, waits a moment, and sends KILL, which is all that a step gets that takes too much: it would go on
taking. Daemons that left the process group come back to the shim as their subreaper and are killed too. If
the shim itself is killed, the kernel kills the step with it. The shim writes the log, so that a step can add
to it and change nothing that is there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).parents[3]))
from agents.hosts import processes  # noqa: E402  (a bare Python does not have the project on its path)
from agents.hosts.shims.weight import TAKING_TOO_MUCH, Weight, children, descendants  # noqa: E402
from agents.inside import gate  # noqa: E402

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
# Seconds between looks at the file `stop` and the size of the log; they grow while nothing is written.
POLL, POLL_MAX = 0.05, 0.25
READY = "{ready}"  # in a step's command: the descriptor by which its sandbox says that it is set up
GATE_SECONDS = 20.0
PIPE_SIZE = 1024 * 1024  # of a step's output
GATHERED = 0.01  # seconds between two looks into it
WEIGHED_EVERY = 0.5  # seconds between looks at the lease, the clocks, processes and memory
HELD, NOT_HELD = b"+", b"-"
DESCRIPTORS = 64  # more than a shim ever opens


def die_with_shim() -> None:
    """Tie the child's life to the shim's; called in the child before it becomes a step or the gate."""
    processes.prctl(processes.PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def begin_as_step() -> None:
    """Make the child what a person would start; called in it before it becomes a step.

    The shim ignores signals of a terminal, and a host that was started in the background may ignore more. A
    child inherits that, and then neither Ctrl+C nor a trap works in it, which tests may be about.
    """
    die_with_shim()
    processes.give_way()
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


class LogPipe:
    """What a step prints. It comes by a pipe, so the step can add to the log and take nothing back."""

    def __init__(self, log: int) -> None:
        self.log = log
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        with contextlib.suppress(OSError):  # a user has only so many pipes of this size
            fcntl.fcntl(self.read_end, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        self.is_open = True

    def pour(self) -> None:
        """Carry to the log what is in the pipe. What a full disk does not hold is lost."""
        with contextlib.suppress(OSError):
            chunk = os.read(self.read_end, PIPE_SIZE)
            self.is_open = bool(chunk)
            while chunk:
                chunk = chunk[os.write(self.log, chunk) :]

    def close(self) -> None:
        """Carry over what is left. Whoever may still hold the pipe writes to nobody."""
        self.pour()
        os.close(self.read_end)


@contextlib.contextmanager
def ending_of(child: subprocess.Popen[bytes], output: LogPipe) -> Iterator[Callable[[float], bool]]:
    """Yield a function that waits up to so many seconds for the child's end and says whether it came.

    Meanwhile it carries the child's output to the log. The kernel reports the end; Popen would ask a hundred
    times a second, which takes a hundredth of a core.
    """
    try:
        told = os.pidfd_open(child.pid)
    except (OSError, AttributeError):  # an old kernel, or no Linux
        told = -1

    def ended(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while child.poll() is None and (left := until - time.monotonic()) > 0:
            watched = [told] if told >= 0 else []
            pipes = [output.read_end] if output.is_open else []
            if pipes and output.read_end in select.select(watched + pipes, [], [], left)[0]:
                output.pour()
                time.sleep(GATHERED)
            elif not pipes:
                select.select(watched, [], [], left)
        return child.returncode is not None

    try:
        yield ended
    finally:
        if told >= 0:
            os.close(told)


def is_worth_another_try(result: dict[str, Any]) -> bool:
    """Whether a step failed as tests do: by its own exit code, not for lack of a program or of time."""
    code = result["code"]
    return not result["reason"] and code is not None and code > 0 and code not in {126, 127}


def never_ran(step: dict[str, Any]) -> dict[str, Any]:
    return {"name": step["name"], "code": None, "seconds": 0.0, "reason": "refused", "log": [0, 0]}


class Shim:
    """Holds one run, given by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stop_file = folder, folder / "stop"
        self.job: dict[str, Any] = json.loads((folder / "job.json").read_text())
        self.limits: dict[str, float] = self.job["limits"]
        self.started = time.monotonic()
        self.log = os.open(folder / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        self.gate = 0  # its pid
        written = [str(folder / name) for name in ("clone", "home", "tmp", "cache", "env", "reports")]
        self.weight = Weight(written, self.limits)

    def takes_the_run(self) -> bool:
        """Take the folder's lock and write down our process; return False if another shim holds the lock."""
        if not processes.took(self.lock):
            return False
        processes.write_identity(self.folder / "pid", processes.identity())
        return True

    def run(self) -> None:
        """Run the steps until one fails, write `exit.json`, and ring the host's loop."""
        done: list[dict[str, Any]] = []
        reason = ""
        self.open_gate()
        for step in self.job["steps"]:
            result = self.run_step(step)
            done.append(result)
            if "again" in step and is_worth_another_try(result):
                second = {**step, "name": f"{step['name']} again", "env": {**step["env"], **step["again"]}}
                result = self.run_step(second)
                done.append(result)
            reason = result["reason"]
            if reason or result["code"] != 0:
                break
        self.close_gate()
        left = {"steps": done, "reason": reason}
        processes.write_json(
            self.folder / "exit.json", left, onto_disk=True
        )  # so that the result survives a power cut
        self.ring()

    def run_step(self, step: dict[str, Any]) -> dict[str, Any]:
        """Run one step; return its exit code (negative for a signal, None if it never ran) and more.

        `log` in the result is where its output begins and ends in the run's log, in bytes; `reason` says why
        it was ended early.
        """
        begun, first = time.monotonic(), os.fstat(self.log).st_size
        ready, said = os.pipe()
        output = LogPipe(self.log)
        try:
            child = self.start(step, said, output.write_end)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            why = getattr(error, "strerror", None) or error
            os.write(self.log, f"cannot start {step['argv'][0]}: {why}\n".encode(errors="replace"))
            os.close(ready)
            output.close()
            return never_ran(step)
        finally:
            os.close(said)
            os.close(output.write_end)
        with ending_of(child, output) as ended:
            reason = self.watch(ended, begun + float(step["timeout"]))
            grows = reason in TAKING_TOO_MUCH
            self.end(
                child, ended, is_enclosed="enclosed" in step, grace=0.0 if grows else self.limits["grace"]
            )
        output.close()
        with os.fdopen(ready, "rb") as pipe:
            stood = pipe.read(1) != b""
        if "enclosed" in step and not stood and not reason:
            return never_ran(step)
        return {
            "name": step["name"],
            "code": child.returncode,
            "seconds": round(time.monotonic() - begun, 3),
            "reason": reason,
            "log": [first, os.fstat(self.log).st_size],
        }

    def start(self, step: dict[str, Any], said: int, output: int) -> subprocess.Popen[bytes]:
        """Start the step's process in a session of its own; its sandbox writes to `said` once it is set up.

        Raises OSError.
        """
        stdin = os.open(step.get("stdin") or os.devnull, os.O_RDONLY)
        try:
            return subprocess.Popen(
                [str(said) if word == READY else word for word in step["argv"]],
                cwd=step["cwd"],
                env=step["env"],
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(said,) if "enclosed" in step else (self.lock,),
                umask=0o077,
                preexec_fn=begin_as_step,
            )
        finally:
            os.close(stdin)

    def watch(self, ended: Callable[[float], bool], deadline: float) -> str:
        """Wait for the step's end; return the reason to end it early, or "" if it has ended."""
        size, changed, weighed, pause = -1, time.monotonic(), 0.0, POLL
        while not ended(pause):
            now, awake = time.monotonic(), processes.boottime()
            grown, pause = os.fstat(self.log).st_size, min(pause * 2, POLL_MAX)
            if grown != size:
                size, changed, pause = grown, now, POLL
            if awake - weighed >= WEIGHED_EVERY:  # by the clock that also counts while the machine sleeps
                weighed = awake
                if reason := self.is_over(now, deadline, changed):
                    return reason
            if reason := self.stop_reason() or ("bytes" if size > self.limits["bytes"] else ""):
                return reason
        return ""

    def is_over(self, now: float, deadline: float, changed: float) -> str:
        """Return which limit is exceeded, or "" if none is.

        The lease comes first, because a machine that slept must not go on working.
        """
        try:
            leased = processes.read_number(self.folder / "lease")
        except (OSError, ValueError):
            leased = 0.0
        if processes.boottime() - leased > self.limits["orphan"]:
            return "orphan"
        if reason := self.stop_reason():
            return reason
        if now - self.started > self.limits["wall"]:
            return "wall"
        if now > deadline:
            return "timeout"
        if now - changed > self.limits["silence"]:
            return "silent"
        return self.weight.is_too_much(self.gate)

    def stop_reason(self) -> str:
        """Return why the host wants the run ended: "cost", "provider" or just "stopped"; "" if it does not.

        The file `stop` says so.
        """
        if not os.path.lexists(self.stop_file):
            return ""
        try:
            word = processes.read_small(self.stop_file)
        except OSError:
            return "stopped"
        return {b"cost": "cost", b"provider": "provider"}.get(word, "stopped")

    def end(
        self,
        child: subprocess.Popen[bytes],
        ended: Callable[[float], bool],
        *,
        is_enclosed: bool,
        grace: float,
    ) -> None:
        """Let nothing of the step live on: send TERM, wait a moment, send KILL to all below the shim."""
        if child.returncode is None:
            if grace:
                self.ask(child.pid, is_enclosed)
                ended(grace)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        for _ in range(50):
            left = descendants(self.gate)
            if not left:
                break
            processes.signal_all(map(processes.identity, left), signal.SIGKILL)
            self.reap(child.pid)
            time.sleep(0.01)
        if child.returncode is None:
            child.wait()

    def ask(self, step: int, is_enclosed: bool) -> None:
        """Send TERM to the step's group or, in a sandbox, to all but the processes that hold it up."""
        if not is_enclosed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(step, signal.SIGTERM)
            return
        walls = {step, *children(step)}
        inside = [pid for pid in descendants(self.gate) if pid not in walls]
        processes.signal_all(map(processes.identity, inside or [step]), signal.SIGTERM)

    def reap(self, step: int) -> None:
        """Collect orphans that the shim has adopted; the step itself is left to its Popen."""
        for orphan in descendants(self.gate):
            if orphan != step:
                with contextlib.suppress(ChildProcessError, OSError):
                    os.waitpid(orphan, os.WNOHANG)

    def open_gate(self) -> None:
        """Fork the gate, and wait until it listens; the sandbox cannot be set up without it."""
        if "gate" not in self.job:
            return
        listens, said = os.pipe()
        shim = os.getpid()
        self.gate = os.fork()
        if not self.gate:
            self.be_the_gate(shim, said)
        os.close(said)
        select.select([listens], [], [], GATE_SECONDS)
        os.close(listens)

    def be_the_gate(self, shim: int, said: int) -> NoReturn:
        """Become the gate, in the fork: it dies with the shim, and keeps neither the lock nor other pipes."""
        try:
            os.setsid()
            die_with_shim()
            if os.getppid() == shim:
                os.dup2(self.log, 2)
                os.dup2(said, 1)
                os.closerange(3, DESCRIPTORS)
                gate.serve(self.folder, self.job["gate"], listening=1)
        except BaseException:  # noqa: BLE001  (this fork must not go on as a second shim)
            sys.excepthook(*sys.exc_info())
        os._exit(1)

    def close_gate(self) -> None:
        if self.gate:
            os.kill(self.gate, signal.SIGKILL)
            os.waitpid(self.gate, 0)

    def ring(self) -> None:
        """Wake the host's loop, which would otherwise notice a moment later."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
            bell.setblocking(False)
            bell.sendto(b"x", self.job["bell"])


def detach() -> None:
    """Leave the starter, from a fork of it: get a session of our own, and be adopted by init."""
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def hold(folder: Path) -> NoReturn:
    """In a fork of its own: leave the starter, hold the run, and end the process.

    One byte to standard output says how that began: HELD, even if an earlier shim holds the run, or NOT_HELD.
    """
    answer = os.dup(1)

    def say(word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # whoever starts the next loop finds the run by itself
            os.write(answer, word)

    says = NOT_HELD
    try:
        os.chdir(folder)  # identifies a process of this run until it has written its number
        detach()
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        processes.prctl(PR_SET_NAME, f"shim {folder.name}".encode())
        processes.prctl(PR_SET_CHILD_SUBREAPER, 1)
        processes.come_first()
        shim = Shim(folder)
        is_ours, says = shim.takes_the_run(), HELD
        say(says)
        if is_ours:
            shim.run()
    finally:
        if says != HELD:
            say(says)
        os._exit(0)

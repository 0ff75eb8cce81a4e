"""The shim: one small process that holds one run, so that nothing else has to live as long as the agent.

Started as `python -I -S shim.py FOLDER`. It leaves its starter at once, takes the folder's lock (which every
process of the run inherits), runs the steps of `job.json` one after the other until one fails, and writes
`exit.json` as its last act but one; the last is to ring the host's loop.

It ends the step when nobody has renewed the lease for too long, when the run says nothing, lasts too long,
writes too much, or when the file `stop` appears: TERM, a moment, KILL; daemons that left the process group
come back to the shim as their subreaper and are killed as well. If the shim itself is killed, the kernel
kills the step with it. Output goes to a file: the death of a pipe's reader would be the death of the agent.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import processes  # noqa: E402  (a sibling file; the shim runs without the project on its path)

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL = 0.05


def prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the run is merely less well held."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_shim() -> None:
    """In the child, before it becomes the step."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def descendants() -> list[processes.Identity]:
    """Everything below this process, deepest last."""
    found: list[processes.Identity] = []
    frontier = [os.getpid()]
    while frontier:
        below: list[int] = []
        for pid in frontier:
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                    below += [int(word) for word in text.split()]
        found += [processes.identity(pid) for pid in below]
        frontier = below
    return found


def is_worth_another_try(result: dict[str, Any]) -> bool:
    """Whether it failed as tests do: by an exit code of its own, not for want of a program or of time."""
    code = result["code"]
    return not result["reason"] and code is not None and code > 0 and code not in {126, 127}


class Shim:
    """One run, from its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job: dict[str, Any] = json.loads((folder / "job.json").read_text())
        self.limits: dict[str, float] = self.job["limits"]
        self.started = time.monotonic()
        self.log = os.open(folder / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)

    def run(self) -> None:
        """Hold the run from the first step to `exit.json`. Another holder of the lock ends it at once."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        processes.write_identity(self.folder / "pid", processes.identity())
        done: list[dict[str, Any]] = []
        reason = ""
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
        processes.write_json(self.folder / "exit.json", {"steps": done, "reason": reason})
        self.ring()

    def run_step(self, step: dict[str, Any]) -> dict[str, Any]:
        """One command: its exit code (negative for a signal, None if it never ran), seconds and reason.

        `log` is where its output begins and ends in the run's log, in bytes.
        """
        begun, first = time.monotonic(), os.fstat(self.log).st_size
        try:
            child = self.start(step)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            why = getattr(error, "strerror", None) or error
            os.write(self.log, f"cannot start {step['argv'][0]}: {why}\n".encode(errors="replace"))
            return {"name": step["name"], "code": None, "seconds": 0.0, "reason": "refused", "log": [0, 0]}
        reason = self.watch(child, begun + float(step["timeout"]))
        self.end(child)
        return {
            "name": step["name"],
            "code": child.returncode,
            "seconds": round(time.monotonic() - begun, 3),
            "reason": reason,
            "log": [first, os.fstat(self.log).st_size],
        }

    def start(self, step: dict[str, Any]) -> subprocess.Popen[bytes]:
        """The step's process, in a session of its own. Raises OSError."""
        stdin = os.open(step.get("stdin") or os.devnull, os.O_RDONLY)
        try:
            return subprocess.Popen(
                step["argv"],
                cwd=step["cwd"],
                env=step["env"],
                stdin=stdin,
                stdout=self.log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(self.lock,),
                umask=0o077,
                preexec_fn=die_with_shim,
            )
        finally:
            os.close(stdin)

    def watch(self, child: subprocess.Popen[bytes], deadline: float) -> str:
        """Wait for the child's end; the reason for ending it early, or an empty text."""
        size, changed, pause = -1, time.monotonic(), 0.002
        while True:
            try:
                child.wait(pause)
                return ""
            except subprocess.TimeoutExpired:
                pause = min(pause * 2, POLL)
            now = time.monotonic()
            grown = os.fstat(self.log).st_size
            if grown != size:
                size, changed = grown, now
            if reason := self.must_end(now, deadline, changed, size):
                return reason

    def must_end(self, now: float, deadline: float, changed: float, size: int) -> str:
        """Why the step must end now. The lease comes first: a machine that slept must not go on working."""
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
        if size > self.limits["bytes"]:
            return "bytes"
        return "silent" if now - changed > self.limits["silence"] else ""

    def stop_reason(self) -> str:
        """Why the host wants it ended, from the file `stop`: a cap, a hopeless retry, or nothing special."""
        try:
            word = processes.read_small(self.folder / "stop")
            return {b"cost": "cost", b"provider": "provider"}.get(word, "stopped")
        except OSError:
            return "stopped" if os.path.lexists(self.folder / "stop") else ""

    def end(self, child: subprocess.Popen[bytes]) -> None:
        """Nothing of the step lives on: TERM to its group, a moment, KILL to everything below the shim."""
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(self.limits["grace"])
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        for _ in range(50):
            left = descendants()
            if not left:
                break
            processes.signal_all(left, signal.SIGKILL)
            self.reap(child.pid)
            time.sleep(0.01)
        if child.returncode is None:
            child.wait()

    def reap(self, step: int) -> None:
        """Collect orphans that came to us; the step itself is left to its Popen."""
        for orphan in [process for process in descendants() if process.pid != step]:
            with contextlib.suppress(ChildProcessError, OSError):
                os.waitpid(orphan.pid, os.WNOHANG)

    def ring(self) -> None:
        """Tell the host's loop; it would notice by itself a moment later."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
            bell.setblocking(False)
            bell.sendto(b"x", self.job["bell"])


def detach() -> None:
    """Leave the starter: a session of our own, adopted by init."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def main() -> None:
    folder = Path(sys.argv[1])
    detach()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    Shim(folder).run()


if __name__ == "__main__":
    main()

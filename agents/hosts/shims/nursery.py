"""The host's end of the process that forks shims."""

import contextlib
import errno
import os
import select
import subprocess
import threading
from pathlib import Path

from agents.hosts import processes
from agents.hosts.shims.shim import HELD
from agents.verification import commands

FORKING = Path(__file__).with_name("forking.py")
PATIENCE = 30.0  # seconds for a fork


class Nursery:
    """One process that forks all shims of this process, started with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start_shim(self, folder: Path) -> None:
        """Start an independent shim that holds the run of a folder with a job in it. Raises OSError."""
        with self._lock:  # even if it is asked twice, only one shim gets the folder's lock
            answer = self._answer(folder) or self._answer(folder)
        if answer != HELD:
            raise OSError(errno.EIO, "its shim could not take the run")

    def _answer(self, folder: Path) -> bytes:
        """Ask for a shim and return its byte; empty if the forking process was killed or is stuck.

        It is ended then, because a late answer would mislead.
        """
        self._process = self._process or _started()
        tell, answer = self._process.stdin, self._process.stdout
        said = b""
        if tell and answer:
            with contextlib.suppress(OSError):
                tell.write(os.fsencode(folder) + b"\0")
                ready, _, _ = select.select([answer], [], [], PATIENCE)
                said = answer.read(1) if ready else b""
        if not said:
            self._end()
        return said

    def _end(self) -> None:
        process, self._process = self._process, None
        if process:
            process.kill()
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                with contextlib.suppress(OSError):
                    pipe.close()


def _started() -> "subprocess.Popen[bytes]":
    """Start the process that forks shims.

    Every shim inherits its variables: whatever looks for processes of runs knows them by STEROIDS_RUN.
    """
    return subprocess.Popen(
        processes.words_of(commands.base_python(), FORKING),
        env={"PATH": os.environ.get("PATH", os.defpath), "STEROIDS_RUN": "shims"},
        cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
        start_new_session=True,
    )  # fmt: skip


NURSERY = Nursery()

"""Core: telling processes apart, and the small files by which they tell each other how they go.

A pid alone may belong to a stranger tomorrow. A run's folder may hold anything: its agent writes there too.

Standard library only: the shim, which holds an agent, imports this with `python -I -S`. There is one for each
run, hence no `dataclasses` and no `typing`, which cost more than all the rest.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import re
import signal
import stat
import time
from collections import namedtuple
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

PID_MAX = 2**31
PR_SET_PDEATHSIG = 1  # which signal this process gets when its parent dies
SMALL_MAX = 256 * 1024  # bytes of a file that is read whole


class Identity(namedtuple("Identity", ["boot_id", "pid", "start"])):
    """One process of one boot of one machine; it started so many clock ticks after that boot."""

    __slots__ = ()
    boot_id: str
    pid: int
    start: int


def prctl(option: int, value: int | bytes) -> None:
    """Linux only; elsewhere a process is merely less well held."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def words_of(python: str, file: Path) -> list[str]:
    """How a bare Python runs a file of ours: as a module, for a script would be compiled anew each time."""
    name = file.stem
    start = f"import sys; sys.path.append({str(file.parent)!r}); import {name}; sys.exit({name}.main())"
    return [python, "-I", "-S", "-c", start]


def boot_id() -> str:
    """The name of this boot; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def boottime() -> float:
    """Seconds since boot, counting while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rsplit(")", 1)[1].split()


def start_of(pid: int) -> int:
    """When the process started, in clock ticks since boot; 0 where there is none."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def identity(pid: int | None = None) -> Identity:
    """This process, or another one that lives now."""
    pid = pid or os.getpid()
    return Identity(boot_id(), pid, start_of(pid))


def is_alive(who: Identity) -> bool:
    """Whether that very process lives. A zombie does not."""
    fields = _stat(who.pid)
    return bool(
        fields and fields[0] not in "ZX" and int(fields[19]) == who.start and who.boot_id == boot_id()
    )


def open_regular(path: Path) -> BinaryIO:
    """Open a file that somebody else may have put there: only a regular one, no link, and without waiting.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_small(path: Path, most: int = SMALL_MAX) -> bytes:
    """What is in such a file. Raises OSError, also where it is larger than `most` bytes."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, "is too large", str(path))
    return data


def read_number(path: Path) -> float:
    """The number in such a file. Raises OSError and ValueError."""
    return float(read_small(path, 64))


def read_json(path: Path) -> Any:
    """The JSON in such a file. Raises OSError and ValueError."""
    try:
        return json.loads(read_small(path))
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def write_whole(path: Path, data: bytes, mode: int = 0o600, *, onto_disk: bool = False) -> None:
    """Write a file whole or not at all, in place of whatever lies there. Raises OSError."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(8).hex()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if onto_disk:
                file.flush()
                os.fsync(file.fileno())
        try:
            temporary.replace(path)
        except IsADirectoryError:
            path.rename(temporary.with_suffix(".was"))
            temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, data: object, mode: int = 0o600, *, onto_disk: bool = False) -> None:
    """Write a file whole or not at all. Raises OSError."""
    write_whole(path, json.dumps(data).encode(), mode, onto_disk=onto_disk)


def write_identity(path: Path, who: Identity) -> None:
    write_json(path, who._asdict())


def read_identity(path: Path) -> Identity | None:
    """The process that the file names; None where there is no such file or it is damaged."""
    try:
        data = read_json(path)
        who = Identity(str(data["boot_id"]), int(data["pid"]), int(data["start"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return who if 0 < who.pid < PID_MAX else None


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock on this file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _others(*files: str) -> Iterator[tuple[int, bytes]]:
    """Each other process that may be read, and what these of its files in /proc hold, NUL-ended."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = [_whole(f"{entry.path}/{name}") + b"\0" for name in files]
                yield int(entry.name), b"".join(words)


def _whole(path: str) -> bytes:
    """What a file in /proc holds, without a Path and a buffer: one question reads hundreds of them."""
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def marked(variable: str, value: str) -> list[Identity]:
    """Processes of this user whose environment holds `variable=value`."""
    needle = f"{variable}={value}".encode()
    return [identity(pid) for pid, words in _others("environ") if needle in words.split(b"\0")]


def of_session(first: Identity) -> list[Identity]:
    """The processes of the session that this process began, itself included.

    While one of them lives, no other process gets the first one's number.
    """
    if first.boot_id != boot_id() or start_of(first.pid) not in {0, first.start}:
        return []
    stats = ((int(name), _stat(int(name))) for name in os.listdir("/proc") if name.isdigit())
    return [
        Identity(first.boot_id, pid, int(fields[19])) for pid, fields in stats
        if fields and fields[0] not in "ZX" and int(fields[3]) == first.pid and int(fields[19]) >= first.start
    ]  # fmt: skip


def _of_some_run() -> Iterator[tuple[int, bytes]]:
    """Processes of runs, of whichever installation, with words, environment and current folder."""
    for pid, words in _others("cmdline", "environ"):
        if b"STEROIDS_RUN=" in words:
            with contextlib.suppress(OSError):
                yield pid, words + os.fsencode(os.readlink(f"/proc/{pid}/cwd")) + b"\0"


def working_in(folder: Path) -> list[Identity]:
    """Processes of this user that a run in this folder started: environment, words or current folder name it.

    The number of a run would not do: another installation on this machine counts its runs as well.
    """
    names = (f"{folder}/".encode(), f"{folder}\0".encode())
    return [identity(pid) for pid, words in _of_some_run() if any(name in words for name in names)]


def of_runs(root: Path) -> list[tuple[int, Identity]]:
    """Processes of this user that runs in folders below `root` started, each with its run's number."""
    place = re.compile(re.escape(os.fsencode(root)) + rb"/([1-9][0-9]{0,17})[/\0]")
    found = ((pid, place.search(words)) for pid, words in _of_some_run())
    return [(int(named[1]), identity(pid)) for pid, named in found if named]


def of_git_at(repository: Path) -> list[Identity]:
    """Processes of git that were started to work in this repository."""
    place = os.fsencode(repository)
    found = ((pid, words.split(b"\0")) for pid, words in _others("cmdline"))
    return [identity(pid) for pid, (first, *rest) in found if first.endswith(b"git") and place in rest]


def age_of(who: Identity) -> float:
    """Seconds since the process started."""
    return boottime() - who.start / os.sysconf("SC_CLK_TCK")


def is_stopped(who: Identity) -> bool:
    """Whether somebody sent that process STOP."""
    fields = _stat(who.pid)
    return bool(fields and fields[0] in "Tt" and int(fields[19]) == who.start)


def is_gone_within(who: Identity, seconds: float) -> bool:
    """Whether that process ends within so many seconds."""
    deadline = time.monotonic() + seconds
    while is_alive(who):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def signal_all(processes: Iterable[Identity], number: int) -> None:
    """Signal those of the processes that still live."""
    for process in processes:
        if is_alive(process):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def end_all(processes: list[Identity], grace: float) -> bool:
    """TERM, wait up to `grace` seconds, KILL. Whether all of them are gone."""
    signal_all(processes, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and any(is_alive(process) for process in processes):
        time.sleep(0.02)
    signal_all(processes, signal.SIGKILL)
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline and any(is_alive(process) for process in processes):
        time.sleep(0.02)
    return not any(is_alive(process) for process in processes)

"""Core: telling processes apart, and the small files through which they tell each other how they are doing.

A pid alone may belong to a stranger tomorrow. A run's folder may hold anything, because its agent writes
there too.

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
GIVING_WAY = 5  # a third of the usual share where all want the processors
SMALL_MAX = 256 * 1024  # bytes; a larger file is not read


class Identity(namedtuple("Identity", ["boot_id", "pid", "start"])):
    """One process of one boot of one machine; `start` counts the clock ticks from the boot to its start."""

    __slots__ = ()
    boot_id: str
    pid: int
    start: int


def prctl(option: int, value: int | bytes) -> None:
    """Set an attribute of this process on Linux; elsewhere do nothing, so it is merely less well held."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def come_first(*, yes: bool = True) -> None:
    """Run before all others if the kernel allows it, so that a run's many processes do not hold up its end.

    What the shim starts does not inherit that. The kernel may give each session a share of the processors, so
    a bomb of sessions left its shim one share among thousands.
    """
    with contextlib.suppress(OSError, AttributeError):
        policy = os.SCHED_RR if yes else os.SCHED_OTHER
        os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, os.sched_param(int(yes)))


def give_way() -> None:
    """Let whoever else wants the processors have them first: this process and all that it starts.

    The kernel may weigh sessions instead of processes, so ours is weighed, too.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.nice(GIVING_WAY)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(f"{GIVING_WAY}")


def words_of(python: str, file: Path) -> list[str]:
    """Return the command by which a bare Python runs a file of ours as a module.

    A script would be compiled anew each time. The garbage collector never looks at what is loaded at the
    beginning, in which it would find nothing; that took a tenth of a call of `steroids`.
    """
    name, place = file.stem, str(file.parent)
    load = f"import gc, sys; gc.disable(); sys.path.append({place!r}); import {name}"
    return [python, "-I", "-S", "-c", f"{load}; gc.freeze(); gc.enable(); sys.exit({name}.main())"]


def boot_id() -> str:
    """Return the id of this boot; empty if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def boottime() -> float:
    """Return the seconds since boot, including those during which the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rsplit(")", 1)[1].split()


def start_of(pid: int) -> int:
    """Return when the process started, in clock ticks since boot; 0 if there is no such process."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def identity(pid: int | None = None) -> Identity:
    """Return the identity of this process, or of another one that is alive."""
    pid = pid or os.getpid()
    return Identity(boot_id(), pid, start_of(pid))


def is_alive(who: Identity) -> bool:
    """Whether this very process is alive. A zombie is not."""
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


def is_behind_a_link(path: Path, folder: Path) -> bool:
    """Whether the path, or a folder between it and `folder`, is a link, which may lead anywhere."""
    return os.path.realpath(path) != os.path.join(os.path.realpath(folder), path.relative_to(folder))


def read_small(path: Path, most: int = SMALL_MAX) -> bytes:
    """Read a file that somebody else may have put there.

    Raises OSError if it is no regular file or larger than `most` bytes.
    """
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, "is too large", str(path))
    return data


def read_number(path: Path) -> float:
    """Read a number from a file that somebody else may have put there. Raises OSError and ValueError."""
    return float(read_small(path, 64))


def read_json(path: Path) -> Any:
    """Read JSON from a file that somebody else may have put there. Raises OSError and ValueError."""
    try:
        return json.loads(read_small(path))
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def write_whole(path: Path, data: bytes, *, onto_disk: bool = False) -> None:
    """Write a file whole or not at all, replacing whatever lies there. Raises OSError."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(8).hex()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
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


def write_json(path: Path, data: object, *, onto_disk: bool = False) -> None:
    """Write JSON to a file, whole or not at all. Raises OSError."""
    write_whole(path, json.dumps(data).encode(), onto_disk=onto_disk)


def write_identity(path: Path, who: Identity) -> None:
    write_json(path, who._asdict())


def read_identity(path: Path) -> Identity | None:
    """Return the process that the file names; None if there is no such file or it is damaged."""
    try:
        data = read_json(path)
        who = Identity(str(data["boot_id"]), int(data["pid"]), int(data["start"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return who if 0 < who.pid < PID_MAX else None


def took(lock: int) -> bool:
    """Take the lock of an open file until its end; return False if another process holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
    """Yield each other process that may be read, with the contents of these files of its in /proc.

    Each of the contents ends with NUL.
    """
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = [_whole(f"{entry.path}/{name}") + b"\0" for name in files]
                yield int(entry.name), b"".join(words)


def _whole(path: str) -> bytes:
    """Read a file in /proc without a Path or a buffer, because hundreds of them are read at a time."""
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def marked(variable: str, value: str) -> list[Identity]:
    """Return this user's processes whose environment contains `variable=value`."""
    needle = f"{variable}={value}".encode()
    return [identity(pid) for pid, words in _others("environ") if needle in words.split(b"\0")]


def of_session(first: Identity) -> list[Identity]:
    """Return the processes of the session that this process began, including itself.

    As long as one of them lives, no other process gets the first one's number.
    """
    if first.boot_id != boot_id() or start_of(first.pid) not in {0, first.start}:
        return []
    stats = ((int(name), _stat(int(name))) for name in os.listdir("/proc") if name.isdigit())
    return [
        Identity(first.boot_id, pid, int(fields[19])) for pid, fields in stats
        if fields and fields[0] not in "ZX" and int(fields[3]) == first.pid and int(fields[19]) >= first.start
    ]  # fmt: skip


def _of_some_run() -> Iterator[tuple[int, bytes]]:
    """Yield the processes of any installation's runs, with arguments, environment and working folder."""
    for pid, words in _others("cmdline", "environ"):
        if b"STEROIDS_RUN=" in words:
            with contextlib.suppress(OSError):
                yield pid, words + os.fsencode(os.readlink(f"/proc/{pid}/cwd")) + b"\0"


def working_in(folder: Path) -> list[Identity]:
    """Return this user's processes that belong to the run in this folder.

    Their environment, arguments or working folder name the folder. The run's number would not do, because
    another installation on this machine numbers its runs too.
    """
    names = (f"{folder}/".encode(), f"{folder}\0".encode())
    return [identity(pid) for pid, words in _of_some_run() if any(name in words for name in names)]


def of_runs(root: Path) -> list[tuple[int, Identity]]:
    """Return this user's processes that belong to runs in folders below `root`, with their runs' numbers."""
    place = re.compile(re.escape(os.fsencode(root)) + rb"/([1-9][0-9]{0,17})[/\0]")
    found = ((pid, place.search(words)) for pid, words in _of_some_run())
    return [(int(named[1]), identity(pid)) for pid, named in found if named]


def of_git_at(repository: Path) -> list[Identity]:
    """Return the git processes that were started to work in this repository."""
    place = os.fsencode(repository)
    found = ((pid, words.split(b"\0")) for pid, words in _others("cmdline"))
    return [identity(pid) for pid, (first, *rest) in found if first.endswith(b"git") and place in rest]


def age_of(who: Identity) -> float:
    """Return how many seconds ago the process started."""
    return boottime() - who.start / os.sysconf("SC_CLK_TCK")


def is_stopped(who: Identity) -> bool:
    """Whether the process is stopped, because somebody sent it SIGSTOP."""
    fields = _stat(who.pid)
    return bool(fields and fields[0] in "Tt" and int(fields[19]) == who.start)


def is_gone_within(who: Identity, seconds: float) -> bool:
    """Whether the process ends within `seconds`; wait for that."""
    deadline = time.monotonic() + seconds
    while is_alive(who):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def signal_all(processes: Iterable[Identity], number: int) -> None:
    """Send the signal to those of the processes that are still alive."""
    for process in processes:
        if is_alive(process):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def end_all(processes: list[Identity], grace: float) -> bool:
    """Send TERM, wait up to `grace` seconds, and send KILL; return whether all of them are gone."""
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 2.0)):
        signal_all(processes, number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(is_alive(process) for process in processes):
            time.sleep(0.02)
    return not any(is_alive(process) for process in processes)

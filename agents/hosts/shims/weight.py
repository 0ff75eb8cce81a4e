"""What a run takes of its host: processes, memory, disk and files, looked at by its shim."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import sys
from itertools import chain
from pathlib import Path

from agents.hosts import processes

SWEPT_AFTER = 8  # folders are measured once the disk has filled by the run's limit divided by this
PAGE = os.sysconf("SC_PAGE_SIZE")
IN_MEMORY = ("/tmp", "/dev/shm")  # noqa: S108  (of a sandbox)
INODE = 1024  # bytes that the kernel takes for each file there, however empty
TAKING_TOO_MUCH = frozenset({"processes", "memory", "disk", "files", "bytes"})


def children(pid: int) -> list[int]:
    """Return the processes that this one started or adopted."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
            found += [int(word) for word in text.split()]
    return found


def descendants(but: int = 0) -> list[int]:
    """Return all processes below this one, deepest last, without `but` and what is below that."""
    found: list[int] = []
    frontier = [os.getpid()]
    while frontier:
        frontier = [pid for parent in frontier for pid in children(parent) if pid != but]
        found += frontier
    return found


def memory_of(pids: list[int]) -> int:
    """Return how many bytes of memory these processes hold."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE


def is_enclosed(pid: int) -> bool:
    """Whether the process is in a sandbox, where /tmp and /dev/shm are its run's own."""
    own, its = os.stat("/"), os.stat(f"/proc/{pid}/root")
    return (own.st_dev, own.st_ino) != (its.st_dev, its.st_ino)


def files_in_memory(pids: list[int]) -> int:
    """Return how many bytes a run's files in memory take, which no process holds as its own."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            for place in IN_MEMORY if is_enclosed(pid) else ():
                path = f"/proc/{pid}/root{place}"
                disk = os.statvfs(path)
                used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
                found[os.stat(path).st_dev, 0] = used + (disk.f_files - disk.f_ffree) * INODE
            for number in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{number}"
                with contextlib.suppress(OSError):
                    if os.readlink(path).startswith("/memfd:"):
                        file = os.stat(path)
                        found[file.st_dev, file.st_ino] = file.st_blocks * 512
    return sum(found.values())


def shared_memory() -> int:
    """Return how many bytes all files in memory take on this machine; 0 if it does not say."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Shmem:")).split()[1]) * 1024
    return 0


def measure(
    folders: list[str], most_bytes: float = math.inf, most_files: float = math.inf
) -> tuple[int, int]:
    """Return the bytes on disk, and the number of files and folders, in these folders.

    Counting stops once there are more than `most_bytes` or `most_files`. What lies too deep to be looked at
    counts as too many files.
    """
    size, count = 0, 0
    try:
        for root, below, files in chain.from_iterable(os.walk(each, onerror=_too_deep) for each in folders):
            count += len(below) + len(files)
            if count > most_files:
                return size, count
            for name in files:
                with contextlib.suppress(OSError):
                    size += os.lstat(os.path.join(root, name)).st_blocks * 512
            if size > most_bytes:
                return size, count
    except RecursionError:
        return size, sys.maxsize
    return size, count


def _too_deep(error: OSError) -> None:
    """Raise RecursionError if a path is longer than the kernel takes; other folders are passed over."""
    if error.errno == errno.ENAMETOOLONG:
        raise RecursionError from error


class Weight:
    """What a run takes of the host: processes, memory, disk and files, against its limits."""

    def __init__(self, folders: list[str], limits: dict[str, float]) -> None:
        self.folders, self.limits = folders, limits
        self.filled = self._filled()
        self.shared = shared_memory()

    def is_too_much(self, but: int) -> str:
        """Return what exceeds its limit: "processes", "memory", "files" or "disk", or "" if nothing does."""
        below = descendants(but)
        if len(below) > self.limits["processes"]:
            return "processes"
        if memory_of(below) + self._hoarded(below) > self.limits["memory"]:
            return "memory"
        return self._of_disk()

    def _hoarded(self, below: list[int]) -> int:
        """Return the memory of the run's files in memory, once such files have grown on the whole machine."""
        grown = shared_memory() - self.shared
        return files_in_memory(below) if grown > self.limits["memory"] / SWEPT_AFTER else 0

    def _of_disk(self) -> str:
        """Return "files" or "disk" if the run exceeds that limit, otherwise "".

        The folders are measured only after the disk as a whole has filled noticeably, because walking a work
        tree takes time.
        """
        filled, limits = self._filled(), (self.limits["disk"], self.limits["files"])
        pairs = zip(filled, self.filled, limits, strict=True)
        if all(now - before < limit / SWEPT_AFTER for now, before, limit in pairs):
            return ""
        self.filled = filled
        processes.come_first(yes=False)  # a walk through many files is work, and not urgent
        size, count = measure(self.folders, *limits)
        processes.come_first()
        if count > limits[1]:
            return "files"
        return "disk" if size > limits[0] else ""

    def _filled(self) -> tuple[int, int]:
        """Return the bytes and files in use on the disk that the run writes to."""
        try:
            disk = os.statvfs(self.folders[0])
        except (OSError, IndexError):
            return 0, 0
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize, disk.f_files - disk.f_ffree

"""What takes a host a while, or may fail each time: done beside its loop and never in the way of it."""

import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from agents.hosts import outcomes, paths, processes
from agents.hosts.git.remotes import Unreachable, allow_calls, end_calls
from agents.loop import run_ends
from agents.models import Run
from tasks.log_lines import about

log = logging.getLogger(__name__)

THREADS = 4
STOP_PATIENCE = 2.0  # seconds that git's calls to remotes have when the host stops
FAILED_TURNS_MAX = 6  # then a run that cannot be read or ended is lost
# The host's own trouble, and no run's: it is tried again for as long as it lasts.
NOT_THE_RUNS = (Unreachable, OperationalError, InterfaceError)
NOT_THE_RUNS_EITHER = {
    errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EROFS,
}  # fmt: skip


class SlowWork:
    """Named work, each name once at a time: in threads where there are some, else at once."""

    def __init__(self, *, threads: bool) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="slow") if threads else None
        self._under_way: dict[str, Future[None]] = {}
        self._waited_for: set[str] = set()

    @property
    def has_threads(self) -> bool:
        return self._pool is not None

    def do(self, key: str, work: Callable[[], None], *, is_heard: bool = False) -> None:
        """Begin it, unless work of that name is under way. Who waits for the bell hears of its end.

        Work that is heard of by what it writes, `is_heard`, rings only where somebody waits for its end.
        """
        if self.is_under_way(key):
            self.wait_for(key)
            return
        if self._pool is None:
            logged(key, work)
            return
        self._waited_for.discard(key)
        self._under_way[key] = future = self._pool.submit(_in_thread, key, work)
        future.add_done_callback(lambda _: None if is_heard and key not in self._waited_for else _ring())

    def is_under_way(self, key: str) -> bool:
        future = self._under_way.get(key)
        return future is not None and not future.done()

    def wait_for(self, key: str) -> None:
        """Have its end ring. It may have come just now."""
        self._waited_for.add(key)
        if not self.is_under_way(key):
            _ring()

    def is_any(self) -> bool:
        return any(not future.done() for future in self._under_way.values())

    def forget_done(self) -> None:
        """Work of the same names may begin again."""
        self._waited_for.intersection_update(self._under_way)
        self._under_way = {key: future for key, future in self._under_way.items() if not future.done()}

    def end(self) -> None:
        """Let what is under way come to its end, a moment by itself and then without its calls to remotes."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in self._under_way.values() if not future.cancelled()], STOP_PATIENCE)
        end_calls()
        self._pool.shutdown(wait=True)
        allow_calls()


class Guard:
    """One poisoned run must not stop the loop: it rests, and the log says why.

    It is tried again, later each time, and in the end given up, so that its seat is free.
    """

    def __init__(self) -> None:
        self._failed: dict[str, tuple[int, float]] = {}

    def work_on(
        self, key: str, run: Run, work: Callable[[], Any], give_up: Callable[[Run, str], None]
    ) -> None:
        """Do the work, unless it failed a moment ago. Whatever it raises goes to the log."""
        failed, not_before = self._failed.get(key, (0, 0.0))
        if processes.boottime() < not_before:
            return
        try:
            with about(run=run.pk, task=run.task.ref):
                work()
        except Exception as error:
            with about(run=run.pk, task=run.task.ref):
                log.exception("Run %s could not be read; it is tried again.", run.pk)
            if not _is_of_host(error):
                failed += 1
            if failed >= FAILED_TURNS_MAX or (failed and _is_overdue(run)):
                why = outcomes.clean(f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
                logged(f"Giving up run {run.pk}", lambda: give_up(run, why))
                self._failed.pop(key, None)
                return
            later = settings.DURATIONS["loop"] * 2**failed
            self._failed[key] = failed, processes.boottime() + later
            run_ends.rest(run.task, settings.DURATIONS["backoff_first"])
        else:
            self._failed.pop(key, None)


def _is_of_host(error: Exception) -> bool:
    return isinstance(error, NOT_THE_RUNS) or getattr(error, "errno", None) in NOT_THE_RUNS_EITHER


def _is_overdue(run: Run) -> bool:
    """Longer under way than any run may be: the process that counts its failures may have restarted."""
    since = run.started_at or run.queued_at
    longest = 2 * (settings.DURATIONS["wall"] + settings.DURATIONS["orphan"])
    return (timezone.now() - since).total_seconds() > longest


def _in_thread(key: str, work: Callable[[], None]) -> None:
    try:
        logged(key, work)
    finally:
        close_old_connections()


def logged(key: str, work: Callable[[], None]) -> None:
    """Do it; what it raises goes to the log, with the name of the work."""
    try:
        with about(work=key):
            work()
    except Exception:
        log.exception("%s failed; the next pass tries again.", key)


def _ring() -> None:
    """Wake the loop of this host."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.setblocking(False)
        bell.sendto(b"x", str(paths.bell_socket()))

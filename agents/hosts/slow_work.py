"""Work that takes a host a while, or may fail each time: done beside its loop, and never in its way."""

import errno
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections

from agents.hosts import outcomes, processes
from agents.hosts.git.remotes import Unreachable, allow_calls, end_calls
from agents.loop import bell, run_ends
from agents.models import Run
from tasks.database.clock import estimated_time
from tasks.log_lines import about

log = logging.getLogger(__name__)

THREADS = 4
STOP_PATIENCE = 2.0  # seconds that git's calls to remotes have when the host stops
FAILED_TURNS_MAX = 6  # after so many failures, a run that cannot be read or ended is lost
# Trouble of the host and not of a run: the work is tried again for as long as it lasts.
NOT_THE_RUNS = (Unreachable, OperationalError, InterfaceError)
NOT_THE_RUNS_EITHER = {
    errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EROFS,
}  # fmt: skip


class SlowWork:
    """Named work, each name once at a time: in threads if there are some, otherwise at once."""

    def __init__(self, *, threads: bool) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="slow") if threads else None
        self._under_way: dict[str, Future[None]] = {}
        self._waited_for: set[str] = set()

    @property
    def has_threads(self) -> bool:
        return self._pool is not None

    def do(self, key: str, work: Callable[[], None], *, is_heard: bool = False) -> None:
        """Begin the work, unless work of that name is under way, and ring the bell when it ends.

        With `is_heard` the work rings by what it writes, so its end rings only if somebody waits for it.
        """
        if self.is_under_way(key):
            self.wait_for(key)
            return
        if self._pool is None:
            logged(key, work)
            return
        self._waited_for.discard(key)
        self._under_way[key] = future = self._pool.submit(_in_thread, key, work)
        future.add_done_callback(lambda _: None if is_heard and key not in self._waited_for else bell.wake())

    def is_under_way(self, key: str) -> bool:
        future = self._under_way.get(key)
        return future is not None and not future.done()

    def wait_for(self, key: str) -> None:
        """Ring the bell when this work ends, or at once if it is not under way."""
        self._waited_for.add(key)
        if not self.is_under_way(key):
            bell.wake()

    def is_any(self) -> bool:
        return any(not future.done() for future in self._under_way.values())

    def forget_done(self) -> None:
        """Forget the work that has ended."""
        self._waited_for.intersection_update(self._under_way)
        self._under_way = {key: future for key, future in self._under_way.items() if not future.done()}

    def end(self) -> None:
        """Let the work under way finish: for a moment undisturbed, then without its calls to remotes."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in self._under_way.values() if not future.cancelled()], STOP_PATIENCE)
        end_calls()
        self._pool.shutdown(wait=True)
        allow_calls()


class Guard:
    """Keeps one poisoned run from stopping the loop: it rests, and the log says why.

    It is tried again, later each time, and given up in the end, so that its seat is free.
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
    """Whether it has been under way longer than any run may be.

    This counts too, because the process that counts a run's failures may have been restarted.
    """
    since = run.started_at or run.queued_at
    longest = 2 * (settings.DURATIONS["wall"] + settings.DURATIONS["orphan"])
    return (estimated_time() - since).total_seconds() > longest


def _in_thread(key: str, work: Callable[[], None]) -> None:
    try:
        logged(key, work)
    finally:
        close_old_connections()


def logged(key: str, work: Callable[[], None]) -> None:
    """Do the work, and log what it raises together with the name of the work."""
    try:
        with about(work=key):
            work()
    except Exception:
        log.exception("%s failed; the next pass tries again.", key)

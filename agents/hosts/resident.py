"""The loop of one host, which runs until it is told to stop or has nothing left to do."""

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from agents import judging
from agents.hosts import api_server, landing, naming, paths, processes, supervisor
from agents.hosts.branches import amending, disputed_work, records, todo
from agents.hosts.naming import NameTaken
from agents.hosts.reconciler import HostBusy, Reconciler
from agents.hosts.watchdog import Watchdog
from agents.jobs import BUDGET
from agents.loop import bell, candidates, orchestrator
from agents.models import Run
from agents.setup import hosts
from agents.verification import trying
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared
from tasks.models import Event

log = logging.getLogger(__name__)

# Seconds for which a thread that computes may keep another one waiting whose query has been answered.
SWITCH = 0.001
HASTE = 0.1  # seconds between turns of a loop that ends once nothing is left to do


class Resident:
    """Holds this host's runs, and gives out work meanwhile."""

    def __init__(
        self,
        *,
        web: bool,
        until_idle: bool = False,
        say: Callable[[str], None],
        each_turn: Callable[[], None] = lambda: None,
    ) -> None:
        self.web, self.until_idle, self.say = web, until_idle, say
        self.each_turn = each_turn
        self.stopping = False
        self.watchdog = Watchdog()
        self._over = threading.Event()
        self._greeting = threading.Thread(target=self._greet, name="greeting", daemon=True)

    def run(self) -> None:
        """Run the loop. Raises HostBusy if another process keeps this host's runs, and NameTaken."""
        sys.setswitchinterval(SWITCH)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        with self._take_host() as host:
            if host.row.why_open:
                self.say(f"Runs are not sandboxed here: {host.row.why_open} See docs/safety.md.")
            bell.queue_tick()  # so that the dashboard need not wait for the schedule to see that jobs run
            try:
                supervisor.say_ready()
                if self.web:
                    self._greeting.start()
                self._loop(host)
            finally:
                self._over.set()
                api_server.close()
                self._say_who_goes_on(host)
                self._leave()
        self._let_go_of_name(host)

    def _let_go_of_name(self, host: Reconciler) -> None:
        """Record that this host has stopped, unless agents of it go on.

        If nothing is left here, another data folder may use its name at once.
        """
        with contextlib.suppress(DatabaseError):
            left = hosts.left_on(host.row)
            if not left.runs:
                naming.let_go(host.row, is_empty=not left)

    def _say_who_goes_on(self, host: Reconciler) -> None:
        with contextlib.suppress(DatabaseError):
            if count := len(host.held()):
                agents, whose = ("One agent goes", "its") if count == 1 else (f"{count} agents go", "their")
                orphan = settings.DURATIONS["orphan"]
                self.say(f"{agents} on for {orphan:.0f} seconds. Start again by then to keep {whose} work.")

    def _take_host(self) -> Reconciler:
        """Take this host, waiting if a lone tick of the cluster still holds it. Raises HostBusy, NameTaken.

        This happens before the cluster is started, so that the cluster's ticks find the host taken.
        """
        deadline = time.monotonic() + BUDGET + 10
        while True:
            host = Reconciler(threads=True)
            try:
                host.take()
                return host
            except HostBusy:
                if time.monotonic() > deadline or self.stopping:
                    raise
                time.sleep(0.2)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop on a signal: in order, within ten seconds, on the first, and at once on the second.

        The rows are right either way.
        """
        if self.stopping:
            os._exit(supervisor.EXIT_AT_ONCE)
        self.stopping = True
        last = threading.Timer(supervisor.STOP_LIMIT, os._exit, [0])
        last.daemon = True
        last.start()

    def _greet(self) -> None:
        """Say where the web server answers as soon as it does, while the loop goes on with its work."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not self.stopping:
            if api_server.answers(settings.API_URL):
                processes.write_whole(paths.folder("host") / "web.url", settings.API_URL.encode())
                self.say(f"Steroids Web answers on {settings.API_URL}")
                return
            if self._over.wait(0.1):
                return
        log_file = paths.folder("log") / "web.log"
        if not self.stopping:
            self.say(f"The web server does not answer on {settings.API_URL}; {log_file} says why.")

    def _leave(self) -> None:
        """Remove the file with the web server's URL, so that nobody reads one at which nothing answers."""
        if self._greeting.is_alive():
            self._greeting.join()
        (paths.folder("host") / "web.url").unlink(missing_ok=True)

    # --- The loop ---------------------------------------------------------------------------------------

    def _loop(self, host: Reconciler) -> None:
        watched = reaped = 0.0
        quiet = orchestrator.Quiet()
        while not self.stopping:
            try:
                if time.monotonic() - reaped >= settings.DURATIONS["reap"]:
                    reaped = time.monotonic()
                    orchestrator.clear_up()
                since = newest_event() if self.until_idle else 0
                with bell.before_a_step():
                    done = orchestrator.start_due(quiet=quiet)
                busy = host.step()
                orchestrator.take_checkpoints(done, quiet)
                self.each_turn()
                if self.until_idle and not busy and idle(settings.DURATIONS["idle"], since=since):
                    return
            except NameTaken:
                raise
            except Exception:
                log.exception("A turn of the loop failed; the next one tries again.")
                close_old_connections()
            if time.monotonic() - watched > settings.DURATIONS["beat"]:
                watched = time.monotonic()
                try:
                    self._watch()
                except Exception:
                    log.exception("The cluster could not be looked after; the next turn tries again.")
            host.wait(HASTE if self.until_idle and host.is_clearing_up() else None)

    def _watch(self) -> None:
        """End the cluster, with all its processes, if it is stuck or the clock was set back.

        The supervisor forks another one.
        """
        went_back = self.watchdog.clock_went_back()
        if not (cluster := supervisor.first_of(Path(settings.HOME), supervisor.JOBS)):
            return
        if went_back:
            log.warning("The clock was set back; starting the cluster again.")
        elif self.watchdog.is_wedged(time.monotonic() - processes.age_of(cluster)):
            log.warning("The cluster has not ticked for too long; starting it again.")
        else:
            return
        processes.end_all(processes.of_session(cluster), 1.0)


def once() -> None:
    """Run one tick, and make one pass over this host's runs."""
    bell.answered()
    orchestrator.tick()
    with Reconciler() as host:
        host.step()


def newest_event() -> int:
    """Return the key of the newest event, or 0 if nothing has ever happened."""
    return next((pk for (pk,) in _newest_event.rows()), 0)


_newest_event = Prepared(lambda: Event.objects.order_by("-pk").values_list("pk")[:1])


def idle(within: float, *, since: int) -> bool:
    """Whether nothing is live, or will be startable, queued or to land within so many seconds.

    `since` is the newest event from before the turn of the loop. What has happened in the turn may lead to
    more, which only the next turn decides: gaps follow a session that has landed, and a policy rules on a
    card that was opened.
    """
    if newest_event() != since:
        return False
    soon = estimated_time() + timedelta(seconds=within)
    return not (
        Run.objects.live().exists()
        or landing.is_any_due(soon)
        or any(not project.records_problem for project in records.due(soon))
        or disputed_work.due(soon)
        or amending.due()
        or todo.has_work()
        or candidates.waiting_tasks(soon)
        or judging.has_work()
        or trying.is_under_way(soon)
    )

"""The resident process of one host: the loop, and a watch over the cluster and the web server."""

import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from agents.hosts import api_server, naming, paths, processes
from agents.hosts.naming import NameTaken
from agents.hosts.reconciler import HostBusy, Reconciler, idle
from agents.hosts.watchdog import Watchdog
from agents.jobs import BUDGET
from agents.loop import bell, orchestrator
from agents.setup import hosts

log = logging.getLogger(__name__)

LEASH = Path(__file__).with_name("parent_death.py")
INSTANCE = api_server.INSTANCE
STOP_LIMIT = 9.5  # seconds from the first signal to the end, whatever hangs
CHILDREN_PATIENCE = 5.0  # seconds of them that the servers have
LEFTOVERS_PATIENCE = 1.0  # seconds more; they were told when their parent died
EXIT_AT_ONCE = 130


class AlreadyRunning(Exception):
    """This data folder has a resident process already. `url` is where its web server answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__("run_orchestrator runs already on this data folder.")


@dataclass
class Child:
    """A server process that must be there: started on a leash, started again when it dies."""

    name: str
    argv: list[str]
    process: subprocess.Popen[bytes] | None = None
    starts: list[float] = field(default_factory=list)

    def start(self, instance: str) -> None:
        environment = os.environ | {
            INSTANCE: f"{instance}:{self.name}",
            "STEROIDS_API_URL": settings.API_URL,
            "STEROIDS_HOME": str(settings.HOME),
        }
        with (paths.folder("log") / f"{self.name}.log").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), *self.argv],
                cwd=settings.BASE_DIR, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True,
            )  # fmt: skip
        self.starts = [*self.starts[-4:], time.monotonic()]

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def may_start(self) -> bool:
        """A child that dies at once is not started more than five times a minute."""
        return len(self.starts) < 5 or time.monotonic() - self.starts[0] > 60

    def ask_to_stop(self) -> None:
        """TERM to the main process only: the cluster hangs when its whole group is signalled."""
        if self.process and self.process.poll() is None:
            self.process.terminate()

    def wait(self, seconds: float) -> None:
        """Until it has ended, for so long at most."""
        if self.process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(max(seconds, 0.0))


class Resident:
    """Everything one host runs, until it is told to stop or has nothing left to do."""

    def __init__(
        self,
        *,
        web: bool,
        until_idle: bool = False,
        port: int = 0,
        say: Callable[[str], None],
        each_turn: Callable[[], None] = lambda: None,
    ) -> None:
        self.web, self.until_idle, self.port, self.say = web, until_idle, port, say
        self.each_turn = each_turn
        self.instance = str(settings.HOME)
        self.children: list[Child] = []
        self.stopping = False
        self.watchdog = Watchdog()
        self._over = threading.Event()
        self._greeting = threading.Thread(target=self._greet, name="greeting", daemon=True)

    def run(self) -> None:
        """Raises AlreadyRunning, HostBusy where another process keeps this host's runs, and NameTaken."""
        with self._only_one():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._stop)
            self._end_leftovers()
            with self._take_host() as host:
                if host.row.why_open:
                    self.say(f"Runs are not sandboxed here: {host.row.why_open} See docs/safety.md.")
                try:
                    if self.web:
                        self._choose_address()
                    self._start_children()
                    self._loop(host)
                finally:
                    self._over.set()
                    self._end_children()
                    api_server.close()
                    self._say_who_goes_on(host)
                    self._leave()
            self._let_go_of_name(host)

    def _let_go_of_name(self, host: Reconciler) -> None:
        """Where nothing is left here, another data folder may go on under this name at once."""
        with contextlib.suppress(DatabaseError):
            if not hosts.left_on(host.row):
                naming.let_go(host.row)

    def _say_who_goes_on(self, host: Reconciler) -> None:
        with contextlib.suppress(DatabaseError):
            if count := len(host.held()):
                agents = "One agent goes" if count == 1 else f"{count} agents go"
                orphan = settings.DURATIONS["orphan"]
                self.say(f"{agents} on for {orphan:.0f} seconds. Start again until then to keep the work.")

    def _take_host(self) -> Reconciler:
        """Before any cluster is started, so that its ticks find the host taken; a lone one lets go soon."""
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
        """The first time in order, within ten seconds; the second time at once. Rows are right either way."""
        if self.stopping:
            os._exit(EXIT_AT_ONCE)
        self.stopping = True
        last = threading.Timer(STOP_LIMIT, os._exit, [0])
        last.daemon = True
        last.start()

    @contextlib.contextmanager
    def _only_one(self) -> "contextlib._GeneratorContextManager[None]":  # type: ignore[misc]
        lock = os.open(paths.resident_lock(), os.O_RDWR | os.O_CREAT, 0o600)
        if not _took(lock):
            os.close(lock)
            url = paths.folder("host") / "web.url"
            raise AlreadyRunning(url.read_text().strip() if url.exists() else "") from None
        try:
            yield
        finally:
            os.close(lock)

    def _end_leftovers(self) -> None:
        """A killed parent leaves servers behind; two clusters on one queue would be worse than none."""
        marks = [f"{self.instance}:{name}" for name in ("cluster", "web", api_server.DOOR)]
        left = [who for mark in marks for who in processes.marked(INSTANCE, mark)]
        if left:
            log.warning("Ending %d processes of earlier servers.", len(left))
            processes.end_all(left, LEFTOVERS_PATIENCE)

    def _choose_address(self) -> None:
        self.port = settings.PORT or api_server.free_port(8000)
        settings.API_URL = f"http://127.0.0.1:{self.port}"

    def _start_children(self) -> None:
        manage = [sys.executable, str(Path(settings.BASE_DIR) / "manage.py")]
        self.children = [Child("cluster", [*manage, "qcluster"])]
        if self.web:
            self.children.append(Child("web", api_server.gunicorn_argv(self.port, workers=2)))
        for child in self.children:
            child.start(self.instance)
        if self.web:
            self._greeting.start()

    def _greet(self) -> None:
        """Say where the web server answers once it does; the loop goes on with its work meanwhile."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not self.stopping:
            if api_server.answers(settings.API_URL):
                (paths.folder("host") / "web.url").write_text(settings.API_URL)
                self.say(f"Steroids Web answers on {settings.API_URL}")
                return
            if not self.children[-1].is_alive():
                break
            if self._over.wait(0.1):
                return
        log_file = paths.folder("log") / "web.log"
        if not self.stopping:
            self.say(f"The web server did not start on port {self.port}; {log_file} says why.")

    def _leave(self) -> None:
        """Nobody reads an address any more on which nothing answers."""
        if self._greeting.is_alive():
            self._greeting.join()
        (paths.folder("host") / "web.url").unlink(missing_ok=True)

    def _end_children(self) -> None:
        deadline = time.monotonic() + CHILDREN_PATIENCE
        for child in self.children:
            child.ask_to_stop()
        for child in self.children:
            child.wait(deadline - time.monotonic())
        marks = [f"{self.instance}:{child.name}" for child in self.children]
        processes.end_all([who for mark in marks for who in processes.marked(INSTANCE, mark)], 0.5)

    # --- The loop ---------------------------------------------------------------------------------------

    def _loop(self, host: Reconciler) -> None:
        started = time.monotonic()
        watched = reaped = 0.0
        quiet = orchestrator.Quiet()
        while not self.stopping:
            try:
                if time.monotonic() - reaped < settings.DURATIONS["reap"]:
                    orchestrator.go_on(quiet=quiet)
                else:
                    reaped = time.monotonic()
                    orchestrator.tick(quiet=quiet)
                busy = host.step()
                self.each_turn()
                if self.until_idle and not busy and idle(settings.DURATIONS["idle"]):
                    return
            except NameTaken:
                raise
            except Exception:
                log.exception("A turn of the loop failed; the next one tries again.")
                close_old_connections()
            if time.monotonic() - watched > settings.DURATIONS["loop"]:
                watched = time.monotonic()
                try:
                    self._watch(started)
                except Exception:
                    log.exception("The servers could not be looked after; the next turn tries again.")
            host.wait()

    def _watch(self, started: float) -> None:
        """Start again what died; a cluster that no longer ticks is wedged and ended whole."""
        for child in self.children:
            if child.name == "cluster" and self._is_wedged(started):
                log.warning("The cluster has not ticked for too long; starting it anew.")
                processes.end_all(processes.marked(INSTANCE, f"{self.instance}:cluster"), 1.0)
            if not child.is_alive() and child.may_start():
                log.warning("%s died; starting it again.", child.name)
                processes.end_all(processes.marked(INSTANCE, f"{self.instance}:{child.name}"), 1.0)
                child.start(self.instance)

    def _is_wedged(self, started: float) -> bool:
        cluster = next(child for child in self.children if child.name == "cluster")
        return self.watchdog.is_wedged(max(started, cluster.starts[-1]))


def _took(lock: int) -> bool:
    """Whether nobody held it. Whoever merely asks whether it is held has it for an instant."""
    for _ in range(10):
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01)
    return False


def once() -> None:
    """One turn: a tick, and one pass over this host's runs."""
    bell.answered()
    orchestrator.tick()
    with Reconciler() as host:
        host.step()

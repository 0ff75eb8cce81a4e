"""What one host runs: the loop, the background jobs and the web server, forked from one process.

That process loads the program once, so that its children share it, and forks again whatever has died. It
holds the web server's socket, so that whoever calls while that server is restarted waits instead of being
refused. It does nothing else, has no threads, and does not query the database while they live.
"""

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from django.conf import settings
from django.core.management import call_command
from django.core.servers.basehttp import get_internal_wsgi_application
from django.db import connections

from agents.hosts import api_server, paths, processes

log = logging.getLogger(__name__)

LOOP, JOBS, WEB = "loop", "cluster", "web"
STOP_LIMIT = 9.5  # seconds from the first signal to the end, whatever hangs
SERVERS_PATIENCE = 5.0  # seconds that the servers have of these
LEFTOVERS_PATIENCE = 1.0  # seconds for processes whose parent has died
TURN = 0.5  # seconds between looks at the time
MANY_STARTS, MINUTE = 5, 60.0  # a server that keeps dying is started at most so often a minute
EXIT_AT_ONCE = 130
READY = signal.SIGUSR1
HEARD = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, READY}


class AlreadyRunning(Exception):
    """This data folder already has a supervisor. `url` is where its web server answers, or empty."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__("run_orchestrator runs already on this data folder.")


@dataclass
class Server:
    """A process that must always run, the first of a session of its own. `serve` returns its exit status."""

    name: str
    serve: Callable[[], int]
    who: processes.Identity | None = None
    status: int = 0  # of the last process that ended, as waitpid returns it
    starts: list[float] = field(default_factory=list)

    def is_due(self) -> bool:
        """Whether the server is missing and has not been started too often in the last minute."""
        often = len(self.starts) >= MANY_STARTS and time.monotonic() - self.starts[0] < MINUTE
        return self.who is None and not often

    def ended_by_itself(self) -> bool:
        return self.who is None and os.WIFEXITED(self.status)


class Supervisor:
    """Forks the servers of one host, and forks again those that died, until the loop ends by itself."""

    def __init__(self, *, loop: Callable[[], int], web: bool) -> None:
        self.loop, self.jobs = Server(LOOP, loop), Server(JOBS, serve_jobs)
        self.web = Server(WEB, lambda: api_server.serve(self._socket.fileno())) if web else None
        self._socket = socket.socket()
        self._lock = -1
        self._pid = 0
        self._stopping = 0.0  # since when

    def run(self) -> int:
        """Run the servers and return the loop's exit status.

        Raises AlreadyRunning, and NoApiServer if the web server's port is taken.
        """
        with self._only_one():
            processes.end_all(_leftovers(), LEFTOVERS_PATIENCE)
            if self.web:
                self._socket = api_server.listen(settings.PORT)
                settings.API_URL = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
            before = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
            try:
                get_internal_wsgi_application()  # loads all pages for the servers that are forked after this
                self._fork(self.loop)
                if self.web:
                    self._fork(self.web)
                return self._watch()
            finally:
                self._end(self._servers())
                _note([])
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                self._socket.close()

    @contextlib.contextmanager
    def _only_one(self) -> Iterator[None]:
        self._lock = os.open(paths.resident_lock(), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _took(self._lock):
                url = paths.folder("host") / "web.url"
                raise AlreadyRunning(url.read_text().strip() if url.exists() else "")
            yield
        finally:
            os.close(self._lock)

    def _servers(self) -> list[Server]:
        return [server for server in (self.loop, self.jobs, self.web) if server]

    # --- Forking ----------------------------------------------------------------------------------------

    def _fork(self, server: Server) -> None:
        connections.close_all()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # a garbage collection in a child would copy the memory that all share
        self._pid = os.getpid()
        if not (pid := os.fork()):
            self._become(server)
        server.who = processes.identity(pid)
        server.starts = [*server.starts[1 - MANY_STARTS :], time.monotonic()]
        _note(self._servers())

    def _become(self, server: Server) -> NoReturn:
        """Become the server in the fork, which ends when its parent dies and holds none of its locks."""
        code = 1
        try:
            os.setsid()
            processes.prctl(processes.PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != self._pid:
                os._exit(0)
            os.close(self._lock)
            if server is not self.web:
                self._socket.close()
            if server is not self.loop:
                _write_to(paths.folder("log") / f"{server.name}.log")
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
            code = server.serve()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            log.exception("%s ended.", server.name)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    # --- Watching ---------------------------------------------------------------------------------------

    def _watch(self) -> int:
        while True:
            heard = signal.sigtimedwait(HEARD, TURN)
            number = heard.si_signo if heard else 0
            if number in {signal.SIGTERM, signal.SIGINT}:
                if self._stopping:
                    self._kill(self._servers())
                    return EXIT_AT_ONCE
                self._ask_to_stop()
            if number == READY and self.jobs.is_due():
                self._fork(self.jobs)
            self._collect()
            if self._stopping:
                if not self._still_stops():
                    return 0
            elif self.loop.ended_by_itself():
                return os.waitstatus_to_exitcode(self.loop.status)
            else:
                self._make_good()

    def _collect(self) -> None:
        """Collect the servers that have ended."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                for server in self._servers():
                    if server.who and server.who.pid == pid:
                        self._bury(server, status)

    def _bury(self, server: Server, status: int) -> None:
        """Note that a server has ended, and end what it started.

        Two clusters on one queue would be worse than none.
        """
        left, server.who, server.status = server.who, None, status
        if left and not self._stopping and not (server is self.loop and server.ended_by_itself()):
            code = os.waitstatus_to_exitcode(status)
            log.warning("The server %s ended (%d); it is forked again.", server.name, code)
            processes.end_all(processes.of_session(left), LEFTOVERS_PATIENCE)

    def _make_good(self) -> None:
        """Fork again the servers that were started and have died."""
        for server in self._servers():
            if server.starts and server.is_due():
                self._fork(server)

    # --- The end ----------------------------------------------------------------------------------------

    def _ask_to_stop(self) -> None:
        self._stopping = time.monotonic()
        for server in self._servers():
            if server.who:
                processes.signal_all([server.who], signal.SIGTERM)

    def _still_stops(self) -> bool:
        """Whether to keep waiting. Servers get less time than the loop; what is left of them is killed."""
        since = time.monotonic() - self._stopping
        if since > SERVERS_PATIENCE:
            self._kill(server for server in self._servers() if server is not self.loop)
        return since < STOP_LIMIT and any(server.who for server in self._servers())

    def _end(self, servers: list[Server]) -> None:
        """End the servers that are left after the loop, in order if they can."""
        if not self._stopping:
            self._ask_to_stop()
        deadline = self._stopping + SERVERS_PATIENCE
        while any(server.who for server in servers) and time.monotonic() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, TURN)
            self._collect()
        self._kill(servers)

    def _kill(self, servers: Iterable[Server]) -> None:
        left = [who for server in servers if server.starts for who in servers_of(settings.HOME, server.name)]
        processes.signal_all(left, signal.SIGKILL)
        self._collect()


def say_ready() -> None:
    """Tell the supervisor that forked the loop that this host is taken, so that background jobs may begin."""
    os.kill(os.getppid(), READY)


def serve_jobs() -> int:
    """Run django-q2's processes until they are told to stop."""
    call_command("qcluster")
    for child in multiprocessing.active_children():
        child.join()
    return 0


def _write_to(file: Path) -> None:
    """Append everything that this process writes to that file from here on, and give it nothing to read."""
    output = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(here, there)
        os.set_inheritable(there, True)
    os.close(output)
    os.close(nothing)


def _took(lock: int) -> bool:
    """Whether we got the lock. Someone who only checks whether it is held may hold it for an instant."""
    for _ in range(10):
        if processes.took(lock):
            return True
        time.sleep(0.01)
    return False


# --- Who they are -------------------------------------------------------------------------------------------


def _record(home: Path) -> Path:
    return home / "host" / "servers.json"


def _note(servers: list[Server]) -> None:
    """Write down the servers' processes; a server without a process keeps its last known one."""
    who = {server.name: server.who._asdict() for server in servers if server.who}
    known = _noted(Path(settings.HOME)) if servers else {}
    paths.folder("host")
    processes.write_json(_record(Path(settings.HOME)), {n: w._asdict() for n, w in known.items()} | who)


def _noted(home: Path) -> dict[str, processes.Identity]:
    try:
        known = processes.read_json(_record(home))
        return {str(name): processes.Identity(**who) for name, who in known.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def first_of(home: Path, name: str) -> processes.Identity | None:
    """Return the process of that server that the supervisor forked last; None if there is none."""
    return _noted(home).get(name)


def servers_of(home: Path, name: str) -> list[processes.Identity]:
    """Return all processes of that server on that data folder."""
    first = first_of(home, name)
    return processes.of_session(first) if first else []


def _leftovers() -> list[processes.Identity]:
    """Return what is left of a killed supervisor, and of the API server that its loop had started."""
    left = [who for name in (LOOP, JOBS, WEB) for who in servers_of(Path(settings.HOME), name)]
    return [*left, *processes.marked(api_server.INSTANCE, api_server.mark())]

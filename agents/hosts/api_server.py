"""The URL at which agents of this host reach the API.

If there is a web server, that is its URL. Otherwise the host starts an API server of its own on loopback: the
same application with one worker, which ends by itself when this host has held no run for a while.
"""

import fcntl
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.servers.basehttp import get_internal_wsgi_application
from gunicorn.app.base import Application

from agents.hosts import paths, processes

START_SECONDS = 40.0
STOP_SECONDS = 2.0
INSTANCE = "STEROIDS_INSTANCE"  # the variable that says to which data folder such a server belongs
NAME = "api-server"
CONFIG = Path(__file__).with_name("api_server_config.py")
FIRST_PORT, PORTS = 8000, 50
BACKLOG = 2048  # connections that may wait to be accepted
WORKERS = 2


class NoApiServer(Exception):
    """The API cannot be reached and could not be started on this host."""


class _Server(NamedTuple):
    url: str
    process: processes.Identity


_answered: dict[str, tuple[_Server, float]] = {}  # by its mark, and until when it need not be asked again


def _file() -> Path:
    return paths.folder("host") / "api-server.json"


def lease_file() -> Path:
    return paths.folder("host") / "api-server.lease"


def answers(url: str) -> bool:
    """Whether the server at this URL is up and reaches its database."""
    host = url.split("://", 1)[1]
    try:
        connection = http.client.HTTPConnection(host, timeout=5)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


def _known() -> _Server | None:
    try:
        data = json.loads(_file().read_text())
        known = _Server(str(data["url"]), processes.Identity(**data["process"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return known if processes.is_alive(known.process) else None


def _bound(port: int) -> socket.socket | None:
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind(("127.0.0.1", port))
    except OSError:
        one.close()
        return None
    return one


def free_port() -> int:
    """Return a free port on loopback. Raises NoApiServer if none is free."""
    if one := _bound(0):
        with one:
            return int(one.getsockname()[1])
    raise NoApiServer("No port is free on 127.0.0.1.")


def listen(port: int) -> socket.socket:
    """Return the web server's listening socket on loopback.

    It is at `port`, or if that is 0 at the first free port from 8000 on. Raises NoApiServer if the ports are
    taken.
    """
    for one in [port] if port else range(FIRST_PORT, FIRST_PORT + PORTS):
        if listener := _bound(one):
            listener.listen(BACKLOG)
            return listener
    where = f"Port {port} of 127.0.0.1 is" if port else f"Ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are"
    raise NoApiServer(f"{where} taken by other programs. End them, or set PORT to another number.")


class WebServer(Application):
    """gunicorn in this process, which has already loaded the program, on a socket that already listens."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        super().__init__()

    def load_config(self) -> None:
        self.load_config_from_file(str(CONFIG))
        self.cfg.set("bind", f"fd://{self.descriptor}")
        self.cfg.set("workers", WORKERS)

    def load(self) -> Any:
        return get_internal_wsgi_application()


def serve(descriptor: int) -> int:
    """Serve the pages and the API on this listening socket until told to stop."""
    WebServer(descriptor).run()
    return 0


def gunicorn_argv(port: int, *, workers: int) -> list[str]:
    """Return the command line of a separate web server process."""
    return [
        sys.executable, "-m", "gunicorn", "steroidsweb.wsgi:application", "--config", str(CONFIG),
        "--bind", f"127.0.0.1:{port}", "--workers", str(workers),
    ]  # fmt: skip


def address() -> str:
    """Return the URL that agents of this host use, and start the server if needed. Raises NoApiServer."""
    if settings.API_URL:
        return str(settings.API_URL)
    if mark() in _answered:
        server, until = _answered[mark()]
        if time.monotonic() < until and processes.is_alive(server.process):
            return server.url
    touch()
    with open(paths.folder("host") / "api-server.lock", "w") as lock:  # two would start two servers
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _known()
        if not known or not answers(known.url):
            processes.end_all(processes.marked(INSTANCE, mark()), 1.0)
            known = _open()
    kept = min(settings.DURATIONS["beat"], settings.DURATIONS["api_server_idle"] / 4)
    _answered[mark()] = known, time.monotonic() + kept
    return known.url


def mark() -> str:
    """Return the mark in the environment by which the server of this data folder is recognised."""
    return f"{settings.HOME}:{NAME}"


def touch() -> None:
    """Renew the server's lease, because runs are under way here."""
    processes.write_whole(lease_file(), f"{processes.boottime():.3f}".encode())


def _open() -> _Server:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        INSTANCE: mark(),
        "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE", "steroidsweb.settings"),
        "STEROIDS_API_SERVER_LEASE": str(lease_file()),
        "STEROIDS_API_SERVER_IDLE": str(settings.DURATIONS["api_server_idle"]),
    }
    log = paths.folder("log") / "api-server.log"
    with log.open("ab") as output:
        child = subprocess.Popen(
            gunicorn_argv(port, workers=1),
            cwd=settings.BASE_DIR,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    who = processes.identity(child.pid)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise NoApiServer(f"The API could not be started on this host; {log} says why.")
        if answers(url):
            processes.write_json(_file(), {"url": url, "process": who._asdict()})
            return _Server(url, who)
        time.sleep(0.05)
        touch()  # it must not end for lack of a run while we wait for it
    child.kill()
    raise NoApiServer(f"The API did not answer on {url} within {START_SECONDS:g} s; {log} says more.")


def close() -> None:
    """End the server that this host started, if there is one."""
    if known := _known():
        processes.end_all([known.process], STOP_SECONDS)
    processes.end_all(processes.marked(INSTANCE, mark()), 0.5)
    _file().unlink(missing_ok=True)

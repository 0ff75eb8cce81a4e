"""The bell that wakes the loop. Rows say what is to be done; the bell only says "look now"."""

import contextlib
import socket
import threading
from collections.abc import Iterator

from agents.hosts import paths, processes
from tasks import broker

WAITING = "steroids-tick-waiting"
TICK_TIMEOUT = 600  # seconds: a cluster alone clones and pushes in its tick
# Events that a turn of the loop itself records about the runs that it gives out.
GIVEN_OUT = frozenset({"start", "verified_green", "run_queued"})
_turn = threading.local()


@contextlib.contextmanager
def before_a_step() -> Iterator[None]:
    """Silence the bell for runs that this thread gives out: its host looks for them right afterwards."""
    _turn.is_begun = True
    try:
        yield
    finally:
        _turn.is_begun = False


def ring(project_pk: int, kind: str = "") -> None:
    """Wake this host's loop or, if none is running, queue one tick unless one is waiting already."""
    if kind in GIVEN_OUT and getattr(_turn, "is_begun", False):
        return
    if not (wake() and processes.is_locked(paths.resident_lock())):
        queue_tick()


def queue_tick() -> None:
    """Queue one tick for the background jobs, unless one is waiting already."""
    broker.ask_once(WAITING, "agents.jobs.tick", group="tick", timeout=TICK_TIMEOUT)


def wake() -> bool:
    """Wake whoever looks after the runs of this host; it may be a job that is about to stop.

    Return False if nobody does.
    """
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.setblocking(False)
        bell.sendto(b"x", str(paths.bell_socket()))
        return True
    return False


def answered() -> None:
    """Note that a tick begins: whatever changes from here on needs another one."""
    broker.begin(WAITING)

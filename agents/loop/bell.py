"""Ringing the loop. Rows decide what is to be done; the bell only says "look now"."""

import contextlib
import socket
import threading
from collections.abc import Iterator

from agents.hosts import paths, processes
from tasks import broker

WAITING = "steroids-tick-waiting"
TICK_TIMEOUT = 600  # seconds: a cluster alone clones and pushes in its tick
# What a turn of the loop records about the runs that it gives out.
GIVEN_OUT = frozenset({"start", "verified_green", "run_queued"})
_turn = threading.local()


@contextlib.contextmanager
def before_a_step() -> Iterator[None]:
    """What this thread gives out meanwhile needs no bell: its host looks for runs right after it."""
    _turn.is_begun = True
    try:
        yield
    finally:
        _turn.is_begun = False


def ring(project_pk: int, kind: str = "") -> None:
    """Wake this host's loop, or ask for one tick in the queue where no loop runs, unless one waits there."""
    if kind in GIVEN_OUT and getattr(_turn, "is_begun", False):
        return
    if not _is_heard():
        broker.ask_once(WAITING, "agents.jobs.tick", group="tick", timeout=TICK_TIMEOUT)


def _is_heard() -> bool:
    """Whether a loop that stays was told. A job that looks after runs for a while may stop just now."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.setblocking(False)
        bell.sendto(b"x", str(paths.bell_socket()))
        return processes.is_locked(paths.resident_lock())
    return False


def answered() -> None:
    """A tick begins: whatever changes from here on needs another."""
    broker.begin(WAITING)

"""Ringing the loop. Rows decide what is to be done; the bell only says "look now"."""

import contextlib
import socket

from agents.hosts import paths, processes
from tasks import broker

WAITING = "steroids-tick-waiting"
TICK_TIMEOUT = 600  # seconds: a cluster alone clones and pushes in its tick


def ring(project_pk: int) -> None:
    """Wake this host's loop, or ask for one tick in the queue where no loop runs, unless one waits there."""
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

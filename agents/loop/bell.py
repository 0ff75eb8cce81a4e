"""Ringing the loop. Rows decide what is to be done; the bell only says "look now"."""

import contextlib
import socket

from agents.hosts import paths
from tasks import broker

WAITING = "steroids-tick-waiting"
TICK_TIMEOUT = 600  # seconds: a cluster alone clones and pushes in its tick


def ring(project_pk: int) -> None:
    """One byte to this host's loop where there is one, and one tick in the queue unless one waits already."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.setblocking(False)
        bell.sendto(b"x", str(paths.bell_socket()))
    broker.ask_once(WAITING, "agents.jobs.tick", group="tick", timeout=TICK_TIMEOUT)


def answered() -> None:
    """A tick begins: whatever changes from here on needs another."""
    broker.begin(WAITING)

"""Who is woken when: a turn of the loop that nobody needs costs as much as one that somebody does."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.hosts import paths
from agents.hosts.slow_work import SlowWork
from agents.loop import bell

SOON = 30


@pytest.fixture
def heard(tmp_path: Path, settings: Any) -> Iterator[socket.socket]:
    """The loop's ear."""
    settings.HOME = tmp_path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        paths.bell_socket().parent.mkdir(parents=True, exist_ok=True)
        ear.bind(str(paths.bell_socket()))
        ear.setblocking(False)
        yield ear


def rings(ear: socket.socket) -> int:
    count = 0
    while True:
        try:
            ear.recv(64)
        except BlockingIOError:
            return count
        count += 1


def _wait(event: threading.Event) -> None:
    event.wait(SOON)


def test_work_that_is_heard_of_otherwise_rings_only_where_somebody_waits_for_its_end(
    heard: socket.socket,
) -> None:
    slow, may_end = SlowWork(threads=True), threading.Event()
    wanted = {"nobody": 0, "asked": 1, "begun again": 1}
    try:
        for key in wanted:
            slow.do(key, lambda: _wait(may_end), is_heard=True)
        slow.wait_for("asked")
        slow.do("begun again", lambda: None, is_heard=True)
        assert rings(heard) == 0
    finally:
        may_end.set()
        slow.end()
    assert rings(heard) == sum(wanted.values())
    slow.wait_for("nobody")  # which has ended just before
    assert rings(heard) == 1


def test_any_other_work_rings_at_its_end(heard: socket.socket) -> None:
    slow = SlowWork(threads=True)
    slow.do("push", lambda: None)
    slow.end()
    assert rings(heard) == 1


def test_a_turn_does_not_ring_for_the_runs_that_its_own_host_begins_next(
    heard: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.loop.bell.processes.is_locked", lambda path: True)
    with bell.before_a_step():
        for kind, count in (("run_queued", 0), ("start", 0), ("verified_green", 0), ("approve", 1)):
            bell.ring(1, kind)
            assert rings(heard) == count, kind
        others = threading.Thread(target=bell.ring, args=(1, "run_queued"))  # a job, or a thread of the host
        others.start()
        others.join()
        assert rings(heard) == 1
    bell.ring(1, "run_queued")
    assert rings(heard) == 1

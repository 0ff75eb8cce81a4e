"""The process that forks the servers: what dies is there again, and nothing outlives it."""

import os
import signal
import socket
import time

import pytest

from agents.hosts import api_server, processes
from tests.end_to_end.installation import Installation, kill, wait_for

pytestmark = pytest.mark.slow


def names(installation: Installation) -> dict[str, list[processes.Identity]]:
    return {name: installation.server(name) for name in ("loop", "cluster", "web")}


def test_a_server_that_dies_is_forked_again_and_all_end_with_their_supervisor(
    installation: Installation,
) -> None:
    with socket.socket() as free:  # from where no other installation looks for its port
        free.bind(("127.0.0.1", 0))
        installation.environment["PORT"] = str(free.getsockname()[1])
    begun = installation.begin("run_orchestrator")
    address = installation.home / "host" / "web.url"
    wait_for(lambda: address.exists() and all(names(installation).values()), "the servers")
    url = address.read_text()
    for name in ("loop", "cluster", "web"):
        first, *_ = before = installation.server(name)
        assert os.getsid(first.pid) == first.pid
        for who in before:
            kill(who)
        if name == "web":  # nobody is refused meanwhile: whoever calls waits
            assert api_server.answers(url)
        wait_for(lambda name=name, before=before: set(installation.server(name)) - {*before}, name)
        assert begun.poll() is None, installation.log()
    assert address.read_text() == url
    everything = installation.processes()
    begun.kill()
    wait_for(lambda: not any(map(processes.is_alive, everything)), "the end of all that it forked")
    again = installation.begin("run_orchestrator")
    wait_for(lambda: api_server.answers(url), "the same address")
    again.terminate()
    assert again.wait(30) == 0, installation.log()
    assert not installation.processes()


def test_where_the_port_is_taken_nothing_starts_and_it_says_so(installation: Installation) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        installation.environment["PORT"] = str(port)
        done = installation.manage("run_orchestrator")
    assert done.returncode == 1
    assert f"Port {port} of 127.0.0.1 is taken by other programs" in done.stderr
    assert not installation.processes()


def test_a_server_that_cannot_stay_is_not_forked_again_and_again(installation: Installation) -> None:
    (installation.home / "log").mkdir(mode=0o700)
    (installation.home / "log" / "cluster.log").mkdir()  # it cannot say anything
    begun = installation.begin("run_orchestrator", "--no-web")
    said = "The server cluster ended (1); it is forked again."
    log = installation.home / "begun.log"
    wait_for(lambda: log.read_text().count(said) == 5, "its fifth end")
    time.sleep(3)
    assert log.read_text().count(said) == 5
    assert begun.poll() is None
    begun.send_signal(signal.SIGTERM)
    assert begun.wait(30) == 0, installation.log()

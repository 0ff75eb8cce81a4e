"""The stage of the real commands: a network without a way out, a model that pretends, one host."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from agents.hosts import processes, sandbox
from agents.hosts.shims.nursery import NURSERY
from agents.models import Run
from agents.models.host import Tier
from tests.end_to_end.installation import wait_for
from tests.end_to_end.loop import Loop, bare_remote, end_all_runs
from tests.real_agents import apart
from tests.real_agents.commands import COMMANDS, DUMMY, ROOT, path_with_commands
from tests.real_agents.stub import ModelStub


def pytest_report_header() -> str:
    """Said where these tests are asked for by name, in a process of its own that leaves in our place."""
    leave = "from tests.real_agents.apart import leave_the_network as leave; raise SystemExit(not leave())"
    done = subprocess.run([sys.executable, "-c", leave], cwd=ROOT, check=False)
    if done.returncode == 0:
        return "network: each test has its own, without a way out"
    return "network: no rights to leave it; the tests run on the ordinary loopback"


@pytest.fixture
def alone() -> bool:
    """This test has a network of its own. Whether that was possible."""
    NURSERY._end()  # what it forks would stand in the network of the test before
    return apart.leave_the_network()


@pytest.fixture
def model_stub(alone: bool) -> Iterator[Callable[..., ModelStub]]:
    """Starts stubs in this test's network, and ends them with it."""
    with ExitStack() as stack:
        yield lambda *words, **more: stack.enter_context(ModelStub(*words, **more))


@pytest.fixture
def dummy_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands are in the PATH, and all keys that there are are dummies."""
    monkeypatch.setenv("PATH", path_with_commands())
    for command in COMMANDS.values():
        monkeypatch.setenv(command.key_variable, DUMMY)


@pytest.fixture
def live_server(alone: bool, transactional_db: None) -> Iterator[LiveServer]:
    """The API in this test's network; the session's own server would be in another one."""
    server = LiveServer("127.0.0.1")
    yield server
    server.stop()


def living_in(home: Path) -> list[int]:
    """Every process, of whatever user, whose words or environment name a folder of this installation."""
    needle = f"{home}/".encode()
    return [pid for pid, words in processes._others("cmdline", "environ") if needle in words]


@pytest.fixture
def loop(live_server: LiveServer, dummy_keys: None, settings: Any, tmp_path: Path) -> Iterator[Loop]:
    """This process is the host; the live server is the API. Every run is in the sandbox."""
    settings.HOME = tmp_path / "home"
    settings.API_URL = live_server.url
    settings.SANDBOX = sandbox.REQUIRED
    yield Loop(settings.HOME, live_server.url)
    end_all_runs(settings.HOME)
    wait_for(lambda: not living_in(settings.HOME), "the end of all that the test started")
    tiers = set(Run.objects.filter(started_at__isnull=False).values_list("tier", flat=True))
    assert tiers == {Tier.ENCLOSED}


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare_remote(tmp_path, {"README.md": "Small.\n"})

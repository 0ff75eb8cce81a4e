"""The stage of the real commands: a network without a way out, a model that pretends, one host."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from agents.runtime import processes
from tests.end_to_end.loop import Loop, bare_remote
from tests.real_agents import apart
from tests.real_agents.commands import COMMANDS, DUMMY, path_with_commands
from tests.real_agents.stub import ModelStub

NOTE = "These tests could not leave the network (no rights to); they ran on the ordinary loopback."


@pytest.fixture
def alone(request: pytest.FixtureRequest) -> bool:
    """This test has a network of its own. Whether that was possible."""
    done = apart.leave_the_network()
    if not done:
        request.config.stash.setdefault(NOTES, set()).add(NOTE)
    return done


NOTES = pytest.StashKey[set[str]]()


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for note in sorted(config.stash.get(NOTES, set())):
        terminalreporter.write_line(note)


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


@pytest.fixture
def loop(live_server: LiveServer, dummy_keys: None, settings: Any, tmp_path: Path) -> Iterator[Loop]:
    """This process is the host; the live server is the API."""
    settings.HOME = tmp_path / "home"
    settings.API_URL = live_server.url
    yield Loop(settings.HOME, live_server.url)
    for file in (settings.HOME / "runs").glob("*/pid"):
        if who := processes.read_identity(file):
            processes.end_all([who], 0.5)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare_remote(tmp_path, {"README.md": "Small.\n"})

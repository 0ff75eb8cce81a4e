"""The finished demo once, and copies of it for every test that goes on from there."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.loop import bell
from tests.conftest import EMPTY
from tests.end_to_end.installation import Installation
from tests.end_to_end.loop import Loop, end_all_runs


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Installation]:
    """An empty data folder; whatever lives in it at the end is ended."""
    made = Installation(tmp_path / "home")
    yield made
    made.end_everything()


@pytest.fixture
def installation(folder: Installation, db: None) -> Installation:
    """One with a database without rows."""
    folder.begin_with(EMPTY)
    return folder


@pytest.fixture(scope="session")
def finished_demo(django_db_setup: None) -> Iterator[tuple[Installation, str]]:
    """The demo after its first `--until-idle`, with what that printed."""
    with tempfile.TemporaryDirectory(prefix="steroids-demo-") as folder:
        made = Installation(Path(folder) / "home")
        made.begin_with(EMPTY)
        try:
            printed = made.until_idle("--demo")
            made.mint_token()
            yield made, printed
        finally:
            made.end_everything()


@pytest.fixture
def copy_of_demo(
    finished_demo: tuple[Installation, str], tmp_path: Path
) -> Iterator[Callable[[], Installation]]:
    """Makes another copy of the finished demo, to go on from."""
    made: list[Installation] = []

    def make() -> Installation:
        made.append(finished_demo[0].copy(tmp_path / f"home-{len(made)}"))
        return made[-1]

    yield make
    for each in made:
        each.end_everything()


@pytest.fixture
def loop(live_server: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """This process is the host, and hears the bell; the live server is the API."""
    monkeypatch.setattr("tasks.hooks.ring_loop.function", lambda *about: bell.wake())
    settings.HOME = tmp_path / "home"
    settings.API_URL = live_server.url
    yield Loop(settings.HOME, live_server.url)
    end_all_runs(settings.HOME)

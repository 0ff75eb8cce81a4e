"""A Chromium that talks to Django's test server and to nobody else."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client

from tests.browser.scene import Scene, create_scene
from tests.factories import create_user

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

# Playwright's sync API runs an event loop in this thread; our queries here are as safe as without it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

DESK = {"width": 1440, "height": 900}
NAVIGATION, EXPECTED = 60_000, 30_000  # milliseconds; a loaded machine takes its time
FORGET = "localStorage.clear(); sessionStorage.clear(); navigator.sendBeacon = () => true"
PATIENCE = 5.0  # seconds, for requests that are under way when their test is over

# The shell first: it has no window to paint around each page, and takes about half the time of a processor.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> Iterator["Browser"]:
    playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not path:
        pytest.skip("There is no Chromium: install one, or name it in the environment as CHROMIUM.")
    playwright_api.expect.set_options(timeout=EXPECTED)
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGS, timeout=NAVIGATION)
        yield browser
        browser.close()


@pytest.fixture
def scene(live_server: Any) -> Scene:
    """Lea rules in it."""
    cache.clear()
    return create_scene(create_user("lea", first_name="Lea", last_name="Lindt"))


class Window:
    """A page in a context of its own, with what it asked for and what its console said since it was cleared.

    It is kept for the tests that follow: to begin another one takes three times as long as a page does.
    """

    def __init__(self, chromium: "Browser", options: dict[str, Any]) -> None:
        self.context = chromium.new_context(**options)
        self.context.set_default_timeout(EXPECTED)
        self.context.set_default_navigation_timeout(NAVIGATION)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.errors: list[str] = []
        self.under_way: set[Any] = set()
        self.page.on("request", self._begin)
        self.page.on("response", lambda answer: self.under_way.discard(answer.request))
        self.page.on("requestfailed", lambda request: self.under_way.discard(request))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console", lambda message: self.errors.append(message.text) if is_error(message) else None
        )

    def _begin(self, request: Any) -> None:
        self.asked.append(request.url)
        if request.resource_type != "ping":  # of which no end is told
            self.under_way.add(request)

    def open(self, root: str, path: str, session: str, **looks: Any) -> int:
        """Open the path as whoever has the session; the status of the answer."""
        self.page.set_viewport_size(looks.pop("viewport"))
        self.page.emulate_media(media="screen", **looks)
        self.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": root}])
        answer = self.page.goto(root + path)
        assert answer is not None
        return answer.status

    def clear(self) -> None:
        """Leave nothing for the next test but the files that a browser keeps, and nothing for the server."""
        from playwright.sync_api import Error

        deadline = time.monotonic() + PATIENCE
        while self.under_way and time.monotonic() < deadline:
            self.page.wait_for_timeout(20)
        try:
            self.page.evaluate(FORGET)
        except Error:  # it was on its way to another page
            self.page.wait_for_load_state()
            self.page.evaluate(FORGET)
        self.page.goto("about:blank")
        self.context.clear_cookies()
        for each in (self.asked, self.errors, self.under_way):
            each.clear()


@pytest.fixture(scope="session")
def windows(chromium: "Browser") -> Iterator[dict[str, Window]]:
    """One for each kind of device, by the options of its context."""
    made: dict[str, Window] = {}
    yield made
    for window in made.values():
        window.context.close()


@pytest.fixture
def open_page(
    chromium: "Browser", windows: dict[str, Window], live_server: Any, scene: Scene
) -> Iterator[Callable[..., "Page"]]:
    """Opens a path as Lea, in the place of the page before it on such a device, unless it is to be alone.

    At the end: no request left the host, and the console holds no error.
    """
    used: dict[str, Window] = {}
    alone: list[Window] = []

    def open_path(
        path: str, *, expect: int = 200, is_alone: bool = False, viewport: Any = DESK,
        color_scheme: str = "light", **options: Any,
    ) -> "Page":  # fmt: skip
        device = str(sorted(options.items()))
        if is_alone:
            alone.append(window := Window(chromium, options))
        else:
            window = used.get(device) or windows.pop(device, None) or Window(chromium, options)
            used[device] = window
        client = Client()
        client.login(username="lea", password="secret-password")
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        looks = {"viewport": viewport, "color_scheme": color_scheme}
        assert window.open(live_server.url, path, session, **looks) == expect
        return window.page

    yield open_path
    asked = [url for window in [*used.values(), *alone] for url in window.asked]
    errors = [error for window in [*used.values(), *alone] for error in window.errors]
    for window in alone:
        window.context.close()
    for device, window in used.items():
        window.clear()
        windows[device] = window
    assert [url for url in asked if not url.startswith((live_server.url, "data:"))] == []
    assert errors == []


def is_error(message: "ConsoleMessage") -> bool:
    """Chromium also reports each answer of 400 and more there; refusals have such a status on purpose."""
    return message.type == "error" and "the server responded with a status of 4" not in message.text


@pytest.fixture
def shoot() -> Callable[..., None]:
    """Writes a picture of the page where STEROIDS_SCREENSHOTS names a folder."""
    folder = os.environ.get("STEROIDS_SCREENSHOTS")

    def write(page: "Page", name: str, **options: Any) -> None:
        if folder:
            page.evaluate("document.fonts.ready")
            page.screenshot(path=Path(folder) / f"{name}.png", **options)

    return write

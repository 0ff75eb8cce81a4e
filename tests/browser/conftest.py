"""A Chromium that talks to Django's test server and to nobody else."""

import os
import shutil
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
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

# Playwright's sync API runs an event loop in this thread; our queries here are as safe as without it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

NAVIGATION, EXPECTED = 60_000, 30_000  # milliseconds; a loaded machine takes its time

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


@pytest.fixture
def open_page(chromium: "Browser", live_server: Any, scene: Scene) -> Iterator[Callable[..., "Page"]]:
    """Opens a path as Lea. At the end: no request left the host, and the console holds no error."""
    contexts: list[BrowserContext] = []
    asked: list[str] = []
    errors: list[str] = []

    def open_path(path: str, *, expect: int = 200, **options: Any) -> "Page":
        options = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"} | options
        context = chromium.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(EXPECTED)
        context.set_default_navigation_timeout(NAVIGATION)
        client = Client()
        client.login(username="lea", password="secret-password")
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}
        context.add_cookies([cookie])
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if is_error(message) else None)
        answer = page.goto(live_server.url + path)
        assert answer is not None
        assert answer.status == expect
        return page

    yield open_path
    for context in contexts:
        context.close()
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

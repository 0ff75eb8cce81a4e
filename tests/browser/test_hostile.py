"""Three hundred hostile texts in a real browser: none runs, none becomes markup, none breaks the layout."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.browser.pages import every_page, fill_scene
from tests.browser.scene import Scene
from tests.hostile import TEXTS, Filler

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Open = Callable[..., "Page"]
# What a page of ours never has, unless a text became an element of it.
STRANGE = (
    ".hostile, hostile, x-hostile, iframe, object, embed, base, portal, marquee, plaintext, math, audio, "
    "video, meta[http-equiv], svg script, foreignObject, script:not([src]), style, "
    "[onload], [onerror], [onfocus], [onclick], [onmouseover], [ontoggle], "
    "a[href^='javascript' i], a[href^='data' i], form[action^='http' i], form[action^='//']"
)
LOOK = """selector => ({
    ran: window.hostile ?? null,
    strange: [...document.querySelectorAll(selector)].map(element => element.outerHTML.slice(0, 120)),
    width: document.scrollingElement.scrollWidth,
})"""


def test_three_hundred_hostile_texts_are_only_read(open_page: Open, scene: Scene) -> None:
    fill_scene(scene)
    page = open_page("/healthz")
    root = page.url.removesuffix("/healthz")
    filler = Filler(TEXTS)
    while filler.used < set(TEXTS):
        filler.fill()
    page.on("dialog", lambda dialog: wrong.append(f"{page.url}: a dialog says {dialog.message}"))
    wrong: list[str] = []
    for path in every_page(scene):
        page.set_viewport_size({"width": 1440, "height": 900})
        answer = page.goto(root + path)
        assert answer is not None
        assert answer.status == 200, f"{path} answers {answer.status}"
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            seen = page.evaluate(LOOK, STRANGE)
            wrong += [f"{path}: {what}" for what in seen["strange"]]
            if seen["ran"] is not None:
                wrong.append(f"{path}: a text ran")
            if seen["width"] > width:
                wrong.append(f"{path}: {seen['width']} pixels wide at {width}")
    assert not wrong, "\n" + "\n".join(wrong)

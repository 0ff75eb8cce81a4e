"""No text gets out of its place: every page, with hostile words in every column that holds any."""

from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from django.core.cache import cache
from django.test import Client

from tests.browser.pages import every_page
from tests.browser.scene import create_scene
from tests.factories import create_user
from tests.filling import fill
from tests.hostile import TEXTS, Filler

pytestmark = pytest.mark.django_db

# Every character that means something in an element, an attribute, an expression, Markdown or a template.
BREAKER = (
    "hostile\"'`><hostile class=hostile onload=hostile>&lt;${hostile}{{hostile}}{%hostile%}"
    "[hostile](javascript:hostile)"
)
EVALUATED = ("x-", "@", ":", "on", "hx-on", "hx-vals", "hx-trigger", "style", "srcdoc")
FOLLOWED = ("href", "src", "action", "formaction", "hx-get", "hx-post", "data", "poster", "xlink:href")


class Escapes(HTMLParser):
    """What of a page came out of its place, in words."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        if "hostile" in tag or tag in {"iframe", "object", "embed", "base", "marquee", "plaintext"}:
            self.found.append(f"an element <{tag}>")
        for name, value in attrs:
            value = value or ""
            if "hostile" in name or name.startswith("on"):
                self.found.append(f"an attribute {name} of <{tag}>")
            if name == "class" and "hostile" in value.split():
                self.found.append(f"a class of <{tag}>")
            if "hostile" in value and name.startswith(EVALUATED):
                self.found.append(f"{name} of <{tag}> is evaluated")
            if name in FOLLOWED and value.strip().lower().startswith(
                ("javascript:", "data:text", "vbscript:")
            ):
                self.found.append(f"{name} of <{tag}> is {value[:40]}")

    def handle_data(self, data: str) -> None:
        if self.inside in {"script", "style"} and "hostile" in data:
            self.found.append(f"text in <{self.inside}>")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def escapes(client: Client, paths: list[str]) -> Iterator[str]:
    for path in paths:
        cache.clear()
        response = client.get(path)
        assert response.status_code == 200, f"{path} answers {response.status_code}"
        for what in dict.fromkeys(Escapes(response.content.decode()).found):
            yield f"{path}: {what}"


@pytest.fixture
def pages(client: Client) -> list[str]:
    """A row of everything, and all the addresses at which something of it is told."""
    lea = create_user("lea", is_superuser=True)
    scene = create_scene(lea)
    fill(scene.ledger, 1, lea)
    client.force_login(lea)
    return every_page(scene)


def test_no_column_breaks_out_of_its_place_on_any_page(client: Client, pages: list[str]) -> None:
    Filler([BREAKER]).fill()
    found = list(escapes(client, pages))

    assert not found, "\n" + "\n".join(found)


def test_each_of_three_hundred_texts_stays_in_its_place(client: Client, pages: list[str]) -> None:
    assert len(TEXTS) >= 300
    filler = Filler(TEXTS)
    found = []
    while filler.used < set(TEXTS):
        filler.fill()
        found += escapes(client, pages)

    assert not found, "\n" + "\n".join(found)

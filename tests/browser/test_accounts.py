"""An account in trouble on the dashboard, and the button that tries it again."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from agents.crew import pauses
from agents.models import Agent
from agents.providers.reports import ErrorClass
from tests.browser.scene import Scene

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Open = Callable[..., "Page"]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {}, "dark": {"color_scheme": "dark"}, "phone": {"viewport": {"width": 390, "height": 844}},
}  # fmt: skip


@pytest.mark.parametrize("look", LOOKS)
def test_the_dashboard_names_the_account_and_tries_it_again(
    open_page: Open, shoot: Callable[..., None], scene: Scene, look: str
) -> None:
    agent = Agent.objects.create(name="codex-large", role="coder", provider="codex", model="gpt-5.5")
    agent.projects.set([scene.ledger])
    message = "You've hit your usage limit. Try again in 1 hour."
    pauses.pause("codex", ErrorClass.QUOTA, message, until=timezone.now() + timedelta(hours=1))
    page = open_page("/admin/", **LOOKS[look])
    expect(page.get_by_text("It holds up codex-large")).to_be_visible()
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0
    shoot(page, f"paused-{look}", full_page=True)
    page.get_by_role("button", name="Try again now").click()
    expect(page.get_by_text("codex is tried again")).to_be_visible()
    assert pauses.paused() == {}

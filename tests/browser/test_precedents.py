"""Citing a precedent and looking precedents up, in a real browser."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from disputes import rulings
from disputes.models import Decision
from tests.browser.keys import press
from tests.browser.scene import Scene
from tests.browser.test_dispute import PHONE, disputed, path_of
from tests.factories import create_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Open = Callable[..., "Page"]
Shoot = Callable[..., None]


def test_a_precedent_is_chosen_kept_previewed_and_listed(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    tom = create_user("tom", first_name="Tom", last_name="Tran", is_superuser=True)
    before = disputed(scene, "high")
    earlier = rulings.decide(before, "uphold_reviewer", user=tom, rationale="No herd after an outage.")
    page = open_page(path_of(scene.conflict))
    press(page, "a")
    expect(page.locator("[data-lines]")).not_to_contain_text("Precedent:")
    page.get_by_label("As ruled on").select_option(before.ref)
    expect(page.locator("[data-lines]")).to_contain_text(f"Precedent: As ruled on {before.dispute.ref}.")
    page.reload()
    expect(page.get_by_label("As ruled on")).to_have_value(before.ref)
    shoot(page, "cite-light", full_page=True)
    press(page, "Control+Enter")
    page.wait_for_function("document.querySelector('.toast, [role=status]')")
    assert Decision.objects.latest("pk").cites == earlier

    for name, options in (("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", PHONE)):
        page = open_page(f"{path_of(scene.conflict)}?conflict={scene.conflict.ref}", **options)
        expect(page.get_by_text(f"As ruled on {before.dispute.ref}.")).to_be_visible()
        shoot(page, f"cited-{name}", full_page=True)
        page = open_page("/admin/disputes/precedent/", **options)
        expect(page.get_by_text("1 time", exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        shoot(page, f"precedents-{name}", full_page=True)

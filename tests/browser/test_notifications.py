"""Notifications in a real browser: adding a channel, the count in the tab, messages in the browser."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from disputes.models import Channel, Delivery
from disputes.notifications import fanout
from tests.browser.scene import Scene
from tests.notifications.conftest import create_channel, open_card

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
Open = Callable[..., "Page"]
Shoot = Callable[..., None]


def test_a_channel_is_added_and_what_was_not_delivered_is_seen(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    page = open_page("/notifications/", timezone_id="Europe/Berlin")
    page.get_by_role("link", name="Add a channel").click()
    expect(page.get_by_label("Time zone")).to_have_value("Europe/Berlin")
    page.get_by_label("Name").fill("Machine room")
    page.get_by_label("Kind").select_option("webhook")
    page.get_by_label("Address").fill("http://10.0.0.8/hook")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("Nothing was saved.")).to_be_visible()
    shoot(page, "notifications-refused", full_page=True)
    page.get_by_label("Address").fill("https://example.org/hook")
    page.get_by_label("Quiet from").fill("22:00")
    page.get_by_label("Quiet until").fill("07:00")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("whsec_")).to_be_visible()
    shoot(page, "notifications-secret", full_page=True)
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_text("quiet from 22:00 to 07:00 (Europe/Berlin)")).to_be_visible()

    lea = User.objects.get(username="lea")
    create_channel(user=lea, name="Phone", kind="people", service="ntfy", project=scene.ledger)
    create_channel(user=lea, name="Mail", kind="people", service="E-Mail", is_active=False)
    open_card(scene.ledger)
    fanout.take_up()
    Delivery.objects.update(tries=1, sent_at=timezone.now() - timedelta(minutes=12))
    Delivery.objects.filter(pk=Delivery.objects.filter(channel__name="Phone")[0].pk).update(
        tries=8, sent_at=None, failed_at=scene.dispute.opened_at, error="The server answered 500."
    )
    for name, options in (
        ("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", PHONE),
        ("phone-dark", PHONE | {"color_scheme": "dark"}),
    ):  # fmt: skip
        for path, title in (
            ("/notifications/", "overview"), ("/notifications/deliveries/", "deliveries"),
            (f"/notifications/{Channel.objects.get(name='Phone').pk}/", "channel"),
        ):  # fmt: skip
            page = open_page(path, **options)
            expect(page.locator("main.notifications")).to_be_visible()
            shoot(page, f"notifications-{title}-{name}", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


# What the page is asked to show stands in `told`; the permission is given without a dialog.
FAKE = """
window.told = [];
window.Notification = class extends EventTarget {
    static permission = "default";
    static async requestPermission() { return (Notification.permission = "granted"); }
    constructor(title, options) { super(); window.told.push(options.body); }
};
document.hasFocus = () => false;
"""


def test_the_tab_counts_and_the_browser_tells_where_it_was_asked_to(open_page: Open, scene: Scene) -> None:
    page = open_page("/notifications/", is_alone=True)
    page.add_init_script(FAKE)
    page.reload()
    expect(page).to_have_title(f"({waiting()}) Notifications | Steroids Web")
    page.get_by_role("button", name="Turn on desktop notifications").click()
    expect(page.get_by_role("button", name="Stop it")).to_be_visible()

    open_card(scene.ledger, "Is this new?")
    cache.clear()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as if one came back to the tab
    expect(page).to_have_title(f"({waiting()}) Notifications | Steroids Web")
    expect(page.locator('a[href="/queue/"] > span:nth-child(3)')).to_have_text(waiting())
    page.wait_for_function("window.told.length === 1")
    assert page.evaluate("window.told") == ["Is this new?"]
    page.get_by_role("button", name="Stop it").click()
    expect(page.get_by_role("button", name="Turn on desktop notifications")).to_be_visible()


def waiting() -> Any:
    from disputes.web.queue import listing

    return listing.count_of(listing.MINE, User.objects.get(username="lea"))

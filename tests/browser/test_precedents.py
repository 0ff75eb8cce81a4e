"""Citing a precedent, looking precedents up, and amending the specification, in a real browser."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from disputes import amendments, rulings
from disputes.models import Amendment, Decision
from tasks.models import Project
from tests.browser.keys import press
from tests.browser.scene import Scene
from tests.browser.test_dispute import PHONE, disputed, path_of
from tests.end_to_end.installation import wait_for
from tests.factories import create_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

AMENDED = """\
diff --git a/docs/SPEC.md b/docs/SPEC.md
--- a/docs/SPEC.md
+++ b/docs/SPEC.md
@@ -6,5 +6,11 @@

 ### 4.3 Retries

 A failed delivery is retried at growing intervals, with jitter, for at least 24 hours.
+
+> **Ruling D-1, C-1** (2026-11-23, Lea Lindt): Should failed webhooks be retried with exponential back-off?
+>
+> Exponential back-off with full jitter: base 2 s, factor 2, cap 15 min. Give up after 24 h.

 ### 4.4 Order
"""
Open = Callable[..., "Page"]
Shoot = Callable[..., None]


def test_a_precedent_is_chosen_kept_previewed_and_listed(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    tom = create_user("tom", first_name="Tom", last_name="Tran", is_superuser=True)
    before = disputed(scene, "high")
    earlier = rulings.decide(before, "uphold_reviewer", user=tom, rationale="No herd after an outage.")
    page = open_page(path_of(scene.conflict))
    press(page, "a")
    expect(page.locator("[data-lines]")).not_to_contain_text("Precedent:")
    page.get_by_label(f"{before.dispute.ref}, ruled A").check()
    expect(page.locator("[data-lines]")).to_contain_text(f"Precedent: As ruled on {before.dispute.ref}.")
    page.reload()
    expect(page.get_by_label(f"{before.dispute.ref}, ruled A")).to_be_checked()
    shoot(page, "cite-light", full_page=True)
    press(page, "Control+Enter")
    wait_for(lambda: Decision.objects.exclude(pk=earlier.pk).exists(), "the ruling")
    assert Decision.objects.latest("pk").cited == [earlier]

    for name, options in (("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", PHONE)):
        page = open_page(f"{path_of(scene.conflict)}?conflict={scene.conflict.ref}", **options)
        expect(page.get_by_text(f"As ruled on {before.dispute.ref}.")).to_be_visible()
        shoot(page, f"cited-{name}", full_page=True)
        page = open_page("/admin/disputes/precedent/", **options)
        expect(page.get_by_text("1 time", exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        shoot(page, f"precedents-{name}", full_page=True)


def test_an_amendment_is_looked_at_reworded_and_approved(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    Project.objects.filter(pk=scene.ledger.pk).update(settings={"specification": "docs/SPEC.md"})
    page = open_page(path_of(scene.conflict))
    press(page, "a")
    page.get_by_label("Draft the amendment of docs/SPEC.md").check()
    shoot(page, "amend-tick", full_page=True)
    press(page, "Control+Enter")
    page.wait_for_function("document.querySelector('.toast, [role=status]')")
    amendment = Amendment.objects.get()
    address = f"/queue/amendments/{amendment.pk}/"
    page = open_page(address)
    expect(page.get_by_text("A host is drafting it.")).to_be_visible()
    amendments.drafted(amendment, base_sha="a" * 40, sha="b" * 40, diff=AMENDED, section="4.3 Retries")
    for name, options in (("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", PHONE)):
        page = open_page(address, **options)
        expect(page.get_by_text("Section “4.3 Retries”")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        shoot(page, f"amendment-{name}", full_page=True)
        ruled = open_page(f"{path_of(scene.conflict)}?conflict={scene.conflict.ref}", **options)
        expect(ruled.get_by_text("waits for approval")).to_be_visible()
        shoot(ruled, f"amendment-ruled-{name}", full_page=True)
        listed = open_page("/admin/disputes/amendment/", **options)
        shoot(listed, f"amendments-{name}", full_page=True)
    page = open_page(address)
    page.get_by_label("The words, in Markdown").fill("> Back off.")
    page.get_by_role("button", name="Draft it with these words").click()
    expect(page.get_by_text("A host is drafting it.")).to_be_visible()
    amendment.refresh_from_db()
    amendments.drafted(amendment, base_sha="a" * 40, sha="b" * 40, diff=AMENDED, section="4.3 Retries")
    page.get_by_role("link", name="Look again").click()
    page.get_by_role("button", name="Approve and land").click()
    expect(page.get_by_text("approved it.")).to_be_visible()
    amendment.refresh_from_db()
    assert amendment.task is not None
    shoot(page, "amendment-approved", full_page=True)

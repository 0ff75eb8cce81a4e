"""The queue in a real browser: a ruling in three keys, many at once, sleep, undo, the phone, the dark."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from disputes import jobs, opening, triage
from disputes.models import Bulk, Conflict, Decision, Dispute
from tasks.models import Membership
from tests.browser.keys import press
from tests.browser.scene import Scene
from tests.factories import create_submission, create_task, create_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
MANY = 54
Open = Callable[..., "Page"]
Shoot = Callable[..., None]


def add_many(scene: Scene) -> None:
    """More open disputes than a page of the queue holds."""
    for number in range(MANY):
        task = create_task(
            scene.ledger, number=1000 + number, title=f"Export {number}", status="disputed", round=1
        )
        opening.open_conflict(
            task, kind="disagreement", origin="disagree", opened_as="coder", severity="medium",
            question=f"Is export {number} to be streamed?", submission=create_submission(task),
            reviewer_position="It holds all rows in memory.", coder_position="There are few rows.",
        )  # fmt: skip


def test_a_ruling_takes_three_keys_and_undo_stays_in_the_queue(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    page = open_page("/queue/")
    row = page.locator("[data-row]").nth(1)
    expect(row).to_contain_text("exponential back-off")
    press(page, "j")
    expect(row).to_have_attribute("aria-current", "true")
    shoot(page, "queue")
    press(page, "b")
    expect(page.locator("#option-B")).to_be_checked()
    expect(page.locator("[data-lines]")).to_contain_text("uphold_coder")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-toast]")).to_contain_text(f"You ruled B on {scene.dispute.ref}")
    assert Decision.objects.get().option == "uphold_coder"
    page.goto(page.url.split("/queue/")[0] + "/queue/team/?severity=high")
    expect(page.locator("form[data-undo]")).to_contain_text(f"Undo B on {scene.dispute.ref}")
    press(page, "u")
    expect(page.get_by_role("dialog")).to_contain_text(f"B on {scene.dispute.ref}")
    page.keyboard.press("Escape")
    expect(page.locator("form[data-undo]")).to_be_visible()
    press(page, "u")
    page.keyboard.press("Enter")
    expect(page.locator("[data-toast]")).to_contain_text("is undone")
    expect(page).to_have_url(re.compile(r"/queue/team/\?severity=high$"))
    expect(page.locator(".queue-rows")).to_contain_text("exponential back-off")
    assert Conflict.objects.get(pk=scene.conflict.pk).status == "open"


def test_more_than_fifty_are_ruled_on_at_once_and_taken_back(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    add_many(scene)
    page = open_page("/queue/?severity=medium&project=ledger")
    press(page, "x")
    expect(page.locator("[data-picked]")).to_have_text("1")
    for _ in range(2):
        press(page, "j")
    press(page, "Shift+X")
    expect(page.locator("[data-picked]")).to_have_text("3")
    shoot(page, "queue-selected")
    page.get_by_label("All that match").check()
    page.get_by_role("button", name="Rule B").click()
    expect(page.locator(".bulk-lead")).to_contain_text(f"Rule B on {MANY + 1} of {MANY + 1}")
    shoot(page, "bulk-preview")
    page.get_by_label("Why, for all of them").fill("Few rows, and they stay few.")
    page.get_by_role("button", name="Rule B on the selected").click()
    expect(page.locator(".bulk-lead")).to_contain_text(f"{MANY + 1} of {MANY + 1} done")
    shoot(page, "bulk-result")
    assert Decision.objects.filter(bulk=Bulk.objects.get()).count() == MANY + 1
    press(page, "u")
    expect(page.locator("[data-toast]")).to_contain_text(f"{MANY + 1} of {MANY + 1} taken back")
    assert not Conflict.objects.filter(status="decided").exists()


def test_undo_says_where_there_is_nothing_to_undo(open_page: Open, scene: Scene) -> None:
    page = open_page("/queue/")
    press(page, "u")
    expect(page.get_by_role("status").filter(has_text="There is nothing to undo here.")).to_be_visible()


def test_what_is_snoozed_with_a_key_comes_back_by_itself(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page("/queue/")
    question = "refresh tokens"
    expect(page.locator("[data-row]").first).to_contain_text(question)
    press(page, "s")
    expect(page.locator("#menu [name=ending]").first).to_be_focused()
    shoot(page, "queue-menu")
    page.keyboard.press("Enter")
    expect(page.locator("[data-toast]")).to_contain_text("sleeps until")
    expect(page.locator("[data-row]").first).not_to_contain_text(question)
    page.get_by_role("link", name="Snoozed").click()
    expect(page.locator("[data-row]")).to_contain_text(question)
    asleep = Dispute.objects.filter(snoozed_at__isnull=False)
    asleep.update(snoozed_until=timezone.now() - timedelta(seconds=1))
    assert jobs.wake() == "woke 1, released 0"
    page.get_by_role("link", name="Your turn").click()
    expect(page.locator("[data-row]").first).to_contain_text(question)
    press(page, "m")
    expect(page.locator("[data-toast]")).to_contain_text("is yours now")
    expect(page.locator("[data-row][aria-current] .held")).to_contain_text("You")


def test_a_long_question_takes_three_lines_of_the_queue(open_page: Open, scene: Scene) -> None:
    Conflict.objects.update(question="The branch cannot be built and tested here. " * 8)
    Dispute.objects.update(question="The branch cannot be built and tested here. " * 8)
    page = open_page("/queue/")
    for link in page.locator(".cell-question a").all():
        assert link.evaluate("link => link.clientHeight") <= 60
    page.locator(".queue-row").last.click(position={"x": 500, "y": 8})
    expect(page).to_have_url(re.compile("/queue/D-"))


def test_the_queue_fits_a_phone_and_the_dark(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    tom = create_user("tom", first_name="Tom", last_name="Tran")
    Membership.objects.create(project=scene.ledger, user=tom, role="triager")
    triage.assign(scene.help.dispute, User.objects.get(username="lea"), by=tom)
    page = open_page("/queue/", color_scheme="dark")
    triage.claim(scene.dispute, tom)
    page.evaluate("window.dispatchEvent(new Event('focus'))")  # as when one comes back to the tab
    expect(page.locator("[data-row]").nth(1)).to_contain_text("deciding")
    shoot(page, "queue-dark")
    page = open_page("/queue/", **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    Dispute.objects.update(opened_at=timezone.now() - timedelta(days=331))
    page.reload()
    for row in page.locator("[data-row]").all():
        kind, since = (row.locator(each).bounding_box() for each in (".cell-kind", ".since"))
        assert kind["y"] + kind["height"] <= since["y"] or kind["x"] + kind["width"] <= since["x"]
    shoot(page, "queue-phone")
    page.set_viewport_size(
        {"width": 640, "height": 844}
    )  # as a window of twice the width whose text is twice as large
    more = page.locator(".popover", has_text="Older than")
    more.locator("summary").tap()
    expect(more.locator(".popover-body")).to_be_in_viewport(ratio=1)
    page.set_viewport_size(PHONE["viewport"])
    expect(more.locator(".popover-body")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    views = page.locator(".popover", has_text="My views")
    views.locator("summary").tap()
    expect(views.get_by_role("button", name="Save")).to_be_in_viewport(ratio=1)
    views.locator("summary").tap()
    page.locator("[data-pick]").nth(1).tap()
    page.get_by_role("button", name="Rule A").tap()
    expect(page.locator(".bulk-lead")).to_contain_text("Rule A on 2 of 2")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(page, "phone-bulk", full_page=True)
    page.get_by_role("link", name="Back to the queue").tap()
    page.locator("[data-menu]").nth(1).tap()
    expect(page.get_by_role("button", name="Assign to me")).to_be_visible()
    shoot(page, "phone-menu")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_keys_walk_through_a_filter_before_it_applies(open_page: Open, scene: Scene) -> None:
    page = open_page("/queue/")
    kind = page.locator("select[name=kind]")
    kind.focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.wait_for_timeout(300)
    expect(page).to_have_url(re.compile(r"/queue/$"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?kind=silence$"))
    expect(kind).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(page).to_have_url(re.compile(r"\?kind=disagreement$"))
    expect(page.locator("select[name=severity]")).to_be_focused()
    page.locator("select[name=severity]").select_option("high")
    expect(page).to_have_url(re.compile(r"severity=high"))

"""Ruling on a dispute in a real browser: keys, the toast, the phone, the dark, without scripts."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from disputes import opening
from disputes.models import Conflict, Decision
from disputes.rulings import decide, text_of
from tests.browser.keys import press
from tests.browser.scene import Scene
from tests.factories import create_submission, create_task, create_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
PASTE = """length => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text", "x".repeat(length));
    const paste = new ClipboardEvent("paste", { clipboardData, bubbles: true });
    document.getElementById("id_text").dispatchEvent(paste);
}"""
FAINT = """letter => {
    const now = getComputedStyle(letter).borderTopStyle;
    delete document.documentElement.dataset.keys;
    const before = getComputedStyle(letter).borderTopStyle;
    document.documentElement.dataset.keys = "on";
    return [now, before];
}"""
Open = Callable[..., "Page"]
Shoot = Callable[..., None]


def select(page: "Page", question: str) -> None:
    """Move down with J to the row that asks the question."""
    for _ in range(20):
        row = page.locator("[aria-current=true]")
        if question in row.inner_text():
            return
        press(page, "j")
    raise AssertionError(question)


def test_a_ruling_needs_the_keyboard_alone(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page("/queue/")
    expect(page).to_have_title("(7) Queue | Steroids Web")
    select(page, "exponential back-off")
    shoot(page, "queue")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/queue/{scene.dispute.ref}/")
    shoot(page, "dispute-arrival")
    press(page, "d")
    expect(page.get_by_role("button", name="Rule D and open the next")).to_be_visible()
    page.keyboard.type("Back off from 2 s, and show the true time.")
    expect(page.locator("[data-lines]")).to_contain_text("Ruling: Back off from 2 s, and show the true time.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-toast]")).to_contain_text(f"You ruled D on {scene.dispute.ref}")
    decision = Decision.objects.get()
    assert (decision.option, decision.text) == ("other", "Back off from 2 s, and show the true time.")
    shoot(page, "after-ruling")
    press(page, "u")
    expect(page.get_by_role("dialog")).to_contain_text(f"You ruled D on {scene.dispute.ref}")
    shoot(page, "undo-asks")
    page.keyboard.press("Enter")
    expect(page.locator("[data-toast]")).to_contain_text("is undone")
    scene.conflict.refresh_from_db()
    assert scene.conflict.status == Conflict.Status.OPEN


def test_words_typed_at_once_are_words_and_no_commands(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    words = "No but surely Bob may also snooze"
    page = open_page("/queue/")
    select(page, "exponential back-off")
    press(page, "d")
    page.keyboard.type(words[:10])
    expect(page.locator("output.typed")).to_have_text(words[:10])
    shoot(page, "typed-on-the-way")
    page.keyboard.type(words[10:])
    expect(page.locator("#id_text")).to_be_focused()
    expect(page.locator("#id_text")).to_have_value(words)
    expect(page.locator("#option-D")).to_be_checked()
    expect(page.locator("#note")).to_have_value("")

    page.go_back()
    select(page, "exponential back-off")
    press(page, "n")
    page.keyboard.type("Never mind")
    page.keyboard.press("Escape")
    expect(page.locator("output.typed")).to_have_count(0)
    press(page, "n")
    page.keyboard.type(words)
    expect(page.locator("#note")).to_be_focused()
    expect(page.locator("#note")).to_have_value(words)

    page = open_page(f"/queue/{scene.dispute.ref}/", is_alone=True)  # a tab that knows no words of before
    page.keyboard.type("abcdgmsj")  # meant for whatever was there before
    expect(page.locator("html[data-keys=on]")).to_be_attached()
    assert page.locator("label.option .letter").first.evaluate(FAINT) == ["solid", "dashed"]
    expect(page.get_by_role("status")).to_contain_text("What you typed did nothing")
    assert f"/queue/{scene.dispute.ref}/" in page.url
    expect(page.locator("[name=option]:checked")).to_have_count(0)
    press(page, "c")
    expect(page.locator("#option-C")).to_be_checked()

    page = open_page(f"/queue/{scene.dispute.ref}/", is_alone=True)
    page.keyboard.type("b" * 15, delay=100)  # begun too early, and still at it when the page takes letters
    expect(page.locator("html[data-keys=on]")).to_be_attached()
    expect(page.locator("[name=option]:checked")).to_have_count(0)


def test_a_paste_that_does_not_fit_says_so(open_page: Open, scene: Scene) -> None:
    page = open_page(f"/queue/{scene.dispute.ref}/")
    press(page, "d")
    for length, count in ((20_000, 0), (20_001, 1)):
        page.evaluate(PASTE, length)
        expect(page.get_by_text("Only 20,000 characters fit here")).to_have_count(count)


def test_choosing_fills_the_text_and_a_change_of_mind_loses_nothing(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    page = open_page(f"/queue/{scene.dispute.ref}/")
    text = page.locator("#id_text")
    expect(text).to_be_hidden()
    press(page, "a")
    expect(text).to_have_value(scene.conflict.reviewer_position)
    expect(page.locator("#option-A")).to_be_focused()
    press(page, "e")
    page.keyboard.type(" Not before Monday.")
    page.keyboard.press("Escape")
    press(page, "b")
    expect(text).to_have_value(text_of(scene.conflict, "uphold_coder"))
    expect(page.locator("[data-lines]")).to_contain_text("Leave the code at this point as it is.")
    shoot(page, "dispute")
    press(page, "a")
    expect(text).to_have_value(f"{scene.conflict.reviewer_position} Not before Monday.")


def test_pages_fit_a_phone(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    """So do the options at its lower edge, of which a card of silence has five."""
    task = create_task(scene.ledger, number=300, status="disputed", round=2)
    silence = opening.open_conflict(
        task, kind="silence", origin="flagged", opened_as="system", severity="medium",
        question="Was the limit passed over?", submission=create_submission(task),
    )  # fmt: skip
    for path, name in (
        ("/queue/", "queue"),
        (f"/queue/{scene.dispute.ref}/", "dispute"),
        (f"/queue/{scene.help.dispute.ref}/", "help"),
        (f"/queue/{silence.dispute.ref}/", "silence"),
        (f"/queue/{scene.dispute.ref}/diff/", "diff"),
    ):
        page = open_page(path, **PHONE)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, path
        shoot(page, f"phone-{name}")
        shoot(page, f"phone-{name}-full", full_page=True)
        for thumb in page.locator(".thumbs label").all():
            assert thumb.evaluate("each => each.scrollWidth <= each.clientWidth"), thumb.inner_text()
            thumb.tap()
            assert thumb.evaluate("each => getComputedStyle(each).boxShadow") != "none", thumb.inner_text()


def test_snooze_opens_in_its_rail_and_widens_nothing(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    for width in (1440, 1100, 390):
        page = open_page(f"/queue/{scene.dispute.ref}/", viewport={"width": width, "height": 900})
        press(page, "s")
        until = page.locator(f"#until-{scene.dispute.pk}")
        expect(until).to_be_visible()
        expect(page.locator("summary[data-snooze]")).to_be_focused()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        until.scroll_into_view_if_needed()
        shoot(page, f"dispute-snooze-{width}")
        right = page.get_by_role("button", name="Until then").evaluate(
            "each => each.getBoundingClientRect().right"
        )
        assert right <= width


def test_a_phone_has_a_way_back_to_the_queue(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page(f"/queue/{scene.dispute.ref}/", **PHONE)
    back = page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="Queue")
    assert back.evaluate("each => each.getBoundingClientRect().height") >= 40
    shoot(page, "phone-way-back")
    back.tap()
    page.wait_for_url("**/queue/")


def test_thumbs_rule_on_a_phone(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page(f"/queue/{scene.dispute.ref}/", **PHONE)
    page.locator(".thumbs label", has_text="Coder").tap()
    expect(page.locator("#option-B")).to_be_checked()
    page.get_by_text("Check B").tap()
    expect(page.locator("#id_text")).to_be_in_viewport()
    expect(page.locator("[data-lines]")).to_contain_text("B, uphold_coder")
    shoot(page, "phone-check")
    page.get_by_role("button", name="Rule B").tap()
    expect(page.locator("[data-toast]")).to_contain_text("You ruled B")
    page.evaluate(PASTE, 20_001)
    told = [re.compile("You ruled B"), re.compile("Only 20,000")]
    expect(page.locator("[data-toast]")).to_have_text(told)


def test_the_dark_theme_is_dark(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    for path, name in (("/queue/", "queue"), (f"/queue/{scene.dispute.ref}/", "dispute")):
        page = open_page(path, color_scheme="dark")
        expect(page.locator("html.dark")).to_be_visible()
        if name == "dispute":
            press(page, "b")
            expect(page.locator("[data-lines]")).to_contain_text("Ruling:")
        shoot(page, f"{name}-dark")
    page.evaluate("""window.inDark = [];
        for (const kind of ["beforeprint", "afterprint"]) {
            addEventListener(kind, () => inDark.push(document.documentElement.classList.contains("dark")));
        }""")
    page.pdf()
    assert page.evaluate("inDark") == [False, True], "on paper it is light"


def test_a_laptop_shows_both_sides_the_place_and_the_button(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    page = open_page(f"/queue/{scene.dispute.ref}/", viewport={"width": 1440, "height": 760})
    press(page, "a")
    expect(page.locator("[data-lines]")).to_contain_text("Ruling:")
    for selector in (".card-A", ".card-B", ".is-place", "[data-rule]"):
        expect(page.locator(selector)).to_be_in_viewport()
    shoot(page, "dispute-760")


def test_a_card_that_needs_help_has_other_keys(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page(f"/queue/{scene.help.dispute.ref}/")
    press(page, "g")
    expect(page.get_by_role("status")).to_contain_text("G has nothing to do here.")
    press(page, "2")
    expect(page.locator("#option-2")).to_be_checked()
    expect(page.locator("[data-lines]")).to_contain_text("Nothing of this reaches")
    shoot(page, "help")


def test_a_dispute_is_ruled_without_scripts(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page(f"/queue/{scene.dispute.ref}/", java_script_enabled=False)
    page.locator("label.option:has(#option-A)").click()
    expect(page.locator("#id_text")).to_be_visible()
    shoot(page, "no-scripts")
    page.locator("[data-rule]").click()
    expect(page.locator("[data-toast]")).to_contain_text("You ruled A")
    assert Decision.objects.get().text == scene.conflict.reviewer_position


def test_the_loser_of_a_race_keeps_the_text(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page(f"/queue/{scene.dispute.ref}/")
    tom = create_user("tom", first_name="Tom", last_name="Tran", is_superuser=True)
    decide(scene.conflict, "uphold_coder", user=tom)
    press(page, "d")
    page.keyboard.type("Measure it first.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("Tom Tran ruled B")
    expect(page.locator("#id_text")).to_have_value("Measure it first.")
    shoot(page, "lost-race")
    page.locator("#id_reason").fill("Nobody has measured it.")
    page.get_by_role("button", name="Reopen").click()
    expect(page.locator("#option-D")).to_be_checked()
    expect(page.locator("#id_text")).to_have_value("Measure it first.")

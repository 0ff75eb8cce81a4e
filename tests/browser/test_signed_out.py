"""What was typed outlives the end of a session and a lost cookie, and pages say what happened."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

from disputes.models import Decision
from steroidsweb import twice
from tasks.models import Comment, Idempotency, Task
from tests.browser.keys import press
from tests.browser.scene import Scene
from tests.factories import create_host, create_run, create_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Open = Callable[..., "Page"]
Shoot = Callable[..., None]
WORDS = "Back off from 2 s, and show the true time."


@pytest.fixture
def open_page(open_page: Open) -> Open:
    """Each page alone: where a session ends, a late answer may take the next one's cookie away."""
    return partial(open_page, is_alone=True)


def sign_in(page: "Page", name: str = "lea") -> None:
    expect(page.get_by_label("Username")).to_be_focused()
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill("secret-password")
    page.get_by_role("button", name="Sign in").click()


def test_a_ruling_outlives_its_session(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page(f"/queue/{scene.dispute.ref}/")
    press(page, "d")
    page.keyboard.type("Back off from 2 s")
    expect(page.locator("[data-lines]")).to_contain_text("Ruling: Back off from 2 s")
    Session.objects.all().delete()
    page.keyboard.type(WORDS.removeprefix("Back off from 2 s"))
    expect(page.locator("[data-lines]")).to_contain_text("You are signed out.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("What you typed is kept.")).to_be_visible()
    sign_in(page)
    page.wait_for_url(f"**/queue/{scene.dispute.ref}/?conflict=**")
    expect(page.locator("[data-restored]")).to_contain_text("Signed in again; your text is here.")
    expect(page.locator("#id_text")).to_have_value(WORDS)
    shoot(page, "signed-in-again")

    page.context.clear_cookies(name="csrftoken")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done")
    shoot(page, "form-expired")
    page.get_by_role("link", name="Back").click()
    expect(page.locator("#id_text")).to_have_value(WORDS)
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-toast]")).to_contain_text("You ruled D")
    assert Decision.objects.get().text == WORDS


def test_a_choice_outlives_a_sign_in_by_way_of_other_pages(open_page: Open, scene: Scene) -> None:
    """No page says then which one was before it: a provider's redirect comes from another site."""
    page = open_page(f"/queue/{scene.dispute.ref}/")
    address = page.url
    press(page, "a")
    filled = page.locator("#id_text").input_value()
    cookies = page.context.cookies()
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("Password")).to_be_visible()
    page.context.add_cookies(cookies)
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("[data-restored]")).to_contain_text("Signed in again; your text is here.")
    expect(page.locator("#id_text")).to_have_value(filled)
    press(page, "d")
    page.keyboard.type(WORDS)
    page.reload()
    expect(page.locator("[data-restored]")).to_contain_text("What you typed here before is back.")
    page.locator("#option-D").blur()
    press(page, "d")
    page.keyboard.type("!")
    expect(page.locator("#id_text")).to_have_value(f"{WORDS}!")


def test_a_comment_outlives_its_session_and_is_then_forgotten(open_page: Open, scene: Scene) -> None:
    page = open_page(f"/tasks/{scene.task.ref}/")
    page.locator("#note").fill(WORDS)
    Session.objects.all().delete()
    page.locator("#note").locator("xpath=ancestor::form").get_by_role("button", name="Comment").click()
    sign_in(page)
    expect(page.locator("#note")).to_have_value(WORDS)
    page.locator("#note").locator("xpath=ancestor::form").get_by_role("button", name="Comment").click()
    expect(page.locator(".remark", has_text=WORDS)).to_be_visible()
    expect(page.locator("#note")).to_have_value("")
    page.goto(page.url.partition("#")[0])
    expect(page.locator("#note")).to_have_value("")
    assert Comment.objects.filter(body=WORDS).count() == 1


def test_a_log_says_that_the_session_ended(open_page: Open, scene: Scene) -> None:
    run = create_run(scene.task, host=create_host("atlas-1"))
    page = open_page(f"/runs/{run.pk}/")
    expect(page.get_by_role("button", name="Follow")).to_be_visible()
    Session.objects.all().delete()
    expect(page.locator("[data-log-state]")).to_contain_text("You are signed out")


def test_the_pages_that_say_no_have_our_look(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    phone = {"viewport": {"width": 390, "height": 844}}
    for look, options in {"light": {}, "dark": {"color_scheme": "dark"}, "phone": phone}.items():
        page = open_page("/queue/D-99999/", expect=404, **options)
        expect(page.get_by_role("alert")).to_contain_text("There is nothing at /queue/D-99999/")
        shoot(page, f"404-{look}")
        page = open_page("/admin/auth/user/", expect=403, **options)
        expect(page.get_by_role("alert")).to_contain_text("Only superusers may")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shoot(page, f"403-{look}")
        page.context.clear_cookies()
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(page.url.replace("/admin/auth/user/", "/nothing/"))
        shoot(page, f"404-signed-out-{look}")
        page.goto(page.url.replace("/nothing/", "/queue/"))
        expect(page.get_by_label("Password")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert [url for url in asked if "/notifications/" in url] == []


def test_what_any_form_sent_comes_back_to_the_same_person_only(
    open_page: Open, scene: Scene, shoot: Shoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.filter(username="lea").update(is_superuser=True)
    create_user("tom", is_superuser=True)
    page = open_page("/admin/tasks/task/add/")
    page.locator("#id_title").fill("Show the true time")
    page.locator("#id_section").select_option(index=1)
    page.locator("#id_body").fill(WORDS)
    Session.objects.all().delete()
    page.get_by_role("button", name="Save", exact=True).click()
    sign_in(page)
    expect(page.locator(".restored")).to_contain_text("What you sent did not arrive. It is here again.")
    expect(page.locator("#id_body")).to_have_value(WORDS)
    shoot(page, "sent-again")
    sent: list[str] = []
    page.on(
        "request", lambda request: sent.append(request.method) if request.is_navigation_request() else None
    )
    page.route("**/add/", lambda route: (time.sleep(0.3), route.continue_()))  # a slow line, and two presses
    page.get_by_role("button", name="Save", exact=True).evaluate(
        "button => { button.click(); setTimeout(() => button.click(), 50); }"
    )
    expect(page.locator("body")).to_contain_text("was added successfully")
    assert sent == ["POST", "GET"]
    page.unroute("**/add/")
    assert Task.objects.get(title="Show the true time").body == WORDS

    list_page = page.url.partition("/admin/")[0] + f"/projects/{scene.ledger.slug}/tasks/import/"
    page.goto(list_page)
    page.locator("#todo").fill(f"- [ ] {WORDS}")
    dead = Idempotency(status=twice.UNDER_WAY, at=timezone.now())  # the process that worked on it has died
    with monkeypatch.context() as patched:
        patched.setattr(twice, "PATIENCE", 0.2)
        patched.setattr(twice, "_claimed", lambda *_: (dead, False))
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("alert")).to_contain_text("still being worked on")
    page.goto(list_page)
    expect(page.locator(".restored")).to_contain_text("What you sent may not have arrived. It is here again.")
    expect(page.locator("#todo")).to_have_value(f"- [ ] {WORDS}")

    page.goto(list_page)
    page.locator("#todo").fill(f"- [ ] {WORDS}")
    page.context.clear_cookies(name="csrftoken")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done")
    page.get_by_role("link", name="Back").click()
    expect(page.locator("#todo")).to_have_value(f"- [ ] {WORDS}")
    Session.objects.all().delete()
    page.get_by_role("button", name="Preview").click()
    sign_in(page, "tom")
    expect(page.locator("#todo")).to_have_value("")
    expect(page.locator(".restored")).to_have_count(0)

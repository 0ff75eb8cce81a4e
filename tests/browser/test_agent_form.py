"""The form of an agent in a real browser: made by keyboard, checked, seen; the dark and the phone."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django_q.models import OrmQ

from agents.models import Agent
from agents.setup import checking
from tests.browser.scene import Scene
from tests.factories import create_agent, create_submission, create_task, create_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
ADD = "/admin/agents/agent/add/"
Open = Callable[..., "Page"]
Shoot = Callable[..., None]


@pytest.fixture(autouse=True)
def lea(scene: Scene, settings: Any, tmp_path: Path) -> None:
    settings.HOME = tmp_path / "home"
    User.objects.filter(username="lea").update(is_superuser=True)


def test_a_command_is_made_by_keyboard_checked_and_seen(open_page: Open, shoot: Shoot) -> None:
    page = open_page(ADD)
    expect(page.locator("#id_command_line")).to_be_hidden()
    page.locator("#id_name").focus()
    page.keyboard.type("mine")
    page.locator("#id_role").select_option("coder")
    page.locator(".provider-card input:checked").focus()
    for _ in range(4):  # from Claude Code to any command
        page.keyboard.press("ArrowDown")
    expect(page.locator("#id_key")).to_be_hidden()
    page.keyboard.press("Tab")
    expect(page.locator("#id_command_line")).to_be_focused()
    page.keyboard.type("true {prompt}")
    page.locator("button.agent-word", has_text="needs-senior-dev").press("Enter")
    expect(page.locator("#id_watches")).to_have_value("needs-senior-dev")
    shoot(page, "agent-add", full_page=True)
    page.get_by_role("button", name="Save and check").press("Enter")
    expect(page.locator("#last-check")).to_contain_text("Being checked")
    shoot(page, "agent-asked", full_page=True)
    agent = Agent.objects.get(name="mine")
    assert (agent.settings, agent.watches) == ({"argv": ["true", "{prompt}"]}, ["needs-senior-dev"])
    assert OrmQ.objects.count() == 1
    assert checking.check(agent).is_fine  # what the cluster does with the job
    expect(page.locator("#last-check")).to_contain_text("Fine: its command ended with 0")
    page.get_by_text("Advanced", exact=True).press("Enter")
    shoot(page, "agent-checked", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_fits_a_phone_and_opens_where_a_fault_is(open_page: Open, shoot: Shoot, scheme: str) -> None:
    page = open_page(ADD, color_scheme=scheme)
    expect(page.get_by_role("heading", level=1, name="Agents Add agent")).to_be_visible()
    expect(page.locator("#id_name")).to_be_focused()
    page.keyboard.type("mine")
    page.get_by_text("Advanced", exact=True).click()
    page.locator("#id_base_url").fill("nowhere")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("body")).to_contain_text("Server is an address")
    expect(page.locator("#id_base_url")).to_have_value("nowhere")
    expect(page.locator("#id_base_url")).to_be_visible()
    expect(page.locator("#id_base_url")).to_be_focused()
    shoot(page, f"agent-fault-{scheme}", full_page=True)
    page.set_viewport_size(PHONE["viewport"])
    shoot(page, f"agent-phone-{scheme}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_list_that_is_wider_than_its_box_scrolls_below_its_last_row(open_page: Open) -> None:
    create_submission(create_task(title="Deliver what was ordered to whoever ordered it"))
    page = open_page("/admin/tasks/submission/", viewport={"width": 1280, "height": 900})
    bar = page.locator("[data-simplebar]:has(#result_list) > .simplebar-horizontal > .simplebar-scrollbar")
    expect(bar).to_be_visible()
    last = page.locator("#result_list tbody").last.bounding_box()
    assert last["y"] + last["height"] <= bar.bounding_box()["y"]
    page.get_by_role("button", name="Show or hide the sidebar").press("Enter")
    expect(page.locator("#nav-sidebar-apps")).to_be_hidden()


def test_one_long_word_leaves_room_for_the_other_columns(open_page: Open) -> None:
    create_user("W" * 150, first_name="M" * 150)
    create_agent("coder", name="W" * 60, model="W" * 120)
    page = open_page("/admin/", viewport={"width": 1280, "height": 900})
    root = page.url.removesuffix("/admin/")
    for path in ("/admin/agents/agent/", "/admin/auth/user/"):
        page.goto(root + path)
        widths = page.locator("#result_list thead th").evaluate_all("all => all.map(one => one.offsetWidth)")
        assert max(widths) <= 400, (path, widths)


def test_without_a_script_every_field_is_there(open_page: Open, shoot: Shoot) -> None:
    page = open_page(ADD, java_script_enabled=False)
    for name in ("command_line", "key", "passes", "cassettes"):
        expect(page.locator(f"#id_{name}")).to_be_visible()
    page.locator("summary").click()
    expect(page.locator("#id_base_url")).to_be_visible()

"""The settings of a project in a real browser: tabs, faults at their fields, the phone, the dark."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from tasks.models import Membership, Project
from tests.browser.scene import Scene

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
Open = Callable[..., "Page"]
Shoot = Callable[..., None]


@pytest.fixture
def path(scene: Scene) -> str:
    """The page of the scene's project; Lea maintains it."""
    Membership.objects.filter(user__username="lea").update(role=Membership.Role.MAINTAINER)
    return f"/admin/tasks/project/{scene.dispute.project_id}/change/"


def tab(page: "Page", name: str) -> None:
    page.locator("#project_form nav a", has_text=name).click()


def test_a_setting_is_found_on_its_tab_and_saved(
    open_page: Open, scene: Scene, path: str, shoot: Shoot
) -> None:
    User.objects.filter(username="lea").update(is_superuser=True)
    page = open_page(path)
    shoot(page, "project", full_page=True)
    tab(page, "Commands")
    page.locator("#id_build_command").fill("make site\nmake docs")
    shoot(page, "project-commands", full_page=True)
    tab(page, "Agents")
    page.locator("#id_model_ladder").fill("dev-agent:\n  0-1: small\n  2+: escalate\n")
    shoot(page, "project-agents", full_page=True)
    page.locator("[name=_save]").click()
    expect(page.locator("body")).to_contain_text("was changed successfully")
    project = Project.objects.get(pk=scene.dispute.project_id)
    assert project.config.build_command == "make site\nmake docs"
    assert project.config.model_ladder == {"dev-agent": {"0-1": "small", "2+": "escalate"}}


def test_a_fault_opens_its_tab_and_keeps_what_was_typed(
    open_page: Open, scene: Scene, path: str, shoot: Shoot
) -> None:
    page = open_page(path)
    page.locator("#id_rejections_max").fill("4")
    tab(page, "Convergence")
    page.locator("#id_hard_limit").fill("5000")
    tab(page, "Agents")
    page.locator("#id_model_ladder").fill("dev-agent:\n  0-1: small\n")
    page.locator("[name=_save]").click()
    expect(page.locator("body")).to_contain_text("dev-agent has no open end")
    shoot(page, "project-faults", full_page=True)
    expect(page.locator("#id_model_ladder")).to_have_value("dev-agent:\n  0-1: small\n")
    tab(page, "Convergence")
    expect(page.locator("body")).to_contain_text("hard_limit is 5000; it is between 1 and 1000.")
    expect(page.locator("#id_hard_limit")).to_have_value("5000")
    expect(page.locator("#id_rejections_max")).to_have_value("4")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_settings_fit_a_phone(open_page: Open, path: str, shoot: Shoot, scheme: str) -> None:
    page = open_page(path, color_scheme=scheme, **PHONE)
    shoot(page, f"project-phone-{scheme}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_settings_in_the_dark(open_page: Open, path: str, shoot: Shoot) -> None:
    page = open_page(path, color_scheme="dark")
    expect(page.locator("#id_policy_0")).to_be_disabled()  # critical is always hold
    shoot(page, "project-dark", full_page=True)


def test_who_may_only_read_sees_a_table(open_page: Open, scene: Scene, path: str, shoot: Shoot) -> None:
    Membership.objects.filter(user__username="lea").update(role=Membership.Role.VIEWER)
    page = open_page(path)
    expect(page.locator(".setting-table")).to_contain_text("rejections_max")
    assert page.locator("#id_rejections_max").count() == 0
    name = page.locator(".setting-table th code", has_text="rejections_max").evaluate(
        "node => node.getClientRects().length"
    )
    assert name == 1  # a name is not broken between its letters
    shoot(page, "project-reader", full_page=True)
    page.set_viewport_size({"width": 390, "height": 844})
    shoot(page, "project-reader-phone", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

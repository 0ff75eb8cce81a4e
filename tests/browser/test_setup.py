"""A project is set up in a real browser: its commands, its address, the checklist, real trials behind it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Host
from agents.verification import trying
from tasks.models import Project, Task
from tests.agents.world import Remote
from tests.browser.scene import Scene
from tests.factories import create_host, create_project

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
RED = (
    "echo '=== short test summary info ==='; echo 'FAILED tests/test_rates.py::test_half_up - assert 2'; "
    "echo '=== 1 failed, 8 passed in 0.02s ==='; exit 1"
)
Open = Callable[..., "Page"]


class Bench:
    """A project on a real repository, and a host that is driven turn by turn."""

    def __init__(self, folder: Path, settings: Any) -> None:
        settings.HOME = folder / "home"
        self.remote = Remote(folder)
        self.host: Host = create_host(seen_at=timezone.now())
        self.project = create_project(
            "rates", name="Rates", repo_url=str(self.remote.path), base_state="unknown",
            settings={"test_command": RED},
        )  # fmt: skip
        self.project.memberships.create(user=User.objects.get(username="lea"), role="maintainer")

    def turn(self, page: "Page", until: str) -> None:
        """Drive the host until the page, which is not reloaded, says so."""
        line = page.locator("[data-setup-state]")
        for _ in range(600):
            Host.objects.update(seen_at=timezone.now())
            trying.advance(self.host, lambda key, work: work(), only=self.project.pk)
            if line.text_content() == until:
                return
            page.wait_for_timeout(100)
        raise AssertionError(f"The page says {line.text_content()}, not {until}.")


@pytest.fixture
def bench(scene: Scene, tmp_path: Path, settings: Any) -> Bench:
    return Bench(tmp_path, settings)


def test_a_red_branch_is_mended_with_other_commands(open_page: Open, bench: Bench, shoot: Any) -> None:
    User.objects.filter(username="lea").update(is_superuser=True)  # who alone says what hosts run
    page = open_page("/projects/rates/setup/")
    page.evaluate("document.body.dataset.stays = 'yes'")
    bench.turn(page, "Red")
    expect(page.get_by_role("button", name="Accept as it is")).to_be_visible()
    expect(page.locator("#red-title ~ *, .test-names").first).to_be_visible()
    shoot(page, "setup-red", full_page=True)
    page.get_by_text("Failed tests and output").click()
    expect(page.get_by_label("The end of the output of trial 1")).to_contain_text("1 failed, 8 passed")

    page.get_by_label("Test", exact=True).fill("echo one; sleep 4; echo two")
    page.get_by_role("button", name="Save and try").click()
    expect(page.locator(".toast")).to_contain_text("is being tried with these commands")
    page.evaluate("document.body.dataset.stays = 'still'")
    for _ in range(300):
        trying.advance(bench.host, lambda key, work: work(), only=bench.project.pk)
        if page.get_by_label("The end of its output").is_visible():
            break
        page.wait_for_timeout(100)
    expect(page.locator("#running-title")).to_have_text("Trying 1 of 1")
    shoot(page, "setup-trying", full_page=True)
    bench.turn(page, "Green")
    assert page.evaluate("document.body.dataset.stays") == "still", "the page was not reloaded"
    expect(page.locator("[data-setup-line]")).to_have_text("main is green. Work can begin.")
    shoot(page, "setup-green", full_page=True)


def test_a_red_branch_is_accepted_as_it_is(open_page: Open, bench: Bench, shoot: Any) -> None:
    page = open_page("/projects/rates/setup/", color_scheme="dark")
    bench.turn(page, "Red")
    shoot(page, "setup-red-dark", full_page=True)
    page.get_by_role("link", name="Open the card").click()
    expect(page.locator(".result-names")).to_contain_text("tests/test_rates.py::test_half_up")
    expect(page.locator(".result-output")).to_contain_text("1 failed, 8 passed")
    shoot(page, "setup-card-dark")
    page.get_by_role("link", name="Edit the commands").click()
    page.get_by_role("button", name="Accept as it is").click()
    expect(page.locator("[data-setup-state]")).to_have_text("Red, accepted as it is")
    page.set_viewport_size({"width": 390, "height": 844})
    shoot(page, "setup-phone-dark", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    bench.project.refresh_from_db()
    assert bench.project.base_state == "accepted"


def test_a_wrong_address_is_seen_within_seconds_and_mended(open_page: Open, bench: Bench, shoot: Any) -> None:
    right = bench.project.repo_url
    User.objects.filter(username="lea").update(is_superuser=True)
    Project.objects.filter(pk=bench.project.pk).update(repo_url=f"{right}-not")
    page = open_page("/projects/rates/setup/")
    bench.turn(page, "Trouble")
    expect(page.locator("[data-setup-line]")).to_contain_text(f"{right}-not cannot be")
    shoot(page, "setup-wrong-address", full_page=True)
    page.get_by_role("textbox", name="Address").fill(right)
    page.get_by_role("button", name="Save and try").click()
    bench.turn(page, "Red")


def test_an_empty_installation_says_what_it_takes(open_page: Open, scene: Scene, shoot: Any) -> None:
    Project.objects.exclude(pk=scene.ledger.pk).update(slug="demo")
    User.objects.filter(username="lea").update(is_superuser=True)
    Project.objects.filter(slug="ledger").update(status="paused")
    page = open_page("/admin/")
    expect(page.locator("#checklist")).to_have_text("Set up your first project")
    shoot(page, "checklist-empty", full_page=True)
    page.get_by_role("link", name="Add a project").first.click()
    page.locator("#id_name").fill("Rates")
    page.locator("#id_slug").fill("rates")
    page.locator("#id_repo_url").fill("/nowhere/rates.git")
    page.locator("[name=_save]").click()
    expect(page.locator("main h1", has_text="Set-up of Rates")).to_be_visible()
    expect(page.locator("[data-setup-line]")).to_have_text("No host is up to look at it.")
    shoot(page, "setup-new", full_page=True)
    rates = Project.objects.get(name="Rates")
    member = rates.memberships.get()
    assert (member.user.username, member.role, member.is_lead) == ("lea", "maintainer", True)

    page.goto(page.url.replace("/setup/", "/tasks/import/"))
    page.locator("#todo").fill("## Documents\n\n- [ ] Say what it does\n  depends: What is not there\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_contain_text("Line 3: There is no task")
    shoot(page, "import-faults", full_page=True)
    page.locator("#todo").fill("## Documents\n\n- [ ] Say what it does\n  severity: high\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview-title ~ .meta")).to_contain_text("1 new")
    assert not rates.tasks.exists()
    page.get_by_role("button", name="Import").click()
    expect(page.locator(".toast")).to_contain_text("1 task created")
    page.goto(page.url.replace("/board/", "/"))
    shoot(page, "overview", full_page=True)
    page.goto(page.url.replace(f"/projects/{rates.slug}/", "/admin/"))
    expect(page.locator("#checklist")).to_have_text("Set up Rates")
    shoot(page, "checklist-project", full_page=True)
    for path, name in (("/admin/", "checklist-dark"), (f"/projects/{rates.slug}/", "overview-dark")):
        shoot(open_page(path, color_scheme="dark"), name, full_page=True)
    page.set_viewport_size({"width": 390, "height": 844})
    shoot(page, "checklist-phone", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(page.url.replace("/admin/", f"/projects/{rates.slug}/"))
    shoot(page, "overview-phone", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(page.url.replace(f"/projects/{rates.slug}/", "/admin/"))
    Task.objects.filter(project=rates).update(landed_at=timezone.now(), landed_sha="a" * 40)
    page.reload()
    expect(page.locator("#checklist")).to_have_count(0)

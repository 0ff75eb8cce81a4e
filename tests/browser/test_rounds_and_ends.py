"""Taking rounds back and ending a project in a real browser: light, dark, on a phone, without scripts."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from disputes import alerts, rulings
from disputes.completion import endings, rollbacks
from disputes.models import Conflict
from tasks.models import Checkpoint, Project, Task
from tests.browser.scene import Scene
from tests.factories import create_project, create_task

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
LOOKS = {"light": {}, "dark": {"color_scheme": "dark"}, "phone": PHONE}
Open = Callable[..., "Page"]
Shoot = Callable[..., None]


@pytest.fixture
def task(scene: Scene) -> Task:
    """The scene's disputed task; a ruling of one of its rounds was taken back before."""
    task: Task = scene.conflict.task
    lea = User.objects.get(username="lea")
    decision = rulings.decide(scene.conflict, "uphold_reviewer", user=lea, undo_seconds=0)
    task.refresh_from_db()
    rollbacks.roll_back(
        task, rollbacks.last_round(task) - 1, user=lea, reason="It hammers the server after a crash."
    )
    decision.refresh_from_db()
    assert not decision.stands
    task.refresh_from_db()
    return task


@pytest.fixture
def project(scene: Scene) -> Project:
    """Half done, in a warning, with something left of every severity."""
    lea = User.objects.get(username="lea")
    project = create_project("almanac", members={lea: "maintainer"}, name="Almanac")
    titles = {
        "critical": "Keep the balance when two people book at once", 
        "high": "Survive a crash in a booking, and tell whoever was booking what became of the room",
        "medium": "Show the month's sum", "low": "Nicer colours for the chart",
    }  # fmt: skip
    for severity, title in titles.items():
        create_task(project, severity=severity, title=title)
    for number in range(3):
        create_task(project, title=f"Done {number}", status="completed", finished_by="hand")
    for number, net in enumerate([0, 4, -1, 0]):
        Checkpoint.objects.create(
            project=project, number=number, opened=1, resolved=2, net=net, weighted_net=net,
            state="FLAT" if net <= 0 else "CONVERGING",
        )  # fmt: skip
    alerts.open_alert(project, origin="stall", question="Almanac makes no progress.", evidence=["Two turns."])
    return project


@pytest.mark.parametrize("look", LOOKS)
def test_the_pages_fit_and_are_read(
    open_page: Open, task: Task, project: Project, shoot: Shoot, look: str
) -> None:
    for path, name in ((f"/tasks/{task.ref}/rollback/", "rounds"), ("/projects/almanac/end/", "end")):
        page = open_page(path, **LOOKS[look])
        expect(page.locator("h1")).to_be_visible()
        shoot(page, f"{name}-{look}", full_page=True)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= page.viewport_size["width"], name  # type: ignore[index]
        for part in page.locator(".work-scroll").all():
            assert part.evaluate("each => each.scrollWidth <= each.clientWidth"), name
        for beside in page.locator(".labelled > .meta").all():
            assert beside.evaluate("each => each.getClientRects().length") <= 1, name
            assert beside.evaluate("each => each.offsetHeight") < 30, name


def test_rounds_are_taken_back(open_page: Open, task: Task, shoot: Shoot) -> None:
    page = open_page(f"/tasks/{task.ref}/rollback/")
    page.get_by_text("Take back round").first.click()
    page.get_by_label("Why").fill("It still hammers the server.")
    page.get_by_role("button", name="Take back").click()
    expect(page.locator("[data-toast]")).to_contain_text("again")
    shoot(page, "rounds-taken-back", full_page=True)
    assert task.rollbacks.count() == 2


def test_a_ruling_is_made_again_without_scripts(open_page: Open, task: Task, scene: Scene) -> None:
    page = open_page(f"/tasks/{task.ref}/rollback/", java_script_enabled=False)
    page.get_by_label("Words of the ruling").fill("Wait twice as long each time.")
    page.get_by_role("button", name="Rule so again").click()
    expect(page.get_by_text("Ruled again")).to_be_visible()
    again = Conflict.objects.get(previous=scene.conflict)
    assert again.decisions.get().text == "Wait twice as long each time."


def test_a_project_ends_once_everything_is_typed(open_page: Open, project: Project, shoot: Shoot) -> None:
    page = open_page("/projects/almanac/end/")
    page.get_by_label("Ended in a stall").check()
    page.get_by_label("Type exactly: I acknowledge").fill("I acknowledge")
    page.get_by_role("button", name="End the project").click()
    expect(page.get_by_role("alert")).to_contain_text("not acknowledged yet")
    expect(page.get_by_label("Type exactly: I acknowledge")).to_have_value("I acknowledge")
    shoot(page, "end-refused", full_page=True)
    page.get_by_label("Type exactly: I accept").fill(
        "I accept CRITICAL points knowing the result may be unusable"
    )
    for field in page.locator("textarea[name^=rationale]").all():
        field.fill("The old program does it until spring.")
    page.get_by_text("These are left, and the summary names them").click()
    page.get_by_role("button", name="End the project").click()
    expect(page.locator("h1")).to_contain_text("Almanac has ended")
    shoot(page, "ended", full_page=True)
    project.refresh_from_db()
    assert project.exit_type == "stall_exit"
    endings.resume_project(project, user=User.objects.get(username="lea"), reason="Spring is here.")

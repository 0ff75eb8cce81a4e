"""Attempts, reviewers and steps of a ladder in a real browser: wide, on a phone, in the dark."""

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from tasks.models import Task
from tests.browser.scene import Scene
from tests.factories import (
    create_agent,
    create_finding,
    create_review,
    create_run,
    create_submission,
    create_task,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
LOOKS = {"wide": {}, "dark": {"color_scheme": "dark"}, "phone": PHONE}
LADDER = {"0-1": "small", "2-3": "mid", "4-5": "top", "6+": "escalate"}


@pytest.fixture
def climbing(scene: Scene) -> Task:
    """A task on the middle of its ladder, whose last work two of three reviewers have seen."""
    scene.ledger.settings |= {"model_ladder": {"dev-agent": LADDER}, "reviewers": "all"}
    scene.ledger.save()
    for name in ("ann", "ben", "cleo"):
        create_agent("reviewer", name=name)
    task = create_task(scene.ledger, title="Retry failed calls", status="review", round=2)
    over = {"status": "ended", "ended_at": timezone.now(), "stage": "dev"}
    for number, (step, model, reason) in enumerate(
        [("0-1: small", "small-1", "Test expects 42, got 41."), ("0-1: small", "small-1", "The same again."),
         ("2-3: mid", "mid-1", "Suspects the bound of the loop.")]
    ):  # fmt: skip
        create_run(
            task, agent_label=f"dev-{number}", model=model, step=step, outcome="nothing", reason=reason,
            is_counted=True, cost=Decimal("0.42"), **over,
        )  # fmt: skip
    made = create_submission(task, round=1, attempt=1)
    create_run(task, submission=made, outcome="handed_in", step="2-3: mid", cost=Decimal("1.2"), **over)
    create_finding(create_review(made, by_agent="ben", turn=1))
    create_review(made, by_agent="ann", verdict="APPROVED", turn=1)
    last = create_submission(task, round=2, attempt=1)
    create_review(last, by_agent="ann", verdict="APPROVED", turn=task.version)
    return task


@pytest.mark.parametrize("look", LOOKS)
def test_a_task_shows_its_attempts_and_who_is_missing(
    open_page: Callable[..., "Page"], shoot: Callable[..., None], climbing: Task, look: str
) -> None:
    page = open_page(f"/tasks/{climbing.ref}/", **LOOKS[look])
    expect(page.locator("#attempts")).to_contain_text("on the ladder: step 2 of 3, 2-3: mid")
    expect(page.locator("#attempts tbody tr")).to_have_count(3)
    expect(page.locator("#rounds")).to_contain_text("They differ; the strictest verdict stands.")
    expect(page.locator("#rounds")).to_contain_text("Still to come: ben, cleo")
    expect(page.locator("#round-2")).to_contain_text("More reviews to come")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shoot(page, f"ladder-task-{look}", full_page=True)


@pytest.mark.parametrize("look", LOOKS)
def test_the_insights_show_what_each_step_is_worth(
    open_page: Callable[..., "Page"], shoot: Callable[..., None], climbing: Task, look: str
) -> None:
    page = open_page("/insights/", **LOOKS[look])
    box = page.locator("section", has=page.locator("#ladders"))
    expect(box).to_contain_text("dev 0-1: small")
    expect(box).to_contain_text("$0.84")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    box.scroll_into_view_if_needed()
    shoot(page, f"ladder-insights-{look}")

"""What people see of the money: a live run, its task, the dashboard, a card about a cap, the prompts."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Output, Run
from agents.money import caps
from agents.prompts import templates, texts
from disputes.models import Conflict
from tests.browser.keys import press
from tests.browser.scene import Scene
from tests.factories import create_agent, create_host, create_run, create_task

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Open = Callable[..., "Page"]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {}, "dark": {"color_scheme": "dark"}, "phone": {"viewport": {"width": 390, "height": 844}},
}  # fmt: skip


@pytest.fixture
def run(scene: Scene) -> Run:
    """A coder at work that has cost something, on a task on which others have been."""
    now = timezone.now()
    task = create_task(
        scene.ledger, number=210, title="Reconcile FX differences", status="in_progress", round=2
    )
    over = {"status": "ended", "started_at": now - timedelta(hours=2), "ended_at": now}
    create_run(
        task, agent_label="coder-7", outcome="cost", cost=Decimal("4.0215"), cost_from="agent",
        tokens_in=812_000, tokens_cached=9_400_000, tokens_out=61_000, model="claude-sonnet-4-5", round=1,
        reason="The cap of a run is reached: $4.02 of $4.00 is spent.", **over,
    )  # fmt: skip
    create_run(task, "reviewer", agent_label="home-grown", outcome="handed_in", tokens_in=90_000, **over)
    run = create_run(
        task, agent=create_agent("coder", name="coder-7"), agent_label="coder-7", model="claude-sonnet-4-5",
        host=create_host("atlas-1", seen_at=now + timedelta(hours=1)), round=2, started_at=now,
        last_output_at=now, tokens_in=120_000, tokens_out=9_500, cost=Decimal("0.5025"), cost_from="prices",
        template_hash=templates.hash_of("coder"),
    )  # fmt: skip
    Output.objects.create(run=run, seq=0, text="reading fx.py\n")
    return run


@pytest.mark.parametrize("look", LOOKS)
def test_a_live_run_shows_its_cost_and_renews_it(
    open_page: Open, shoot: Callable[..., None], run: Run, look: str
) -> None:
    page = open_page(f"/runs/{run.pk}/", **LOOKS[look])
    expect(page.locator("[data-run-cost]")).to_have_text("$0.50, from the price list")
    Run.objects.filter(pk=run.pk).update(cost=Decimal("0.75"), tokens_in=200_000)
    expect(page.locator("[data-run-cost]")).to_have_text("$0.75, from the price list")
    expect(page.locator("[data-run-tokens]")).to_have_text("200k in, 9,500 out")
    shoot(page, f"cost-run-{look}", full_page=True)


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_of_the_money_can_be_read(
    open_page: Open, shoot: Callable[..., None], scene: Scene, run: Run, look: str
) -> None:
    scene.ledger.settings = {"task_cost_max": 4, "day_cost_max": 4}
    scene.ledger.save()
    spent = create_task(scene.ledger, number=211, title="Round fees", status="in_progress", round=1)
    create_run(
        spent, agent_label="coder-7", cost=Decimal("4.2"), cost_from="agent", status="ended",
        ended_at=timezone.now(), model="claude-sonnet-4-5", tokens_in=700_000,
    )  # fmt: skip
    reached = caps.by_task(spent)
    assert reached
    caps.ask(spent, reached)
    conflict = Conflict.objects.get(origin="budget")
    lea = User.objects.get(username="lea")
    texts.write(scene.ledger, "coder", templates.own_source("coder"), user=lea)
    places = {
        "runs": "/runs/", "task": f"/tasks/{run.task.ref}/", "dashboard": "/admin/",
        "card": f"/queue/{conflict.dispute.ref}/", "prompts": "/admin/agents/prompttext/",
        "prompt-add": "/admin/agents/prompttext/add/", "insights": "/insights/",
    }  # fmt: skip
    for name, path in places.items():
        page = open_page(path, **LOOKS[look])
        width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width <= 0, f"{name} is {width} px too wide"
        shoot(page, f"cost-{name}-{look}", full_page=True)
    if look != "phone":
        page.set_viewport_size({"width": 1280, "height": 900})
        beyond = "table => table.scrollWidth - table.parentElement.clientWidth"
        assert page.locator("section:has(#costs) table").evaluate(beyond) <= 0


def test_the_field_of_a_raise_asks_for_an_amount(open_page: Open, scene: Scene) -> None:
    scene.ledger.settings = {"task_cost_max": 4}
    scene.ledger.save()
    spent = create_task(scene.ledger, number=211, title="Round fees", status="in_progress", round=1)
    create_run(
        spent, agent_label="coder-7", cost=Decimal("4.2"), cost_from="agent", status="ended",
        ended_at=timezone.now(),
    )  # fmt: skip
    reached = caps.by_task(spent)
    assert reached
    caps.ask(spent, reached)
    page = open_page(f"/queue/{Conflict.objects.get(origin='budget').dispute.ref}/")
    press(page, "4")
    expect(page.locator("#id_text")).to_have_attribute("placeholder", "By how much, such as 5, and why")

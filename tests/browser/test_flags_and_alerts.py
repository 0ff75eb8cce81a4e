"""Cards that are no disagreement yet: silence, a coder that declines, a project that stalls."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from disputes import alerts
from disputes.completion import rates
from disputes.models import Conflict, Dispute
from disputes.protocol.silence.suspicion import Suspicion
from disputes.silence import flags
from tasks.events import Actor
from tasks.models import Answer, Project
from tasks.states import Severity
from tests.browser.keys import press
from tests.browser.scene import STAT, Scene
from tests.factories import create_finding, create_review, create_submission, create_task

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
Open = Callable[..., "Page"]
Shoot = Callable[..., None]
LOOKS = [("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", PHONE)]
SEEN = ["No answer names ISSUE-R1-001.", "4 of 5 other findings were answered.", "The place is unchanged."]


def silent(ledger: Project) -> Dispute:
    """A critical finding that the next submission passes over."""
    task = create_task(ledger, number=231, title="Rotate the signing keys", status="review", round=2)
    review = create_review(create_submission(task, round=1, diff_stat=STAT), by_agent="reviewer-2")
    finding = create_finding(
        review, severity="critical", title="The old key stays valid for ever after a rotation",
        impact="A leaked key can sign until somebody notices.",
        suggestion="Refuse the old key 24 hours after the new one is active.",
        path="keys/rotation.py", line=58,
    )  # fmt: skip
    suspicion = Suspicion(
        finding.code, 1, Severity.CRITICAL, ("H1", "H4"), "high", "warn", tuple(SEEN), overlap=0.0
    )
    submission = create_submission(task, round=2, diff_stat=STAT)
    flags.raise_flags(submission, [(finding, suspicion)])
    return Dispute.objects.get(task=task)


def declining(ledger: Project) -> Dispute:
    """A coder that declines four of five."""
    task = create_task(ledger, number=233, title="Limit the size of uploads", status="disputed", round=2)
    review = create_review(create_submission(task, round=1), by_agent="reviewer-2")
    submission = create_submission(task, round=2, diff_stat=STAT)
    for number in range(5):
        finding = create_finding(review, title=f"Part {number + 1} of an upload is not counted")
        kind = "declined" if number else "addressed"
        Answer.objects.create(submission=submission, finding=finding, kind=kind, text="It is small.")
    rates.check(submission, actor=Actor("run", "coder-1"))
    return Dispute.objects.get(task=task)


@pytest.mark.parametrize(("look", "options"), LOOKS)
def test_a_flag_shows_its_evidence_and_asks_first(
    open_page: Open, scene: Scene, shoot: Shoot, look: str, options: dict[str, object]
) -> None:
    dispute = silent(scene.ledger)
    page = open_page(f"/queue/{dispute.ref}/", **options)
    expect(page.locator(".evidence")).to_contain_text("The place is unchanged.")
    page.locator("label.option:has(#option-1)").click()
    expect(page.locator("[data-lines]")).to_contain_text("1, ask")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shoot(page, f"flag-{look}", full_page=True)


def test_a_flag_that_is_converted_becomes_a_conflict(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    dispute = silent(scene.ledger)
    page = open_page(f"/queue/{dispute.ref}/")
    press(page, "3")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-toast]")).to_contain_text("You ruled Convert")
    conflict = Conflict.objects.get(dispute=dispute, kind="disagreement")
    page.goto(page.url.split("/queue/")[0] + f"/queue/{dispute.ref}/")
    expect(page.locator(".card-B")).to_contain_text("Not stated")
    expect(page.locator(".recommended")).to_have_count(1)
    shoot(page, "converted", full_page=True)
    assert (conflict.origin, conflict.effect) == ("converted", "hold")


@pytest.mark.parametrize(("look", "options"), LOOKS)
def test_an_alert_lists_what_was_declined_and_lets_people_lower_it(
    open_page: Open, scene: Scene, shoot: Shoot, look: str, options: dict[str, object]
) -> None:
    dispute = declining(scene.ledger)
    page = open_page(f"/queue/{dispute.ref}/", **options)
    expect(page.locator("h1")).to_contain_text("4 of 5")
    expect(page.locator(".weigh-row")).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shoot(page, f"alert-{look}", full_page=True)


def test_a_finding_is_lowered_with_a_reason(open_page: Open, scene: Scene) -> None:
    dispute = declining(scene.ledger)
    page = open_page(f"/queue/{dispute.ref}/")
    row = page.locator(".weigh-row").first
    row.locator("select").select_option("low")
    row.locator("[name=reason]").fill("An upload has one part.")
    row.get_by_role("button", name="Change").click()
    expect(page.locator("[data-toast]")).to_contain_text("is low now")
    expect(page.locator(".weigh-row").first).to_contain_text("was high")


@pytest.mark.parametrize(("look", "options"), LOOKS)
def test_a_project_that_stalls_asks_how_to_go_on(
    open_page: Open, scene: Scene, shoot: Shoot, look: str, options: dict[str, object]
) -> None:
    conflict = alerts.open_alert(
        scene.ledger, origin="stall", question="No progress for 2 checkpoints: 3 done, 4 came up.",
        evidence=["Checkpoint 6: FLAT, weighted net -2.", "Checkpoint 7: FLAT, weighted net 0."],
    )  # fmt: skip
    page = open_page(f"/queue/{conflict.dispute.ref}/", **options)
    page.locator("label.option:has(#option-4)").click()
    expect(page.locator("#option-4")).to_be_checked()
    expect(page.locator("[data-rule]")).to_contain_text(
        f"Rule {page.locator('#option-4').get_attribute('data-letter')}"
    )
    expect(page.locator("[data-preview]")).to_have_count(0)  # no answer is for a coder
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shoot(page, f"stall-{look}", full_page=True)
    page.locator("[data-rule]").click()
    expect(page.locator("[data-toast]")).to_contain_text("It is carried out.")
    scene.ledger.refresh_from_db()
    assert scene.ledger.status == "paused"

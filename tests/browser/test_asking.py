"""Asking the judge in a real browser, reading the opinion, and adopting what people and judges agree on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from disputes import opinions, rulings
from disputes.models import Conflict, Decision, Dispute, Opinion
from disputes.opinions import Said
from tasks.configuration.changing import configure
from tasks.events import Actor
from tests.browser.keys import press
from tests.browser.scene import Scene
from tests.browser.test_dispute import disputed, path_of
from tests.factories import create_agent

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
Open = Callable[..., "Page"]
Shoot = Callable[..., None]
SAGE = {"name": "sage-1", "model": "opus", "vendor": "elsewhere"}
REASONS = (
    "`webhooks/delivery.py:89` uses `RETRY_DELAY` for every attempt, so all failures of one outage come back "
    "together.\n\nThe rate limiter bounds the requests, not the queue that builds up behind it."
)


def give(conflict: Conflict, verdict: str, reasons: str = REASONS) -> None:
    """The judge answers what was asked."""
    said = Said(verdict, reasons=reasons, agent="sage-1", model="opus", vendor="elsewhere")
    opinions.give(
        Opinion.objects.get(conflict=conflict, kind="judge", state="asked"),
        said,
        actor=Actor("run", "sage-1"),
    )


def test_one_key_asks_the_judge_and_its_opinion_is_read_before_ruling(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    create_agent("judge", **SAGE)
    create_agent("mediator", name="calm-1", vendor="elsewhere")
    conflict = disputed(scene, "high")
    page = open_page(path_of(conflict))
    press(page, "d")
    page.keyboard.type("Back off")
    page.keyboard.press("Escape")
    shoot(page, "ask", full_page=True)
    press(page, "g")
    expect(page.locator("[data-toast]")).to_contain_text("The judge is asked")
    expect(page.locator("#id_text")).to_have_value("Back off")  # what was typed is still there
    expect(page.locator(".opinion-asked")).to_contain_text("by Lea Lindt")
    expect(page.locator("[data-judge]")).to_have_count(0)
    shoot(page, "asked", full_page=True)
    press(page, "p")
    expect(page.locator("[data-toast]")).to_contain_text("The mediator is asked")
    give(conflict, "enforce")
    page.reload()
    card = page.locator(".opinion-given")
    expect(card).to_contain_text("Enforce: the reviewer is right")
    expect(card).to_contain_text("sage-1 \u00b7 opus \u00b7 elsewhere")
    expect(card).to_contain_text("The rate limiter bounds the requests")
    expect(page.locator(".recommended")).to_contain_text("The judge:")
    shoot(page, "opinion", full_page=True)
    dark = open_page(path_of(conflict), color_scheme="dark")
    expect(dark.locator(".opinion-given")).to_be_visible()
    shoot(dark, "opinion-dark", full_page=True)
    phone = open_page(path_of(conflict), **PHONE)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(phone, "opinion-phone", full_page=True)
    press(page, "b")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-toast]")).to_contain_text("You ruled B")
    assert Decision.objects.get().authority == "person"


def test_without_a_judge_a_hint_says_how_to_assign_one(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    configure(scene.ledger, {"on_dispute": "judge"}, actor=Actor("system", "Tests"))
    page = open_page(path_of(disputed(scene, "high")), **PHONE)
    expect(page.locator(".asking")).to_contain_text("manage.py add_agent NAME --role judge")
    expect(page.locator("[data-judge]")).to_have_count(0)
    shoot(page, "no-judge-phone", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_policys_ruling_says_whose_it_is_and_one_key_takes_it_back(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    create_agent("judge", **SAGE)
    lea = User.objects.get(username="lea")
    configure(scene.ledger, {"on_dispute": "judge", "prompt_user": False}, actor=Actor.person(lea))
    conflict = disputed(scene, "high", opened_as="coder")
    opinions.apply_policy(scene.ledger)
    give(conflict, "dismiss")
    page = open_page(path_of(conflict))
    expect(page.locator(".ruled")).to_contain_text("ruled by Lea Lindt\u2019s policy")
    shoot(page, "by-policy", full_page=True)
    press(page, "u")
    expect(page.locator("[data-toast]")).to_contain_text("is undone")
    conflict.refresh_from_db()
    assert conflict.status == Conflict.Status.OPEN


def test_what_judge_and_precedents_agree_on_is_adopted_in_bulk(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    create_agent("judge", **SAGE)
    lea = User.objects.get(username="lea")
    before = disputed(scene, "high")
    rulings.decide(before, "uphold_coder", user=lea)
    Dispute.objects.filter(pk=before.dispute_id).update(status="closed")
    agreeing, differing = disputed(scene, "high"), disputed(scene, "high")
    for conflict, verdict in ((agreeing, "dismiss"), (differing, "enforce")):
        opinions.ask(conflict, "judge", user=lea)
        give(conflict, verdict)
    page = open_page("/queue/")
    expect(page.locator(".judge-chip").first).to_contain_text("Judge: ")
    shoot(page, "queue-chips")
    for conflict in (agreeing, differing):
        page.locator(f"[data-pick][value='{conflict.dispute_id}']").check()
    page.get_by_role("button", name="Adopt agreed", exact=True).click()
    expect(page.locator(".bulk-lead")).to_contain_text("Adopt agreed on 1 of 2")
    expect(page.locator(".bulk-list")).to_contain_text("As the judge sage-1 says: `webhooks/delivery.py:89`")
    shoot(page, "adopt")
    page.get_by_role("button", name="Adopt agreed on the selected").click()
    expect(page.locator(".bulk-lead")).to_contain_text("1 of 1 done")
    decision = Decision.objects.get(conflict=agreeing)
    assert (decision.user, decision.option, decision.authority) == (lea, "uphold_coder", "person")
    assert not Decision.objects.filter(conflict=differing).exists()

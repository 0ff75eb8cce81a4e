"""The dispute page in a real browser: stale pages, friction by risk, drafts, comments, the diff."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from disputes import opening, rulings
from disputes.models import Conflict, Decision, Flag
from disputes.silence import flags
from tasks.events import Actor
from tasks.models import Comment
from tasks.remarks.comments import add_comment
from tests.browser.keys import press
from tests.browser.scene import DIFF, EXCERPT, STAT, Scene
from tests.factories import create_finding, create_review, create_submission, create_task, create_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
# What a page puts into its regions after it was loaded, which is all that screen readers tell of them.
TOLD = """
    window.told = [];
    addEventListener("load", () => new MutationObserver((changes) => {
        for (const change of changes.filter(({ target }) => target.closest?.("[role=status]"))) {
            told.push(...[...change.addedNodes].map((node) => node.textContent));
        }
    }).observe(document.body, { childList: true, subtree: true }));
"""
Open = Callable[..., "Page"]
Shoot = Callable[..., None]


def disputed(scene: Scene, severity: str, **kwargs: object) -> Conflict:
    """One more task with a declined finding of that severity."""
    number = 300 + Conflict.objects.count()
    task = create_task(
        scene.ledger, number=number, title="Send SMS again", status="disputed", round=1,
        body="Failed messages are sent again.", source="docs/SPEC.md#4.4",
    )  # fmt: skip
    submission = create_submission(task, diff=DIFF, diff_stat=STAT)
    finding = create_finding(
        create_review(submission, by_agent="reviewer-2", by_model="Codex"), severity=severity,
        title="A failed SMS is sent again after a fixed delay.", path="webhooks/delivery.py", line=89,
        excerpt=EXCERPT, excerpt_start=81,
    )  # fmt: skip
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "human", "finding": finding,
        "submission": submission, "severity": severity,
        "question": "Should a failed SMS be retried with exponential back-off, or after a fixed delay?",
        "reviewer_position": "Exponential back-off with full jitter: base 2 s, factor 2, cap 15 min.",
        "reviewer_label": "reviewer-2", "coder_label": "coder-1",
        "coder_position": "I keep the fixed delay. The limiter bounds us to 50 messages per second.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, **given)  # type: ignore[arg-type]


def path_of(conflict: Conflict) -> str:
    return f"/queue/{conflict.dispute.ref}/"


def test_a_stale_page_is_refused_and_a_reload_loses_nothing(
    open_page: Open, scene: Scene, shoot: Shoot
) -> None:
    page = open_page(path_of(scene.conflict))
    press(page, "d")
    page.keyboard.type("Back off, and say when.")
    page.locator("#id_rationale").fill("The page must not lie.")
    page.reload()
    expect(page.locator("[data-restored]")).to_be_visible()
    expect(page.locator("#option-D")).to_be_checked()
    expect(page.locator("#id_text")).to_have_value("Back off, and say when.")
    expect(page.locator("#id_rationale")).to_have_value("The page must not lie.")
    scene.task.findings.update(impact="Two merchants fall over.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("has changed since you opened it")
    expect(page.locator("#id_text")).to_have_value("Back off, and say when.")
    expect(page.locator(".card-A")).to_contain_text("Two merchants fall over.")
    shoot(page, "stale")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-toast]")).to_contain_text("You ruled D")
    assert Decision.objects.get().text == "Back off, and say when."


def test_at_low_one_key_rules_and_another_takes_it_back(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    conflict = disputed(scene, "low")
    page = open_page(path_of(conflict))
    shoot(page, "low")
    press(page, "b")
    expect(page.locator("[data-toast]")).to_contain_text("You ruled B")
    assert Decision.objects.get().conflict_id == conflict.pk
    press(page, "u")
    page.keyboard.press("Enter")
    expect(page.locator("[data-toast]")).to_contain_text("is undone")
    press(page, "d")
    expect(page.locator("#id_text")).to_be_focused()
    conflict.refresh_from_db()
    assert conflict.status == Conflict.Status.OPEN


def test_critical_takes_the_code_and_a_reason(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    conflict = disputed(scene, "critical")
    page = open_page(path_of(conflict))
    press(page, "a")
    expect(page.locator("[data-lines]")).to_contain_text("Ruling:")
    shoot(page, "critical")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-opened]")).to_be_focused()
    press(page, "o")
    expect(page.locator(".is-place")).to_be_visible()
    expect(page.locator("[data-opened]")).to_be_checked()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#id_rationale")).to_be_focused()
    page.keyboard.type("Merchants must survive an outage.")
    shoot(page, "critical-opened")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-toast]")).to_contain_text("You ruled A")
    assert Decision.objects.get().rationale == "Merchants must survive an outage."
    toast, form = page.locator("[data-toast]").bounding_box(), page.locator(".dispute-decide").bounding_box()
    assert toast
    assert form
    assert toast["x"] >= form["x"] + form["width"], "It covers the code or the options of the next card."


def test_a_comment_names_a_member_and_outlives_a_reload(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    tom = create_user("tom", first_name="Tom", last_name="Tran")
    scene.ledger.memberships.create(user=tom, role="triager")
    page = open_page(path_of(scene.conflict), is_alone=True)
    page.add_init_script(TOLD)
    press(page, "n")
    expect(page.locator("#note")).to_be_focused()
    page.keyboard.type("@tom, is **the cap** fine?")
    page.reload()
    expect(page.locator("#note")).to_have_value("@tom, is **the cap** fine?")
    page.locator("#note").press("Control+Enter")
    expect(page.locator(".remark", has_text="is the cap fine?")).to_be_visible()
    expect(page.locator("#note")).to_have_value("")
    page.wait_for_function("told.some((text) => text.includes('Your comment was added.'))")
    comment = Comment.objects.get(by_label="Lea Lindt")
    add_comment(scene.ledger, "Yes, with jitter.", actor=Actor.person(tom), task=scene.task, parent=comment)
    page.reload()
    expect(page.locator(".is-reply")).to_contain_text("Yes, with jitter.")
    shoot(page, "comments")


def test_code_is_copied_as_it_is(open_page: Open, scene: Scene) -> None:
    page = open_page(path_of(scene.conflict))
    expect(page.locator(".code-pin")).to_be_visible()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.code'))")
    copied = page.evaluate("getSelection().toString()").replace(
        "        raise DeliveryFailed(event.pk)\n", ""
    )
    assert copied.strip("\n") == EXCERPT


def test_the_diff_stands_side_by_side(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    page = open_page(path_of(scene.conflict))
    press(page, "v")
    page.wait_for_url("**/diff/**")
    shoot(page, "diff")
    press(page, "x")
    expect(page.locator(".code-split").first).to_be_visible()
    assert "view=split" in page.url
    shoot(page, "diff-split")
    press(page, "v")
    page.wait_for_url(f"**/queue/{scene.dispute.ref}/**")


def test_every_state_has_its_look(open_page: Open, scene: Scene, shoot: Shoot) -> None:
    """Evidence, precedents, another's claim; light, dark, on a phone."""
    tom = create_user("tom", first_name="Tom", last_name="Tran", is_superuser=True)
    rulings.decide(disputed(scene, "high"), "uphold_reviewer", user=tom, rationale="No herd after an outage.")
    silent = flagged(scene)
    scene.dispute.claimed_by, scene.dispute.claimed_until = tom, timezone.now() + timedelta(minutes=4)
    scene.dispute.save()
    for theme in ("light", "dark"):
        page = open_page(path_of(silent), color_scheme=theme)
        press(page, "2")
        expect(page.locator("[data-lines]")).to_contain_text("Decided since")
        expect(page.get_by_text("A suspicion, not a verdict")).to_be_visible()
        shoot(page, f"silence-{theme}")
        page = open_page(path_of(scene.conflict), color_scheme=theme)
        press(page, "c")
        expect(page.locator(".claim")).to_contain_text("Tom is deciding")
        expect(page.get_by_text("1 similar")).to_be_visible()
        shoot(page, f"dispute-{theme}", full_page=True)
    page = open_page(path_of(silent), **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(page, "phone-silence", full_page=True)
    page = open_page(f"{path_of(scene.conflict)}diff/?view=split", **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def flagged(scene: Scene) -> Conflict:
    """A finding that nobody answered, with what speaks for either reading."""
    task = create_task(scene.ledger, number=207, title="Convert amounts at booking", status="review", round=5)
    review = create_review(create_submission(task, round=3), by_agent="reviewer-2", by_model="Codex")
    finding = create_finding(
        review, code="ISSUE-R3-002", title="`RateClient.fetch` calls the rate service without a timeout.",
        impact="When the service hangs, the booking worker hangs with it.", path="rates/client.py", line=32,
        suggestion="Pass `timeout=(3, 10)` and retry once.", excerpt_start=29,
        excerpt="class RateClient:\n    def fetch(self, pair, day):\n        url = self.url(pair, day)\n"
        "        answer = self.session.get(url)\n        answer.raise_for_status()",
    )  # fmt: skip
    silent = create_submission(task, round=5, by_agent="coder-3", by_model="Gemini CLI")
    flag = Flag.objects.create(
        finding=finding, submission=silent, heuristics=["H1", "H4"], level="warn", overlap=0.12,
        evidence=[
            'ISSUE-R3-002 (high): "`RateClient.fetch` calls the rate service without a timeout."',
            "no table row, heading, bold lead-in, check box or DISAGREE block names it",
            "4 of 6 other findings are answered",
            'section "rates/client.py:32" is unchanged',
            "the same concern found no answer in rounds: 4",
            "forgot? other findings are answered", "avoided? its neighbours are answered",
            "avoided? it was passed over before",
        ],
    )  # fmt: skip
    flags._card(flag, finding, Actor("system", "System"))
    conflict = Conflict.objects.get(finding=finding)
    assert conflict.kind == Conflict.Kind.SILENCE
    return conflict

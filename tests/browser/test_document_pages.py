"""The pages of rounds about documents in a real browser: light, dark, on a phone."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from disputes.completion import checkpoints, rollbacks
from tasks.models import Project, Submission
from tests.browser.scene import Scene
from tests.rounds import document_project, gap_in, proposal, propose, review, tick, verdict

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "device_scale_factor": 1}
LOOKS = {"light": {}, "dark": {"color_scheme": "dark"}, "phone": PHONE}
Open = Callable[..., "Page"]
Shoot = Callable[..., None]
DIFF = """\
diff --git a/spec.md b/spec.md
--- a/spec.md
+++ b/spec.md
@@ -1,3 +1,4 @@
 # Sign in
-A session ends at some time.
+A session ends 30 minutes after its last request.
+It ends 12 hours after its start, whatever happens.
 Nobody signs in twice.
"""


@pytest.fixture
def project(scene: Scene) -> Project:
    """Three rounds, one of them taken back, a disagreement, a blocked gap and one that came up."""
    lea = User.objects.get(username="lea")
    made = document_project("manual", name="Manual", members={lea: "maintainer"})
    codes = [f"GAP-AUTH-{number:03d}" for number in range(1, 6)]
    for code, severity in zip(codes, ["critical", "high", "high", "medium", "low"], strict=True):
        gap_in(made, code, severity)

    def beat() -> None:
        checkpoints.take_checkpoint(made.pk)

    session = tick(made)
    beat()
    session = propose(session, proposal(*codes[:4]))
    found = ("ISSUE-R1-001", codes[0], "Nobody says what happens at midnight")
    said = dict.fromkeys(codes[1:4], "APPROVED") | {codes[0]: "NEEDS_REVISION"}
    session = review(session, verdict("NEEDS_REVISION", said, found))
    beat()
    session = propose(session, proposal(codes[4]))
    session = review(session, verdict("NEEDS_REVISION", {codes[4]: "NEEDS_REVISION"}))
    beat()
    rollbacks.roll_back(session, 1, user=lea, reason="It left the critical gap alone.")
    session = tick(made)
    new = "- **GAP-AUTH-090** (LOW): What does a guest see?"
    more = "BLOCKED_NEEDS_INPUT: GAP-AUTH-005 the contract"
    session = propose(session, proposal(codes[0], answers=("ISSUE-R1-001",), new=new, more=more))
    session = review(session, verdict("APPROVED", {codes[0]: "APPROVED"}))
    beat()
    Submission.objects.filter(task=session).update(since_last_round=DIFF, diff=DIFF)
    return made


@pytest.mark.parametrize("look", LOOKS)
def test_the_rounds_of_a_session_are_told_on_one_page(
    project: Project, open_page: Open, shoot: Shoot, look: str
) -> None:
    page = open_page(f"/projects/{project.slug}/rounds/", **LOOKS[look])

    expect(page.locator("main h1")).to_have_text("Rounds of Manual")
    rows = page.locator(".round-row")
    assert [row.get_attribute("data-round") for row in rows.all()] == ["2", "2", "1"]
    expect(rows.nth(1)).to_contain_text("taken back")
    expect(rows.nth(0)).to_contain_text("Waits for input: GAP-AUTH-005")
    expect(page.locator("[data-gap=GAP-AUTH-090]")).to_have_class("gap depth-1")
    expect(page.locator("[data-gap=GAP-AUTH-005] .gap-state")).to_have_text("blocked external")
    expect(page.locator("svg.figure-chart rect")).not_to_have_count(0)
    shoot(page, f"rounds-{look}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.get_by_role("link", name="Round 2", exact=True).click()

    papers = page.locator(".paper")
    expect(papers).to_have_count(2)
    expect(papers.nth(0)).to_contain_text("The limit of GAP-AUTH-001 is 30 seconds")
    expect(papers.nth(1)).to_contain_text("approved")
    expect(page.locator(".code-split")).to_contain_text("A session ends 30 minutes after its last request.")
    shoot(page, f"round-{look}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


ROUNDS = """\
Written last week.
=== round_001/engineer.md
# Proposal

## GAP-FLOW-001: Retries

We wait between tries, and say so in a line of the log that is rather long, so that it has to be wrapped.
=== round_001/reviewer.md
### ISSUE-R1-001: The wait has no limit

- **Severity:** HIGH
- **Location:** Section 2

### ISSUE-R1-002: A word is missing
"""


@pytest.mark.parametrize("look", LOOKS)
def test_an_end_an_import_and_a_pushed_dispute_say_what_becomes_of_them(
    project: Project, scene: Scene, open_page: Open, shoot: Shoot, look: str
) -> None:
    page = open_page(f"/projects/{project.slug}/end/", **LOOKS[look])
    expect(page.locator(".unlanded")).to_contain_text("would not land with an end now: GAP-AUTH-001")
    expect(page.locator(".unlanded button")).to_have_text("Put them off and finish the session")
    shoot(page, f"ending-{look}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.goto(f"{page.url.partition('/projects/')[0]}/projects/{project.slug}/rounds/import/")
    page.get_by_label("Session").fill("Last week")
    page.get_by_label("Documents").fill(ROUNDS)
    expect(page.get_by_role("button", name="Import what is shown")).to_have_count(0)
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".reading")).to_have_count(2)
    expect(page.locator(".reading").nth(1)).to_contain_text("ISSUE-R1-001, high, Section 2, line 1")
    shoot(page, f"import-rounds-{look}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Import what is shown").click()
    page.wait_for_url("**/board/")
    assert project.tasks.get(origin="import").title == "GAP-FLOW-001: Retries"

    branch = f"disputed/{scene.task.ref}-0c5ae1f2"
    Submission.objects.filter(task=scene.task).update(aside_branch=branch)
    for name, path in (("task", f"/tasks/{scene.task.ref}/"), ("dispute", f"/queue/{scene.dispute.ref}/")):
        page.goto(f"{page.url.partition('/projects/')[0].partition('/tasks/')[0]}{path}")
        expect(page.get_by_text(branch).first).to_be_visible()
        shoot(page, f"pushed-{name}-{look}", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

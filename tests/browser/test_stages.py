"""The board of a project with six stages, and a dispute between two of them, as people use them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from disputes import stage_objections
from tasks.events import Actor
from tasks.models import Comment, Task
from tests.browser.keys import press
from tests.browser.scene import Scene
from tests.factories import create_agent, create_submission, create_task

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Open = Callable[..., "Page"]
DEV, ARCHITECT = Actor("run", "dev-agent"), Actor("run", "test-architect")
TARGET = "tests/test_trades.py::test_trade_cancellation"


def place(
    scene: Scene, number: int, title: str, stage: str, status: str = "in_progress", **more: Any
) -> Task:
    task = create_task(scene.ledger, number=number, title=title, status=status, round=2, rank=number)
    Task.objects.filter(pk=task.pk).update(stage=stage, **more)
    task.refresh_from_db()
    return task


@pytest.fixture
def pipeline(scene: Scene) -> Task:
    """Tasks at each stage, in a column of specialists, sent back; the last one waits for a human."""
    scene.ledger.settings = {"stages": "full"}
    scene.ledger.save()
    for kind in ("story-agent", "architect-agent", "test-architect", "dev-agent", "review-agent"):
        create_agent("coder", name=kind, kind=kind)
    create_task(scene.ledger, number=301, title="Import bank statements", rank=301)
    place(scene, 302, "Close the fiscal year", "arch", "review")
    place(scene, 303, "Split payments", "dev")
    place(scene, 304, "Rounding of VAT", "qa")
    place(
        scene, 305, "Two writers lose an entry", "needs-concurrency-expert", home_stage="dev",
        escalation="concurrency",
    )  # fmt: skip
    back = place(scene, 306, "Reverse a booking", "dev")
    stage_objections.send_back(
        back, "The test books twice.", target="tests/test_reverse.py", parent=None, actor=DEV
    )
    stuck = place(scene, 247, "Cancel trades", "dev")
    create_submission(stuck, stage="tests", round=1)
    said = [
        "This test assumes synchronous cancellation, but the architecture specifies async.",
        "The architecture says async for trades, not for their cancellation.",
        "Section 4 speaks of cancellation, too.",
        "Section 4 was withdrawn in March.",
    ]
    for number, body in enumerate(said):
        root = stuck.comments.filter(parent=None).first()
        stuck.refresh_from_db()
        if number % 2:
            stage_objections.disagree(stuck, body, parent=root, actor=ARCHITECT)
        else:
            stage_objections.send_back(stuck, body, target=TARGET, parent=root, actor=DEV)
    stuck.refresh_from_db()
    return stuck


def no_sideways_scrolling(page: "Page") -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_board_of_six_stages_shows_who_watches_what(open_page: Open, pipeline: Task, shoot: Any) -> None:
    page = open_page("/projects/ledger/board/")
    titles = page.locator("[data-column] [data-title]").all_inner_texts()

    assert titles == [
        "Stories", "Architecture", "Tests", "Development", "Review", "QA", "Needs a concurrency expert",
        "Backflow", "Failed", "Needs a person", "Deferred", "Done",
    ]  # fmt: skip
    expect(page.locator("[data-column=backflow]")).to_contain_text("Tests, sent back by dev")
    expect(page.locator("[data-column=stage-qa]")).to_contain_text("Nobody watches it")
    expect(page.locator("[data-column=stage-dev]")).to_contain_text("Watched by dev-agent")
    assert no_sideways_scrolling(page)
    shoot(page, "stages-board")

    page.get_by_label("Dispute").select_option("dispute-tests-vs-dev")
    expect(page.locator("[data-card]")).to_have_count(2)


def test_a_card_of_a_stage_is_moved_by_keys(open_page: Open, pipeline: Task) -> None:
    page = open_page("/projects/ledger/board/")
    press(page, "j")
    press(page, "Shift+L")
    page.get_by_role("dialog").get_by_label("Why").fill("Not this year.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-column=deferred]")).to_contain_text("ledger-301")

    assert Task.objects.get(number=301, project__slug="ledger").status == "deferred"


def test_a_dispute_between_stages_shows_both_sides_and_is_ruled_on(
    open_page: Open, pipeline: Task, shoot: Any
) -> None:
    conflict = pipeline.disputes.get().conflicts.get()
    page = open_page(reverse("dispute", args=[conflict.dispute_id]))
    body = page.locator("body")

    expect(page.get_by_role("heading", level=1)).to_contain_text("Agents disagree after 3 rounds")
    for words in ("assumes synchronous cancellation", "Section 4 was withdrawn", "Rounds: 3"):
        expect(body).to_contain_text(words)
    expect(body).to_contain_text("dev-agent, test-architect, dev-agent, test-architect")
    expect(body).to_contain_text("dev objects")
    expect(body).to_contain_text("tests replies")
    expect(body).to_contain_text("Round 6: tests changes it; then dev goes on.")
    shoot(page, "stages-dispute")
    press(page, "a")
    expect(body).to_contain_text(f"Change {TARGET}, the work of stage tests.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".toast")).to_be_visible()
    pipeline.refresh_from_db()
    assert (pipeline.status, pipeline.stage, pipeline.home_stage) == ("in_progress", "tests", "dev")


def test_a_thread_is_resolved_and_opened_on_the_tasks_page(
    open_page: Open, pipeline: Task, shoot: Any
) -> None:
    page = open_page(f"/tasks/{pipeline.ref}/")
    thread = page.locator(".thread")

    expect(page.locator("body")).to_contain_text("Tests (3 of 6), sent back by dev")
    expect(thread.locator(".remark")).to_have_count(4)
    expect(thread).to_contain_text("sent it back from dev")
    expect(thread).to_contain_text("disagreed at tests")
    shoot(page, "stages-task", full_page=True)

    thread.get_by_role("button", name="Resolve").click()
    expect(page.locator(".thread summary").first).to_contain_text("Resolved")
    assert Comment.objects.get(task=pipeline, parent=None).status == "resolved"


LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_pages_of_a_pipeline_fit_every_look(
    open_page: Open, pipeline: Task, shoot: Any, look: str
) -> None:
    for name, path in {"board": "/projects/ledger/board/", "task": f"/tasks/{pipeline.ref}/"}.items():
        page = open_page(path, **LOOKS[look])
        shoot(page, f"stages-{name}-{look}", full_page=look == "phone")
        assert no_sideways_scrolling(page), f"{name} scrolls sideways"

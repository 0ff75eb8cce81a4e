"""The task page, the board, the runs and the live log, as people use them."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Output, Run
from disputes.models import Conflict, Dispute, Opinion
from tasks.models import Comment, Landing, Task
from tests.browser.keys import press
from tests.browser.scene import DIFF, STAT, Scene
from tests.factories import create_agent, create_host, create_run, create_submission, create_task, sha

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Open = Callable[..., "Page"]

LOG = "\x1b[1mreading\x1b[0m webhooks/delivery.py\nrunning pytest -q tests/webhooks\n<b>41 passed</b>\n"


@pytest.fixture
def run(scene: Scene) -> Run:
    """A coder at work on a task of its own; another one is queued, others are over."""
    now = timezone.now()
    host = create_host("atlas-1", seen_at=now + timedelta(hours=1))
    agent = create_agent("coder", name="coder-7")
    task = create_task(
        scene.ledger, number=210, title="Reconcile FX differences", status="in_progress", round=2,
        severity="high", body="Half-even, by the currency's exponent.", source="docs/SPEC.md#5.1",
    )  # fmt: skip
    create_submission(task, round=1, diff=DIFF, diff_stat=STAT, state="red", problem="tests: 3 failed")
    run = create_run(
        task, agent=agent, agent_label="coder-7", model="Claude Code", host=host, round=2,
        queued_at=now - timedelta(minutes=13), started_at=now - timedelta(minutes=12), last_output_at=now,
    )  # fmt: skip
    Output.objects.create(run=run, seq=0, text=LOG)
    waiting = create_task(scene.ledger, number=191, title="Invoice export as CSV", status="review", round=3)
    create_run(waiting, "reviewer", status="queued", agent_label="reviewer-2")
    over = {"status": "ended", "started_at": now - timedelta(hours=2), "ended_at": now - timedelta(hours=1)}
    create_run(task, agent_label="coder-7", host=host, outcome="handed_in", round=1, **over)
    create_run(
        waiting, "reviewer", agent_label="reviewer-2", host=host, outcome="silent",
        reason="No output for 15 m.", is_counted=True, **over,
    )  # fmt: skip
    return run


def board(scene: Scene) -> None:
    """Tasks in every column."""
    for number, title, status in [
        (225, "Choose the ledger partition key", "pending"),
        (231, "Sketch the refund flow", "pending"),
        (240, "Archive closed accounts", "deferred"),
        (193, "Nightly balance check", "cancelled"),
    ]:
        create_task(scene.ledger, number=number, title=title, status=status, rank=number)
    done = create_task(scene.ledger, number=196, title="VAT per line item", status="review", round=1)
    Task.objects.filter(pk=done.pk).update(status="completed", accepted=create_submission(done))
    Landing.objects.create(
        project=scene.ledger, task=done, submission=done.submissions.get(), sha=sha("7"), target="main"
    )


def no_sideways_scrolling(page: "Page") -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_the_log_follows_a_running_agent(open_page: Open, run: Run, shoot: Any) -> None:
    page = open_page(f"/runs/{run.pk}/")
    text, follow = page.locator("[data-log-text]"), page.get_by_role("button", name="Follow")
    expect(text).to_contain_text("<b>41 passed</b>")
    expect(text).not_to_contain_text("[1m")
    expect(follow).to_have_attribute("aria-pressed", "true")

    Output.objects.create(run=run, seq=1, text="".join(f"line {number}\n" for number in range(200)))
    expect(text).to_contain_text("line 199")
    shoot(page, "run")
    text.evaluate("pre => { pre.scrollTop = 10; }")
    expect(follow).to_have_attribute("aria-pressed", "false")
    Output.objects.create(run=run, seq=2, text="the last line\n")
    expect(text).to_contain_text("the last line")
    assert text.evaluate("pre => pre.scrollTop") == 10

    follow.click()
    expect(follow).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(
        "pre => pre.scrollHeight - pre.scrollTop - pre.clientHeight < 24", arg=text.element_handle()
    )
    expect(page.get_by_role("button", name="Stop run")).to_be_visible()
    Run.objects.filter(pk=run.pk).update(status="ended", outcome="handed_in", ended_at=timezone.now())
    expect(page.locator("[data-log-state]")).to_contain_text("Handed in")
    expect(page.get_by_role("button", name="Stop run")).to_be_hidden()


def test_a_run_is_stopped_and_its_task_deferred(open_page: Open, run: Run, shoot: Any) -> None:
    page = open_page(f"/runs/{run.pk}/")
    shoot(page, "run-stoppable")
    page.get_by_role("button", name="Stop and defer").click()
    expect(page.locator(".toast")).to_contain_text("ledger-210 is deferred: nothing begins it")
    expect(page.locator(".fact-row")).to_contain_text("Running")
    Run.objects.filter(pk=run.pk).update(status="ended", outcome="stopped", ended_at=timezone.now())
    expect(page.locator("[data-log-state]")).to_contain_text("Stopped")
    expect(page.locator(".fact-row")).to_contain_text("Ended: stopped")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_text("ledger-210 is deferred; nothing begins it.")).to_be_visible()
    shoot(page, "run-deferred")
    run.refresh_from_db()
    assert run.stop_requested
    task = run.task
    task.refresh_from_db()
    assert task.status == "deferred"


def test_a_run_is_stopped_from_the_list(open_page: Open, run: Run, shoot: Any) -> None:
    page = open_page("/runs/")
    shoot(page, "runs")
    page.get_by_role("button", name=f"Stop run {run.pk}").click()
    expect(page.locator(".toast")).to_contain_text(f"Run {run.pk} is asked to stop.")
    expect(page.get_by_role("button", name=f"Stop run {run.pk}")).to_be_disabled()
    run.refresh_from_db()
    assert run.stop_requested


def test_a_card_is_moved_by_keys_and_by_dragging(open_page: Open, scene: Scene, shoot: Any) -> None:
    board(scene)
    page = open_page("/projects/ledger/board/")
    current = page.locator("[data-card][aria-current]")
    press(page, "j")
    expect(current).to_have_attribute("id", "ledger-225")
    press(page, "j")
    press(page, "Shift+L")  # past the columns that the table does not allow
    expect(page.get_by_role("heading", name="Defer: ledger-231")).to_be_visible()
    page.keyboard.type("Later.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".toast")).to_contain_text("ledger-231 is deferred now.")
    expect(current).to_have_attribute("id", "ledger-231")
    expect(page.locator("[data-column=deferred] [data-card]")).to_have_count(2)
    task = Task.objects.get(number=231)
    assert (task.status, task.events.latest("pk").note) == ("deferred", "Later.")

    page.locator("#ledger-240").drag_to(page.locator("[data-column=pending] header"))
    expect(page.get_by_role("heading", name="Resume: ledger-240")).to_be_visible()
    shoot(page, "board-move")
    Task.objects.filter(number=240).update(version=9)  # somebody else is faster
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("alert")).to_contain_text("ledger-240 has moved on")
    expect(page.locator("[data-column=deferred] #ledger-240")).to_be_visible()
    page.locator("#ledger-240").drag_to(page.locator("[data-column=human] header"))
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_phone_opens_the_board_where_somebody_is_needed_or_something_happens(
    open_page: Open, scene: Scene, run: Run
) -> None:
    board = f"/projects/{scene.ledger.slug}/board/"

    def shows(card: str) -> None:
        page = open_page(board, viewport={"width": 390, "height": 844})
        expect(page.locator("[data-column]").first).not_to_be_in_viewport(ratio=0.5)
        expect(page.locator(card).first).to_be_in_viewport(ratio=0.9)

    shows("[data-column=human] [data-card]")
    scene.ledger.tasks.filter(status="disputed").update(status="cancelled")
    shows(f"#{run.task.ref}")
    scene.ledger.tasks.exclude(status="cancelled").update(status="deferred")
    shows("[data-column=deferred] [data-card]")


def test_what_is_folded_up_says_so(open_page: Open, scene: Scene) -> None:
    Task.objects.filter(pk=scene.task.pk).update(body="Long. " * 200)
    for path in (f"/tasks/{scene.task.ref}/", f"/queue/{scene.dispute.ref}/"):
        heads = open_page(path).locator("summary.box-head")
        signs = heads.evaluate_all("all => all.map((each) => getComputedStyle(each, '::before').content)")
        assert signs
        assert all("\u25b6" in sign or "\u25bc" in sign for sign in signs)


def test_the_keyboards_first_stop_leads_past_the_sidebar(open_page: Open, scene: Scene, shoot: Any) -> None:
    for name, path in {"page": "/runs/", "admin": "/admin/", "list": "/admin/tasks/project/"}.items():
        page = open_page(path)
        link = page.get_by_role("link", name="Skip to the content")
        expect(link).not_to_be_in_viewport()
        page.keyboard.press("Tab")
        expect(link).to_be_focused()
        expect(link).to_be_in_viewport()
        shoot(page, f"skip-{name}")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        inside = "document.querySelector('#content').contains(document.activeElement)"
        assert page.evaluate(inside), page.evaluate("document.activeElement.outerHTML")
    page.get_by_role("button", name="Find a page").press("Enter")
    expect(page.locator("#search-input-command")).to_be_focused()


# The regions that scroll and hold nothing that takes the focus; each must take it, and say what it is.
UNREACHED = """() => [...document.querySelectorAll("#content *")].filter(box => {
    const {overflowX, overflowY} = getComputedStyle(box), moves = /auto|scroll/;
    const isLong = box.scrollHeight > box.clientHeight + 1 && moves.test(overflowY);
    const isWide = box.scrollWidth > box.clientWidth + 1 && moves.test(overflowX);
    const isNamed = box.matches("[tabindex='0']:is([aria-label], [aria-labelledby])");
    return (isLong || isWide) && !isNamed && !box.querySelector("a[href], button, input, textarea, summary");
}).map(box => box.outerHTML.slice(0, 120))"""


def test_what_scrolls_is_a_stop_of_the_tab_key_with_a_name(open_page: Open, scene: Scene, run: Run) -> None:
    Output.objects.create(run=run, seq=1, text="wide " * 200 + "\n")
    Opinion.objects.create(
        conflict=scene.conflict, kind="judge", state="given", verdict="enforce", given_at=timezone.now(),
        reasons="Long.\n" * 200,
    )  # fmt: skip
    for task in (scene.task, run.task):
        Comment.objects.create(
            project=scene.ledger, task=task, by_label="Tom", by_kind="person",
            body=f"```\n{'wide ' * 200}\n```\n\n| a |\n|---|\n| {'wide' * 200} |",
        )  # fmt: skip
    names = {
        f"/queue/{scene.dispute.ref}/": ["Judge: ", "Comments"],
        f"/tasks/{run.task.ref}/": ["Comments"],
        "/admin/": [f"{run.task.ref} {run.task.title}"],
    }
    for path, wanted in names.items():
        page = open_page(path)
        expect(page.locator("main, [role=main]")).to_have_count(1)
        for name in wanted:
            expect(page.locator(f'[tabindex="0"][aria-label^="{name}"]').first).to_be_attached()
        assert page.evaluate(UNREACHED) == []


PAPER = {"width": 794, "height": 1123}  # A4 upright
OUT_OF_SIGHT = """() => [...document.querySelectorAll("#content *")].filter(box => {
    const {overflowX, overflowY} = getComputedStyle(box), moves = /auto|scroll/;
    const right = box.getBoundingClientRect().right;
    return box.scrollHeight > box.clientHeight + 1 && moves.test(overflowY) && box.clientHeight
        || box.scrollWidth > box.clientWidth + 1 && moves.test(overflowX) && box.clientWidth
        || right > innerWidth + 1 && !box.closest(".for-readers");
}).map(box => box.outerHTML.slice(0, 120))"""


def test_the_pages_fit_a_phone_and_the_dark_and_paper(
    open_page: Open, scene: Scene, run: Run, shoot: Any
) -> None:
    board(scene)
    paths = {
        "task": "/tasks/ledger-210/", "task-disputed": "/tasks/ledger-214/",
        "board": "/projects/ledger/board/", "runs": "/runs/", "run": f"/runs/{run.pk}/",
        "task-events": "/tasks/ledger-214/events/", "task-diff": "/tasks/ledger-214/diff/",
    }  # fmt: skip
    dark = {"color_scheme": "dark"}
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    for look, options in {"light": {}, "dark": dark, "phone": phone}.items():
        page = open_page("/runs/", **options)
        for name, path in paths.items():
            page.goto(page.url.removesuffix(urlsplit(page.url).path) + path)
            expect(page.locator("main h1, main h2").first).to_be_attached()
            shoot(page, f"{name}-{look}", full_page=look == "phone")
            assert no_sideways_scrolling(page), f"{name} scrolls sideways: {look}"
    page = open_page("/runs/", viewport=PAPER)
    for path in paths.values():
        page.emulate_media(media="screen")
        page.goto(page.url.removesuffix(urlsplit(page.url).path) + path)
        page.emulate_media(media="print")
        expect(page.locator("main").first).to_be_visible()
        expect(page.locator("#nav-sidebar")).not_to_be_visible()
        assert page.evaluate(OUT_OF_SIGHT) == [], path


MOVED = """window.moved = []; new PerformanceObserver(list => list.getEntries().forEach(each => {
    const shown = each.sources.map(({node}) => node?.outerHTML?.slice(0, 80));
    if (!each.hadRecentInput) window.moved.push([each.value, shown]);
})).observe({type: "layout-shift", buffered: true});"""


def test_nothing_moves_where_letters_and_scripts_come_late(open_page: Open, scene: Scene) -> None:
    """As on a phone's slow line at the first visit."""
    User.objects.filter(username="lea").update(is_superuser=True)
    page = open_page("/healthz", is_alone=True)
    root = page.url.removesuffix("/healthz")
    page.add_init_script(MOVED)

    def late(route: Any) -> None:
        time.sleep(0.15)
        route.continue_()

    page.route("**/*.woff2", late)
    page.route("**/agent-form.js", late)
    sizes = ({"width": 1280, "height": 900}, {"width": 390, "height": 844})
    for path in ("/admin/agents/agent/add/", "/projects/ledger/tasks/import/", "/sessions/", "/insights/"):
        for size in sizes:
            page.set_viewport_size(size)
            page.goto(root + path, wait_until="networkidle")
            moved = page.evaluate("window.moved")
            assert sum(value for value, _ in moved) < 0.02, (path, size, moved)


# Whether the first letter of what the element holds stands at the right of its last one.
FROM_THE_RIGHT = """element => {
    const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
    const at = [0, text.data.trimEnd().length - 1].map(number => {
        const range = document.createRange();
        range.setStart(text, number);
        range.setEnd(text, number + 1);
        return range.getBoundingClientRect().left;
    });
    return at[0] > at[1];
}"""


def test_what_is_written_from_right_to_left_reads_so_on_every_page(open_page: Open, scene: Scene) -> None:
    """From its first word to its full stop, with the number of a task in the middle."""
    hebrew = "\u05e9\u05dc\u05d5\u05dd ledger-3 \u05e2\u05d5\u05dc\u05dd."
    Task.objects.filter(pk=scene.task.pk).update(title=hebrew, status="pending")
    Conflict.objects.filter(pk=scene.conflict.pk).update(question=hebrew, coder_position=hebrew)
    Dispute.objects.filter(pk=scene.dispute.pk).update(question=hebrew)
    Comment.objects.create(
        project=scene.ledger, task=scene.task, by_label="Tom", by_kind="person", body=hebrew
    )  # fmt: skip
    for path, selector in (
        ("/projects/ledger/board/", f"#{scene.task.ref} a"),
        ("/queue/team/", f".cell-question a[href='/queue/{scene.dispute.ref}/']"),
        (f"/queue/{scene.dispute.ref}/", "h1"),
        (f"/queue/{scene.dispute.ref}/", ".card-B blockquote >> nth=0"),
        (f"/tasks/{scene.task.ref}/", ".remark .markdown p >> nth=-1"),
        ("/admin/tasks/task/", f"#result_list :text('{hebrew}')"),
    ):
        written = open_page(path).locator(selector)
        expect(written).to_contain_text(hebrew)
        assert written.evaluate(FROM_THE_RIGHT), path

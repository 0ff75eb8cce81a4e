"""Every page under axe: nothing serious or critical for people with other means than eyes and a mouse.

And none is wider than its window.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tasks.models import FollowedTodo, Project
from tests.browser.pages import every_page, fill_scene, our_pages
from tests.browser.scene import Scene
from tests.browser.test_document_pages import PHONE, project  # noqa: F401  (a fixture)

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

AXE = Path(
    os.environ.get("STEROIDS_AXE")
    or Path(__file__).parents[2] / "var/axe/node_modules/axe-core/axe.min.js"  # where `make axe` puts it
)
Open = Callable[..., "Page"]
# The sidebar is the same on all pages: it is looked at once.
RUN = """async context => {
    const found = await axe.run(context, {resultTypes: ["violations"], iframes: false});
    const grave = found.violations.filter(each => ["serious", "critical"].includes(each.impact));
    const why = node => [...node.any, ...node.all, ...node.none].map(one => one.message).join(" ");
    const told = node => `${node.target.join(" ")} ${node.html.slice(0, 160)} ${why(node).slice(0, 160)}`;
    return grave.flatMap(each => each.nodes.slice(0, 4).map(node => `${each.id}: ${told(node)}`));
}"""

BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: `make axe` installs it, or STEROIDS_AXE names its axe.min.js.")
    return AXE.read_text(encoding="utf-8")


def faults(page: "Page", paths: list[str], axe: str) -> list[str]:
    """What axe finds on each of the pages; they load nothing else meanwhile."""
    root, found = page.url.removesuffix("/healthz"), []
    context: dict[str, list[str]] = {"include": ["html"]}
    for path in paths:
        answer = page.goto(root + path)
        assert answer is not None
        assert answer.status == 200, f"{path} answers {answer.status}"
        expect(page.locator("html[x-cloak]")).to_have_count(0)  # Alpine is done with the page
        if path == "/api/docs/":
            continue  # Swagger UI is not ours
        if beyond := page.evaluate(BEYOND):
            found.append(f"{path} scrolls sideways by {beyond} pixels")
        page.evaluate(axe)
        found += [f"{path} {fault}" for fault in page.evaluate(RUN, context)]
        context = {"include": ["html"], "exclude": ["#nav-sidebar"]}
    return found


def test_no_page_has_a_grave_fault_in_the_light(open_page: Open, scene: Scene, axe: str) -> None:
    fill_scene(scene)
    page = open_page("/healthz", viewport={"width": 1280, "height": 800})
    found = faults(page, every_page(scene), axe)
    assert not found, "\n" + "\n".join(found)


def test_no_page_of_ours_has_a_grave_fault_in_the_dark(open_page: Open, scene: Scene, axe: str) -> None:
    fill_scene(scene)
    pages = ["/admin/", "/admin/tasks/task/", *our_pages(scene)]
    found = faults(open_page("/healthz", color_scheme="dark"), pages, axe)
    assert not found, "\n" + "\n".join(found)


def test_no_page_of_ours_has_a_grave_fault_on_a_phone(
    open_page: Open,
    scene: Scene,
    axe: str,
    project: Project,  # noqa: F811
) -> None:
    """Also the pages of rounds about documents, the list of precedents, and what an import shows first."""
    fill_scene(scene)
    settings = scene.ledger.settings | {"todo_path": "docs/TODO.md", "todo_branch": "main"}
    Project.objects.filter(pk=scene.ledger.pk).update(settings=settings)
    FollowedTodo.objects.create(
        project=scene.ledger, waiting="0c5ae1f2" * 5, waiting_for=["New: Pay Mallory (Soon, medium)"],
        problem="Somebody changed docs/TODO.md on ticks; it stays so until that is merged or deleted.",
    )  # fmt: skip
    of_documents = [f"/projects/{project.slug}/{page}" for page in ("", "rounds/", "rounds/1/", "end/")]
    pages = [*our_pages(scene), "/admin/disputes/precedent/", *of_documents]
    page = open_page("/healthz", **PHONE)
    found = faults(page, pages, axe)
    for path, typed in PREVIEWS.items():
        page.goto(page.url.partition("/projects/")[0] + f"/projects/{scene.ledger.slug}/{path}")
        for name, text in typed.items():
            page.locator(f"[name={name}]").fill(text)
        page.get_by_role("button", name="Preview").click()
        page.locator("button[name=import]").wait_for()
        page.evaluate(axe)
        found += [f"{path} {fault}" for fault in page.evaluate(RUN, {"include": ["main"]})]
    assert not found, "\n" + "\n".join(found)


PREVIEWS = {
    "tasks/import/": {"text": "# Ledger\n\n1. [ ] Round half up\nThe bank does.\n- [x] Begin\n"},
    "rounds/import/": {
        "name": "first",
        "text": "=== round_001/reviewer.md\n# Review\n\n### ISSUE-R1-001: [HIGH] It grows\n\n"
        "**Verdict:** NEEDS_REVISION\n",
    },
}

"""Every page full of hostile texts, under axe.

No text runs or becomes markup, no page is wider than its window, and nothing is serious or critical for
people with other means than eyes and a mouse.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tasks.models import FollowedTodo, Project
from tests.browser.pages import every_page, fill_scene, our_pages
from tests.browser.scene import Scene
from tests.browser.test_document_pages import project  # noqa: F401  (a fixture)
from tests.hostile import TEXTS, Filler

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

AXE = Path(
    os.environ.get("STEROIDS_AXE")
    or Path(__file__).parents[2] / "var/axe/node_modules/axe-core/axe.min.js"  # where `make axe` puts it
)
Open = Callable[..., "Page"]
RUN = """async ([context, only, without]) => {
    const isGrave = each => ["serious", "critical"].includes(each.impact);
    const minor = axe._audit.rules.filter(each => each.impact && !isGrave(each)).map(each => each.id);
    const off = {rules: Object.fromEntries([...minor, ...without].map(id => [id, {enabled: false}]))};
    const chosen = only.length ? {runOnly: only} : off;
    const options = {resultTypes: ["violations"], iframes: false, preload: false, ...chosen};
    const found = await axe.run(context, options);
    const grave = found.violations.filter(isGrave);
    const why = node => [...node.any, ...node.all, ...node.none].map(one => one.message).join(" ");
    const told = node => `${node.target.join(" ")} ${node.html.slice(0, 160)} ${why(node).slice(0, 160)}`;
    return grave.flatMap(each => each.nodes.slice(0, 4).map(node => `${each.id}: ${told(node)}`));
}"""
# The theme is a class, as its switch sets it. Colours that still fade would be read on their way.
DARK = """is_dark => {
    document.documentElement.classList.toggle("dark", is_dark);
    const fading = document.getAnimations().filter(each => each instanceof CSSTransition);
    fading.forEach(each => each.finish());
}"""
OF_COLOURS = ["color-contrast", "link-in-text-block"]  # rules; all others find the same in both themes
# What a page of ours never has, unless a text became an element of it.
STRANGE = (
    ".hostile, hostile, x-hostile, iframe, object, embed, base, portal, marquee, plaintext, math, audio, "
    "video, meta[http-equiv], svg script, foreignObject, script:not([src]), style, "
    "[onload], [onerror], [onfocus], [onclick], [onmouseover], [ontoggle], "
    "a[href^='javascript' i], a[href^='data' i], form[action^='http' i], form[action^='//']"
)
READ = """selector => [
    ...window.hostile === undefined ? [] : ["a text ran"],
    ...[...document.querySelectorAll(selector)].map(element => element.outerHTML.slice(0, 120)),
    ...["aria-describedby", "aria-labelledby", "for"].flatMap(name =>
        [...document.querySelectorAll(`[${name}]:not([type=hidden], [title])`)].flatMap(each =>
            each.getAttribute(name).split(" ").filter(id => id && !document.getElementById(id))
                .map(id => `${name} leads to no ${id}: ${each.outerHTML.slice(0, 80)}`))),
    ...[...document.querySelectorAll(".material-symbols-outlined:not([aria-hidden])")]
        .map(icon => `the word of an icon is read: ${icon.parentElement.outerHTML.slice(0, 120)}`),
    ...document.querySelector("[aria-label='Select record']") ? ["a box is not named by its row"] : [],
    ...document.querySelector(".sortoptions a:not([aria-label*=': '])") ? ["a sort has no column"] : [],
    ...[...document.querySelectorAll(".actions")].filter(row => row.scrollWidth > row.clientWidth)
        .map(row => `buttons leave their column: ${row.innerText}`),
    ...document.querySelectorAll("h1").length === 1 ? [] : ["has not one heading of the first level"],
]"""
# Once Alpine or Swagger UI is done; a locator would load Playwright's own script into each page.
UNCLOAKED = """() => new Promise(done => {
    const isUnderWay = () => document.querySelector("html[x-cloak], #swagger-ui:not(:has(h1))");
    const look = () => isUnderWay() ? requestAnimationFrame(look) : done();
    look();
})"""
BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: `make axe` installs it, or STEROIDS_AXE names its axe.min.js.")
    return AXE.read_text(encoding="utf-8")


class Looks:
    """What axe finds wherever it is asked to look."""

    def __init__(self, page: "Page", axe: str) -> None:
        self.page = page
        page.context.add_init_script(axe)
        page.on("dialog", lambda dialog: self.found.append(f"{page.url}: a dialog says {dialog.message}"))
        self.found: list[str] = []
        self.seen: set[str] = set()

    def open(self, path: str) -> None:
        answer = self.page.goto(path)
        assert answer is not None
        assert answer.status == 200, f"{path} answers {answer.status}"
        self.page.evaluate(UNCLOAKED)

    def read(self, how: str) -> None:
        """Whether each text at the page as it stands there is only read, and has its place."""
        where = f"{self.page.url} {how}"
        if beyond := self.page.evaluate(BEYOND):
            self.found.append(f"{where} scrolls sideways by {beyond} pixels")
        self.found += [f"{where} {fault}" for fault in self.page.evaluate(READ, STRANGE)]

    def look(self, how: str, only: Sequence[str] = (), without: Sequence[str] = ()) -> None:
        """At the page as it stands there. The sidebar is the same on all of them: it is looked at once."""
        context = {"include": ["html"], "exclude": ["#nav-sidebar"] if how in self.seen else []}
        self.seen.add(how)
        self.found += [
            f"{self.page.url} {how} {fault}"
            for fault in self.page.evaluate(RUN, [context, list(only), list(without)])
        ]


def test_no_page_of_hostile_texts_has_a_grave_fault_in_the_light_in_the_dark_or_on_a_phone(
    open_page: Open,
    scene: Scene,
    axe: str,
    project: Project,  # noqa: F811
) -> None:
    """Each page is opened once. The admin's own pages share parts and colours: few are seen in each way.

    Also the pages of rounds about documents, the list of precedents, and what an import shows first.
    """
    fill_scene(scene)
    settings = scene.ledger.settings | {"todo_path": "docs/TODO.md", "todo_branch": "main"}
    Project.objects.filter(pk=scene.ledger.pk).update(settings=settings)
    FollowedTodo.objects.create(
        project=scene.ledger, waiting="0c5ae1f2" * 5, waiting_for=["New: Pay Mallory (Soon, medium)"],
        problem="Somebody changed docs/TODO.md on ticks; it stays so until that is merged or deleted.",
    )  # fmt: skip
    of_documents = [f"/projects/{project.slug}/{page}" for page in ("", "rounds/", "rounds/1/", "end/")]
    in_each_way = {*our_pages(scene), *of_documents, *OF_THE_ADMIN}
    page = open_page("/healthz", viewport=WIDE, is_alone=True)
    root, looks = page.url.removesuffix("/healthz"), Looks(page, axe)
    filler = Filler(TEXTS)
    while filler.used < set(TEXTS):
        filler.fill()
    for path in (*every_page(scene), *of_documents):
        page.set_viewport_size(WIDE)
        looks.open(root + path)
        looks.read("in a window")
        if path != "/api/docs/":  # Swagger UI is not ours
            looks.look("in the light", without=() if path in in_each_way else OF_COLOURS)
        if path in in_each_way:
            page.evaluate(DARK, True)
            looks.look("in the dark", OF_COLOURS)
            page.evaluate(DARK, False)
        page.set_viewport_size(PHONE)
        looks.read("on a phone")
        if path in in_each_way:
            looks.look("on a phone", without=OF_COLOURS)
    for path, typed in PREVIEWS.items():
        looks.open(f"{root}/projects/{scene.ledger.slug}/{path}")
        for name, text in typed.items():
            page.locator(f"[name={name}]").fill(text)
        page.get_by_role("button", name="Preview").click()
        page.locator("button[name=import]").wait_for()
        looks.look("as a preview")
    assert not looks.found, "\n" + "\n".join(looks.found)


OF_THE_ADMIN = ("/admin/", "/admin/tasks/task/", "/admin/disputes/precedent/")
PREVIEWS = {
    "tasks/import/": {"text": "# Ledger\n\n1. [ ] Round half up\nThe bank does.\n- [x] Begin\n"},
    "rounds/import/": {
        "name": "first",
        "text": "=== round_001/reviewer.md\n# Review\n\n### ISSUE-R1-001: [HIGH] It grows\n\n"
        "**Verdict:** NEEDS_REVISION\n",
    },
}

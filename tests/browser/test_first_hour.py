"""The first hour in a browser: from an empty folder to a landed task on one's own repository, by clicking."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import EMPTY
from tests.end_to_end.installation import ROOT, Installation, wait_for
from tests.end_to_end.loop import bare_remote, git

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.").expect
pytestmark = [pytest.mark.browser, pytest.mark.slow]

OWN = {
    "README.md": "# sums\n\nAdds numbers.\n",
    "sums.py": "def add(a, b):\n    return a + b\n",
    "test_sums.py": """
        import unittest
        import sums

        class Sums(unittest.TestCase):
            def test_add(self):
                self.assertEqual(sums.add(1, 2), 3)
    """,
}
TODO = """# sums

## Documents

- [ ] Say what it does
  severity: medium

  One sentence in `DONE.md` is enough.
"""
STEPS_MAX = 10
SOON = 90_000  # milliseconds, for what the loop does meanwhile


@pytest.fixture
def home(django_db_setup: None, tmp_path: Path) -> Iterator[Installation]:
    """As `make setup` leaves it."""
    made = Installation(tmp_path / "home")
    made.begin_with(EMPTY)
    yield made
    made.end_everything()


class Person:
    """Somebody who counts their steps: a command typed, or a page left by a press that changes something."""

    def __init__(self, page: "Page", shoot: Any) -> None:
        self.page, self.shoot, self.steps = page, shoot, 2  # `make setup` and `run_orchestrator` were typed

    def look(self, name: str) -> None:
        self.shoot(self.page, f"first-hour-{self.steps:02}-{name}", full_page=True)

    def press(self, words: str) -> None:
        self.page.get_by_role("button", name=re.compile(rf"^{words}")).first.click()
        self.steps += 1

    def next_on_the_checklist(self, words: str) -> None:
        """Back on the first page, what it names next."""
        self.page.get_by_role("link", name="Dashboard").first.click()
        self.page.locator(".checklist .is-next").get_by_text(words, exact=True).click()


def begin(home: Installation) -> tuple[str, str]:
    """The README's second command; the address, and the password of `admin`, as the terminal says them."""
    home.begin("run_orchestrator")
    said = home.home / "begun.log"
    url = wait_for(lambda: re.search(r"http://127\.0\.0\.1:\d+", said.read_text()), "the address")[0]
    kept = re.search(r"Sign in as admin; the password is in (\S+)\.\n", said.read_text())
    assert kept, said.read_text()
    return url, Path(kept[1]).read_text().strip()


def test_a_first_task_lands_within_ten_steps(
    home: Installation, chromium: "Browser", tmp_path: Path, shoot: Any
) -> None:
    remote = bare_remote(tmp_path, OWN)
    url, password = begin(home)
    page = chromium.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
    page.set_default_timeout(SOON)
    page.goto(url)
    lea = Person(page, shoot)
    page.locator("#id_username").fill("admin")
    page.locator("#id_password").fill(password)
    lea.look("sign-in")
    lea.press("Sign in")
    expect(page.locator("#checklist")).to_have_text("Set up your first project")
    expect(page.locator(".health")).to_contain_text("The loop turned")
    lea.look("empty")

    page.locator(".checklist .is-next").get_by_role("link", name="Add a project").click()
    page.locator("#id_name").fill("Sums")
    page.locator("#id_repo_url").fill(str(remote))
    lea.look("project")
    lea.press("Save")
    expect(page.locator("[data-setup-line]")).to_have_text("main is green. Work can begin.", timeout=SOON)
    lea.look("green")

    for role in ("coder", "reviewer"):
        lea.next_on_the_checklist(f"Add a {role}")
        page.locator("#id_name").fill(f"my-{role}")
        page.get_by_text("Any command", exact=True).first.click()
        page.locator("#id_command_line").fill(f"{ROOT}/examples/agents/{role}.sh {{prompt}}")
        lea.look(role)
        lea.press("Save and check")
        expect(page.locator("#last-check")).to_contain_text("Fine", timeout=SOON)
        lea.look(f"{role}-fine")

    lea.next_on_the_checklist("Paste tasks")
    page.locator("#todo").fill(TODO)
    lea.press("Preview")
    lea.look("preview")
    lea.press("Import")
    expect(page.locator(".toast")).to_contain_text("1 task created")
    lea.look("working")
    page.get_by_role("link", name="Dashboard").click()
    wait_for(lambda: home.value("SELECT landed_sha FROM tasks_task WHERE landed_sha != ''"), "the landing")
    page.reload()
    expect(page.locator("#checklist")).to_have_count(0)
    lea.look("landed")
    assert git(remote, "show", "main:DONE.md") == "- Say what it does"
    assert lea.steps <= STEPS_MAX, lea.steps
    page.context.close()

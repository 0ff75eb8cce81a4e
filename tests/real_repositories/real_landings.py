"""What a stranger's repository must come to with no hand on it. Opt-in: `make test-repositories`."""

import re

import pytest

from tests.real_repositories.driving import Outcome
from tests.real_repositories.packages import PACKAGES
from tests.real_repositories.running import as_table, try_all

pytestmark = [pytest.mark.slow, pytest.mark.online, pytest.mark.timeout(4 * 3600)]

PACKAGES_MIN, ECOSYSTEMS_MIN = 20, 6
LANDED_MIN = 0.85


@pytest.fixture(scope="session")
def outcomes(pytestconfig: pytest.Config) -> list[Outcome]:
    """Of all packages that the registries gave us; the table stands on the terminal."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(text, flush=True)

    tried = try_all(PACKAGES, say)
    say(f"\n{as_table(tried)}\n")
    return [one for one in tried if one.ended != "not to be had"]


def test_strangers_repositories_of_many_kinds_were_tried(outcomes: list[Outcome]) -> None:
    assert len(outcomes) >= PACKAGES_MIN
    assert len({one.ecosystem for one in outcomes}) >= ECOSYSTEMS_MIN


def test_most_land_a_trivial_task_with_no_hand_on_it(outcomes: list[Outcome]) -> None:
    landed = [one for one in outcomes if one.ended == "landed"]
    assert len(landed) >= LANDED_MIN * len(outcomes), [one.package for one in outcomes if one not in landed]


def test_the_rest_end_in_one_card_before_any_coder(outcomes: list[Outcome]) -> None:
    assert {one.package: one.why for one in outcomes if one.ended == "failed"} == {}


def test_a_card_says_what_is_lacking(outcomes: list[Outcome]) -> None:
    lacking = {package.slug: package.lacks for package in PACKAGES if package.lacks}
    for one in outcomes:
        if one.ended == "card" and one.package in lacking:
            assert re.search(lacking[one.package], "\n".join([*one.cards, *one.details])), (
                one.package,
                one.cards,
            )

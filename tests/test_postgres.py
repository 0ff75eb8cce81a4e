"""The same promises on PostgreSQL: tests of rows, races, sums and pages once more, on a real server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent
# Where the database decides: constraints, triggers, races, claims, sums, searches, and one task all the way.
AGAIN = [
    "tests/tasks/test_models.py",
    "tests/tasks/test_events.py",
    "tests/tasks/test_dependencies.py",
    "tests/disputes/test_models.py",
    "tests/disputes/test_opinions.py",
    "tests/disputes/test_queue_page.py",
    "tests/disputes/test_queue_sharing.py",
    "tests/disputes/test_bulk.py",
    "tests/disputes/test_precedents.py",
    "tests/disputes/test_tallies.py",
    "tests/disputes/test_insights_page.py",
    "tests/notifications/test_fanout.py",
    "tests/notifications/test_sending.py",
    "tests/agents/test_orchestrator.py",
    "tests/agents/test_caps.py",
    "tests/agents/test_costs.py",
    "tests/agents/test_objections.py",
    "tests/agents/test_pipeline.py",
    "tests/agents/test_board_page.py",
    "tests/agents/test_choosing.py",
    "tests/agents/test_ladders.py",
    "tests/agents/test_ladder_insights.py",
    "tests/agents/test_several_reviewers.py",
    "tests/agents/test_races.py",
    "tests/steroidsweb/test_dashboard.py",
    *(
        f"tests/disputes/test_rulings.py::{name}"
        for name in (
            "test_a_second_ruling_is_told_who_ruled_what_and_when",
            "test_of_two_people_at_once_exactly_one_rules",
            "test_of_an_undo_and_a_prompt_at_once_exactly_one_wins",
        )
    ),
    *(
        f"tests/agents/test_judging.py::{name}"
        for name in (
            "test_a_judge_hands_in_once_and_its_token_dies",
            "test_a_human_who_is_faster_makes_it_late",
            "test_of_a_human_and_a_judge_at_the_same_moment_exactly_one_rules",
        )
    ),
    *(
        f"tests/agents/test_handins.py::{name}"
        for name in (
            "test_a_final_hand_in_ends_the_run",
            "test_a_run_whose_claim_is_older_does_not_hand_in",
            "test_the_same_key_is_the_same_reply_and_one_effect",
            "test_two_tries_at_once_have_one_effect",
            "test_two_tries_at_once_of_a_final_hand_in_have_one_reply",
            "test_a_ruling_meanwhile_costs_the_late_hand_in_and_nothing_else",
        )
    ),
    "tests/end_to_end/test_command_agents.py::test_a_rejection_a_disagreement_and_a_ruling",
]


def test_rows_races_and_sums_hold_on_postgresql(tmp_path: Path) -> None:
    url = os.environ.get("TEST_POSTGRES_URL")
    if not url:
        pytest.skip("TEST_POSTGRES_URL names no PostgreSQL server")
    environment = os.environ | {
        "DATABASE_URL": url,
        "STEROIDS_TEST_HOME": str(tmp_path),
        "STEROIDS_NO_SKIPS": "",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *AGAIN],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]

"""The same promises on PostgreSQL: the tests of rows, races and hand-ins once more, on a real server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent
AGAIN = [
    "tests/tasks/test_models.py",
    "tests/tasks/test_events.py",
    "tests/tasks/test_dependencies.py",
    "tests/tasks/test_importing.py",
    "tests/disputes/test_rulings.py",
    "tests/disputes/test_models.py",
    "tests/agents/test_handins.py",
    "tests/agents/test_orchestrator.py",
    "tests/steroidsweb/test_dashboard.py",
    "tests/end_to_end/test_command_agents.py",
]


def test_rows_races_and_hand_ins_hold_on_postgresql(tmp_path: Path) -> None:
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

"""With only `manage.py qcluster` running, the schedule carries a task all the way."""

import pytest

from tests.end_to_end.installation import PATIENCE, Installation, wait_for

pytestmark = pytest.mark.slow


def test_a_task_passes_coder_verification_review_and_landing(installation: Installation) -> None:
    installation.environment["STEROIDS_LOOP"] = "2"
    prepared = installation.manage("run_orchestrator", "--demo", "--once")
    assert prepared.returncode == 0, prepared.stderr
    with installation.database() as rows:  # one that lands is enough
        others = "status = 'pending' AND title <> 'Accept weeks'"
        rows.execute(f"UPDATE tasks_task SET status = 'deferred' WHERE {others}")
    cluster = installation.begin("qcluster")
    try:
        landed = "SELECT count(*) FROM tasks_task WHERE landed_sha <> ''"
        wait_for(lambda: installation.value(landed) >= 1, "a landed task")
    finally:
        cluster.terminate()
        cluster.wait(PATIENCE)
    roles = installation.rows("SELECT DISTINCT role FROM agents_run WHERE outcome = 'handed_in'")
    assert {role for (role,) in roles} == {"coder", "verifier", "reviewer"}
    sha = installation.value("SELECT landed_sha FROM tasks_task WHERE landed_sha <> '' LIMIT 1")
    assert sha in installation.git("rev-list", "main").split()

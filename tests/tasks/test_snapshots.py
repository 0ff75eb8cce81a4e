"""What is stored of a task before a ruling moves it, and putting it back."""

import json
from datetime import UTC, datetime

import pytest

from tasks import snapshots
from tasks.events import SYSTEM
from tasks.models import Event, Section, Task
from tests.factories import create_submission, create_task

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
# As it may lie in the database of somebody who upgrades: these names stay, whatever the columns are called.
STORED = {
    "status": "review", "round": 2, "rejections": 1, "landed_commit": "", "landed_at": None,
    "finished_by": "", "counts_since": "2026-11-22T12:00:00+00:00", "not_before": None, "stage": "dev",
    "home_stage": "", "escalation": "",
}  # fmt: skip


def test_a_snapshot_of_any_age_puts_the_task_back() -> None:
    task = create_task(status="review", round=2, rejections=1, counts_since=NOON)
    stored = STORED | {"accepted_submission": create_submission(task).pk}
    Task.objects.filter(pk=task.pk).update(accepted=stored["accepted_submission"])
    task.refresh_from_db()
    assert json.loads(json.dumps(snapshots.take(task))) == stored

    task.rule_revise(actor=SYSTEM, note="C-1", not_before=NOON)
    task.put_back(stored, actor=SYSTEM, note="C-1")
    assert snapshots.take(Task.objects.get(pk=task.pk)) == stored
    assert Event.objects.latest("pk").kind == "undo"

    Task.objects.filter(pk=task.pk).update(rejections=0)
    task.put_back(stored, actor=SYSTEM, note="C-1")  # the status is as it was: no move, the rest is put back
    assert snapshots.take(Task.objects.get(pk=task.pk)) == stored
    assert Event.objects.filter(kind="undo").count() == 1


def test_a_task_that_is_failed_again_stops_its_section_again() -> None:
    task = create_task(status="in_progress", round=2)
    task.put_back(snapshots.take(task) | {"status": "failed"}, actor=SYSTEM, note="C-1")
    assert Section.objects.get(pk=task.section_id).is_stopped

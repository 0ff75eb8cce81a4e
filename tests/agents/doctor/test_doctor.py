"""manage.py doctor: a healthy world is clean, each damage is found by its own check, mended if it says so."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from agents.backups import restoring
from agents.cli import VERSION
from agents.doctor import machine, runs, table
from agents.hosts import landing as landings
from agents.hosts import paths
from agents.loop import run_ends
from agents.models import Host, Output, Run, new_token, token_hash
from disputes import opening, rulings
from disputes.models import Conflict
from steroidsweb.env import OIDC
from tasks.database.triggers import no_deletion
from tasks.events import Actor
from tasks.models import Dependency, Event, Landing, Review, Submission, Task
from tasks.models.event import record
from tests.agents.world import World, git, make_world  # noqa: F401
from tests.factories import create_finding, create_project, create_review, create_run, create_user

pytestmark = pytest.mark.django_db
DELETION = no_deletion("tasks_event")


@pytest.fixture(autouse=True)
def at_once(as_migrated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "AGAIN_AFTER", 0)
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 51, 3))  # whichever this Python comes with


@pytest.fixture
def healthy(world: World) -> World:
    """One task landed, one was ruled on, one is being worked on, one waits."""
    paths.folder().chmod(0o700)
    landed, ruled, live, waits = (world.task(number=number) for number in (1, 2, 3, 4))
    landing = world.accepted({"new.py": "one\n"}, task=landed)
    create_review(landing.submission, verdict=Review.Verdict.APPROVED, by_agent="reviewer-1")
    landings.advance(landing, "test-host")
    submission = world.kept({"more.py": "two\n"}, task=ruled)
    Submission.objects.filter(pk=submission.pk).update(state=Submission.State.VERIFIED)
    finding = create_finding(create_review(submission))
    conflict = opening.open_conflict(
        ruled, kind="disagreement", origin="disagree", opened_as="coder", question="Which way?",
        finding=finding, submission=submission, reviewer_position="This.", coder_position="That.",
    )  # fmt: skip
    rulings.decide(conflict, "uphold_reviewer", user=create_user("lea", is_superuser=True), undo_seconds=0)
    world.coder(live, lease_until=timezone.now() + timedelta(seconds=60))
    Dependency.objects.create(task=waits, on=live)
    Task.objects.filter(pk=waits.pk).update(waits_for=1)
    for run in Run.objects.exclude(task=live):
        run_ends.end(run, Run.Outcome.HANDED_IN)
    Host.objects.update(version=VERSION, seen_at=timezone.now())
    return world


def found() -> dict[str, list[str]]:
    """What doctor says, by check."""
    said = {check.id: [finding.says for finding in check.find()] for check in table.CHECKS}
    return {check: says for check, says in said.items() if says}


def ended() -> Run:
    return Run.objects.filter(status="ended").order_by("pk")[0]


def unchecked(constraint: str, model: type[Any]) -> None:
    """Let rows be written until the transaction ends as only a damaged database holds them."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"ALTER TABLE {model._meta.db_table} DROP CONSTRAINT {constraint}")
        else:
            cursor.execute("PRAGMA ignore_check_constraints = ON")


def long_ago(path: Path) -> Path:
    os.utime(path, (1, 1), follow_symlinks=False)
    return path


# --- Damage -----------------------------------------------------------------------------------------------


def a_status_without_event(world: World) -> None:
    Task.objects.filter(number=3).update(status="review")


def a_lost_event(world: World) -> None:
    Task.objects.filter(number=3).update(version=9)


def two_runs_in_a_seat(world: World) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX run_one_live_per_seat")
    create_run(Task.objects.get(number=3), host=Host.objects.get())


def a_late_write(world: World) -> None:
    run = ended()
    record(run.project, "comment", task=run.task, actor=Actor("run", "coder-1", run_number=run.pk))


def a_ruling_that_nobody_made(world: World) -> None:
    Conflict.objects.update(status="open", followed="")


def a_ruling_without_event(world: World) -> None:
    connection.cursor().execute("DELETE FROM tasks_notice")
    DELETION.remove(connection)
    Event.objects.filter(kind="ruled")._raw_delete("default")
    DELETION.install(connection)


def red_work_that_landed(world: World) -> None:
    Submission.objects.filter(task__number=1).update(state="red")


def unreviewed_work_that_landed(world: World) -> None:
    Review.objects.filter(submission__task__number=1).update(verdict="NEEDS_REVISION")
    create_finding(Review.objects.get(submission__task__number=1))


def a_landing_that_nobody_made(world: World) -> None:
    Landing.objects.update(status="superseded")


def a_token_that_outlived_its_run(world: World) -> None:
    unchecked("run_token_dies_with_it", Run)
    Run.objects.filter(pk=ended().pk).update(token_hash="f" * 64)


def a_token_in_a_log(world: World) -> None:
    token = new_token()
    Run.objects.filter(pk=ended().pk).update(spent_hash=token_hash(token))
    Output.objects.create(run=ended(), seq=1, text=f"curl -H 'Authorization: Bearer {token}'")


def a_token_in_an_event(world: World) -> None:
    token = new_token()
    Run.objects.filter(pk=ended().pk).update(spent_hash=token_hash(token))
    record(world.project, "edited", data={"said": token})


def work_that_nobody_fetches(world: World) -> None:
    Submission.objects.filter(task__number=2).update(state="received", at=timezone.now() - timedelta(hours=1))


def a_run_that_nobody_ends(world: World) -> None:
    Run.objects.filter(status="running").update(lease_until=timezone.now() - timedelta(hours=1))


def a_queue_that_nobody_takes(world: World) -> None:
    create_run(Task.objects.get(number=2), status="queued", queued_at=timezone.now() - timedelta(hours=1))


def a_log_without_end(world: World) -> None:
    with (paths.folder("log") / "web.log").open("wb") as log:
        log.truncate(machine.LOG_MAX + 1)


def a_log_in_too_many_rows(world: World) -> None:
    run = ended()
    Output.objects.bulk_create(
        Output(run=run, seq=number, text="x") for number in range(machine.PIECES_MAX + 1)
    )


def a_landing_of_another_project(world: World) -> None:
    Landing.objects.update(project=create_project("other"))


def a_lost_trigger(world: World) -> None:
    DELETION.remove(connection)


def a_lost_constraint(world: World) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX landing_one_push_per_target")


def a_clone_that_nobody_needs(world: World) -> None:
    run = ended()
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now() - timedelta(days=2))
    long_ago(paths.run_folder(run.pk))


def folders_of_nobody(world: World) -> None:
    for parts in (("runs", "999999"), ("checks", "7"), ("trials", "7"), ("mirrors", "999999.git")):
        long_ago(paths.folder(*parts))
    scratch = world.mirror.path / "incoming-1.bundle"
    scratch.touch()
    long_ago(scratch)


def a_wrong_count(world: World) -> None:
    Task.objects.filter(number=4).update(waits_for=3)


def a_task_that_is_gone(world: World) -> None:
    Task.objects.filter(number=4).update(number=5)


def a_hand_in_without_row(world: World) -> None:
    task = Task.objects.get(number=3)
    record(world.project, "submit", task=task)


def a_stale_lock_in_a_mirror(world: World) -> None:
    lock = world.mirror.path / "packed-refs.lock"
    lock.touch()
    long_ago(lock)


def a_mirror_without_objects(world: World) -> None:
    shutil.rmtree(world.mirror.path / "objects" / "pack")


def a_push_by_force(world: World) -> None:
    git(world.remote.path, "update-ref", "refs/heads/main", world.remote.first)
    world.mirror.fetch_target()


def an_open_data_folder(world: World) -> None:
    paths.folder().chmod(0o755)


def a_missing_migration(world: World) -> None:
    MigrationRecorder.Migration.objects.filter(app="agents").delete()


def an_old_host(world: World) -> None:
    Host.objects.update(version="0.0.1", seen_at=timezone.now())


# The check that must find it, and whether it says that it can mend it.
DAMAGE: list[tuple[str, Callable[[World], None], bool]] = [
    ("I1", a_status_without_event, False),
    ("I1", a_lost_event, False),
    ("I2", two_runs_in_a_seat, False),
    ("I3", a_late_write, False),
    ("I4", a_ruling_that_nobody_made, False),
    ("I4", a_ruling_without_event, False),
    ("I5", red_work_that_landed, False),
    ("I5", unreviewed_work_that_landed, False),
    ("I6", a_landing_that_nobody_made, False),
    ("I7", a_token_that_outlived_its_run, True),
    ("I7", a_token_in_a_log, False),
    ("I7", a_token_in_an_event, False),
    ("I9", work_that_nobody_fetches, False),
    ("I9", a_run_that_nobody_ends, False),
    ("I9", a_queue_that_nobody_takes, False),
    ("I10", a_log_without_end, True),
    ("I10", a_log_in_too_many_rows, False),
    ("I11", a_landing_of_another_project, False),
    ("I12", a_lost_trigger, True),
    ("I12", a_lost_constraint, False),
    ("I13", a_clone_that_nobody_needs, True),
    ("I13", folders_of_nobody, True),
    ("I14", a_wrong_count, True),
    ("I14", a_task_that_is_gone, False),
    ("I14", a_hand_in_without_row, False),
    ("mirrors", a_stale_lock_in_a_mirror, True),
    ("mirrors", a_push_by_force, False),
    ("mirrors", a_mirror_without_objects, True),
    ("surroundings", an_open_data_folder, True),
    ("database", a_missing_migration, False),
    ("hosts", an_old_host, False),
]
# What else such a damage is, where the database would not hold it otherwise.
BESIDE = {two_runs_in_a_seat: {"I12"}, a_token_that_outlived_its_run: {"I12"}}


def test_each_damage_is_found_by_its_own_check_and_mended_where_it_says_so(
    healthy: World, tmp_path: Path
) -> None:
    assert found() == {}
    home, whole = healthy.settings.HOME, tmp_path / "whole"
    shutil.copytree(home, whole, symlinks=True)
    wrong = []
    for check, plant, is_mended in DAMAGE:
        with transaction.atomic():
            connection.check_constraints()  # PostgreSQL changes no table while it has some to check
            plant(healthy)
            seen = found()
            if not {check} <= seen.keys() <= {check} | BESIDE.get(plant, set()):
                wrong.append(f"{plant.__name__}: {seen}")
            elif is_mended:
                list(table.repair(table.examine({check})))
                if left := found().keys() - BESIDE.get(plant, set()):
                    wrong.append(f"{plant.__name__} is left: {left}")
            transaction.set_rollback(True)
        if connection.vendor == "sqlite":
            connection.cursor().execute("PRAGMA ignore_check_constraints = OFF")
        shutil.rmtree(home)
        shutil.copytree(whole, home, symlinks=True)
        if plant is a_push_by_force:
            git(healthy.remote.path, "update-ref", "refs/heads/main", Landing.objects.get().sha)
    assert wrong == []


def test_what_another_host_landed_meanwhile_was_not_pushed_over_by_force(healthy: World) -> None:
    mirror, remote = healthy.mirror, healthy.remote
    git(mirror.path, "update-ref", mirror.target_ref, remote.first)  # as when it was last fetched
    assert found() == {}
    git(mirror.path, "update-ref", mirror.target_ref, remote.first)
    remote.path.rename(aside := remote.path.with_name("away"))
    assert found() == {}
    aside.rename(remote.path)


def test_only_a_host_with_slots_is_said_to_have_a_free_one(healthy: World) -> None:
    a_queue_that_nobody_takes(healthy)
    [says] = found()["I9"]
    assert says.endswith(", though test-host has a free slot.")
    Host.objects.update(slots=0)  # it serves pages and jobs only
    [says] = found()["I9"]
    assert says.endswith(", and no host takes any.")


def test_a_process_that_outlived_its_run_is_found_and_ended(
    healthy: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = paths.run_folder(ended().pk)
    folder.mkdir(parents=True, exist_ok=True)
    live = paths.run_folder(Run.objects.get(status="running").pk)
    sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    children = [
        subprocess.Popen([*sleep, f"{place}/"], env={"STEROIDS_RUN": place.name}) for place in (folder, live)
    ]
    try:
        assert found() == {}  # it is given a moment
        monkeypatch.setattr(runs, "YOUNG", -1.0)
        assert list(found()) == ["I8"]
        list(table.repair(table.examine()))
        assert children[0].wait(30) != 0
        assert found() == {}
        assert children[1].poll() is None
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_what_waits_is_told_once_where_nothing_runs_and_not_before_the_first_start(healthy: World) -> None:
    work_that_nobody_fetches(healthy)
    a_run_that_nobody_ends(healthy)
    assert len(found()["I9"]) == 2
    Host.objects.update(seen_at=timezone.now() - timedelta(hours=2))
    (said,) = found()["I9"]
    assert "no host has reported since" in said
    Host.objects.update(seen_at=None)
    assert found() == {}
    list(restoring.end_what_was_live(timezone.now()))
    a_queue_that_nobody_takes(healthy)
    assert "I9" not in found()
    Host.objects.update(seen_at=timezone.now())
    assert "I9" in found()


def test_a_full_disk_is_told_with_what_to_do(healthy: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for blocks, files, said in (
        (5, 10**6, "Only 5 MiB are free"),
        (10**6, 1280, "GiB and 1,280 files are free"),
    ):
        left = {"f_bavail": blocks, "f_frsize": 1024**2, "f_files": 10**7, "f_favail": files}
        space = SimpleNamespace(total=10**12, free=blocks * 1024**2)
        monkeypatch.setattr(machine.shutil, "disk_usage", lambda path, space=space: space)
        monkeypatch.setattr(machine.paths.os, "statvfs", lambda path, left=left: SimpleNamespace(**left))
        (told,) = table.examine()
        assert told.check.id == "disk"
        assert said in told.finding.says
    assert "manage.py prune" in told.finding.do


def test_what_is_gone_a_moment_later_was_work_under_way(
    healthy: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_status_without_event(healthy)
    monkeypatch.setattr(
        time, "sleep", lambda seconds: Task.objects.filter(number=3).update(status="in_progress")
    )
    assert table.examine() == []


def manage(*words: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("doctor", *words, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def test_a_group_of_single_sign_on_that_leads_to_no_project_is_named(
    healthy: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, lost = healthy.project.slug, ("platform", "ledgr", "maintainer")
    settings.OIDC = OIDC(
        "Team ID", "https://id.example", "us", "x", (), "groups",
        (("all", "*", "viewer"), ("platform", known, "maintainer"), lost),
    )  # fmt: skip
    code, said = manage("--only", "surroundings")
    assert code == 1
    assert "STEROIDS_OIDC_GROUPS gives platform a role in ledgr, and there is no such project." in said
    (told,) = [each for each in run_checks(databases=["default"]) if each.id == "steroids.W013"]
    assert known in told.hint
    assert "steroids.W013" not in [each.id for each in run_checks()], "without the database"
    settings.OIDC = replace(settings.OIDC, groups=settings.OIDC.groups[:2])
    assert manage("--only", "surroundings")[0] == 0


def test_the_command_says_what_to_do_and_ends_with_1_where_anything_is_found(healthy: World) -> None:
    assert manage() == (0, "All is well.\n")
    assert json.loads(manage("--json")[1]) == {"is_well": True, "findings": [], "mended": []}
    a_wrong_count(healthy)
    code, said = manage()
    ref = Task.objects.get(number=4).ref
    assert code == 1
    assert f"I14: {ref} waits for 3 others by its row, for 1 in fact." in said
    assert "manage.py doctor --repair" in said
    (finding,) = json.loads(manage("--json")[1])["findings"]
    assert (finding["check"], finding["can_be_mended"]) == ("I14", True)
    assert manage("--only", "I1") == (0, "All is well.\n")
    assert manage("--repair") == (0, f"Mended: {ref} waits for 1 other.\nAll is well.\n")
    listed = manage("--list")[1].splitlines()
    assert len(listed) == len(table.CHECKS)
    with pytest.raises(CommandError, match="There is no check I99"):
        call_command("doctor", "--only", "I99")

"""What is let go after a while, and what is kept for ever."""

import os
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone
from django_q.models import Schedule

from agents import jobs, retention
from agents.doctor import machine
from agents.hosts import paths, tidying
from agents.hosts.reconciler import Reconciler
from agents.models import Output, Prompt, Run
from tasks.models import Bundle, Event, Idempotency, Project, Rollback, Submission, Task
from tests.agents.world import World, git, make_world  # noqa: F401

pytestmark = pytest.mark.django_db
LONG_AGO = timezone.now() - timedelta(days=400)


def manage(*words: str) -> str:
    out = StringIO()
    call_command("prune", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def old(world: World) -> Run:
    """A run that ended more than a year ago, with everything that a run leaves, and a live one beside it."""
    submission = world.kept({"new.py": "one\n"})
    run = submission.run
    Task.objects.filter(pk=submission.task_id).update(landed_at=LONG_AGO, landed_sha=submission.sha)
    Run.objects.filter(pk=run.pk).update(status="ended", outcome="handed_in", ended_at=LONG_AGO)
    live = world.coder(world.task())
    for each in (run, live):
        Output.objects.create(run=each, seq=0, text="compiling")
        Prompt.objects.create(run=each, text="Do it")
        (paths.run_folder(each.pk) / "output.log").write_text("compiling")
    Idempotency.objects.create(actor="x", key="1", request_hash="0" * 64, status=201, reply={}, at=LONG_AGO)
    Session.objects.create(session_key="old", session_data="", expire_date=LONG_AGO)
    run.refresh_from_db()
    return run


def test_what_is_old_goes_and_the_record_stays(old: Run) -> None:
    events, submissions = Event.objects.count(), Submission.objects.count()
    said = manage("--dry-run")
    assert "Would go: 1 log piece." in said
    assert "Would go: 1 run folder." in said
    assert Output.objects.count() == 2
    said = manage()
    for line in ("Gone: 1 log piece.", "Gone: 1 prompt.", "Gone: 1 commit bundle."):
        assert line in said, line
    assert "Gone: 1 run folder." in said
    live = Run.objects.get(status="running")
    assert [row.run for row in Output.objects.all()] == [row.run for row in Prompt.objects.all()] == [live]
    assert not paths.run_folder(old.pk).exists()
    assert (paths.run_folder(live.pk) / "output.log").exists()
    assert Bundle.objects.count() == Idempotency.objects.count() == Session.objects.count() == 0
    assert (Event.objects.count(), Submission.objects.count()) == (events, submissions)
    assert Run.objects.filter(pk=old.pk).exists()


def test_nothing_goes_before_its_time_or_where_it_is_kept_for_ever(old: Run, settings: Any) -> None:
    settings.KEEP_DAYS = dict.fromkeys(settings.KEEP_DAYS, 0.0)
    manage()
    assert Output.objects.count() == Prompt.objects.count() == 2
    assert Bundle.objects.count() == 1
    assert paths.run_folder(old.pk).exists()
    settings.KEEP_DAYS = dict.fromkeys(settings.KEEP_DAYS, 500.0)
    manage()
    assert Output.objects.count() == Prompt.objects.count() == 2
    assert paths.run_folder(old.pk).exists()


def test_what_nobody_has_fetched_yet_is_kept(old: Run) -> None:
    Submission.objects.filter(run=old).update(state="received")
    manage()
    assert paths.run_folder(old.pk).exists()


def test_it_is_done_each_night_and_each_host_tidies_up_once_a_day(old: Run, world: World) -> None:
    assert Schedule.objects.get(name="prune").func == "agents.jobs.prune"
    assert jobs.prune().startswith("1 log piece, 1 prompt")
    assert Output.objects.count() == 1
    assert paths.run_folder(old.pk).exists()
    assert not tidying.is_due()  # a day after the first start
    os.utime(paths.folder("host") / "tidied", (1, 1))
    with Reconciler() as host:
        host.step()
    assert not paths.run_folder(old.pk).exists()
    assert not tidying.is_due()
    os.utime(paths.folder("host") / "tidied", (1, 1))
    assert tidying.is_due()


def test_a_mirror_of_many_files_is_packed_and_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.hosts.git.repository.PACKS_MAX", 4)
    submissions = [world.kept({f"new-{number}.py": "one\n"}) for number in range(3)]
    run = world.coder()
    assert retention.prune_host() == [f"The mirror of {world.project.slug} is packed."]
    assert retention.prune_host() == []
    assert "packs: 1" in git(world.mirror.path, "count-objects", "-v")
    assert all(world.mirror.has(submission.sha) for submission in submissions)
    git(paths.clone_of(run), "fsck")  # it borrows the mirror's objects
    assert world.commit(run, {"more.py": "two\n"})


def test_a_log_that_is_too_large_keeps_its_end_while_somebody_writes_to_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "LOG_MAX", 800)
    log = Path(paths.folder("log") / "web.log")
    with log.open("a") as writer:
        writer.write("".join(f"line {number}\n" for number in range(200)))
        writer.flush()
        (said,) = retention.prune_host()
        assert "is cut to its last" in said
        writer.write("the next\n")
    lines = log.read_text().splitlines()
    assert lines[-2:] == ["line 199", "the next"]
    assert lines[0].startswith("line 1")
    assert log.stat().st_size < 200


def test_a_project_chooses_what_becomes_of_the_commits_of_rounds_that_were_taken_back(
    world: World,
) -> None:
    """RB-10: the words stay, whatever it chooses."""
    first = world.kept({"one.py": "one\n"})
    second = Submission.objects.create(
        task=first.task, round=2, attempt=1, sha="2" * 40, base_sha=first.base_sha, by_agent="coder-1"
    )
    Bundle.objects.create(submission=second, data=b"PACK")
    for submission in (first, second):
        back = Rollback.objects.create(
            task=first.task, from_round=submission.round, to_round=0, by_label="Lea", reason="No."
        )
        Submission.objects.filter(pk=submission.pk).update(rolled_back=back)

    def left(choice: str, ended_days: int, **task: Any) -> set[int]:
        """The rounds whose commits a night would leave."""
        at = timezone.now() - timedelta(days=ended_days)
        chosen = {} if choice == "cold" else {"rollback_archives": choice}
        Project.objects.filter(pk=world.project.pk).update(
            settings=chosen, status="finished", exit_type="abandoned", exit_at=at
        )
        Task.objects.filter(pk=first.task_id).update(**task)
        before = timezone.now() - timedelta(days=30)
        gone = retention.RULES[2].rows(before).values("submission")
        return {each.round for each in Submission.objects.exclude(pk__in=gone)}

    assert left("cold", 1) == {1, 2}
    assert left("cold", 40) == set()
    assert left("keep", 400) == {1, 2}
    assert left("recent", 1) == {2}
    assert left("recent", 400) == {2}
    assert left("delete", 1) == set()
    cancelled = {"status": "cancelled", "status_at": LONG_AGO}
    assert left("keep", 400, **cancelled) == {1, 2}
    assert left("cold", 1, **cancelled) == set()
    world.project.refresh_from_db()
    Project.objects.update(settings={"rollback_archives": "keep"})
    assert f"refs/steroids/submissions/{first.pk}" in world.mirror.refs("refs/steroids/submissions/")
    retention.prune_host()
    assert f"refs/steroids/submissions/{first.pk}" in world.mirror.refs("refs/steroids/submissions/")
    Project.objects.update(settings={})
    retention.prune_host()
    assert world.mirror.refs("refs/steroids/submissions/") == []
    assert Submission.objects.count() == 2

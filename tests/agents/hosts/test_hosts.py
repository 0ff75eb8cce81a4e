"""Several hosts on one database: one name each, one that ends for good, and what the others do then."""

import fcntl
import io
import json
import subprocess
import threading
import time
from ast import literal_eval
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from django_q import conf
from django_q.models import OrmQ, Schedule
from django_q.tasks import async_task

from agents import jobs
from agents.backups import restoring
from agents.hosts import api_server, naming, paths, processes, starting, submissions, watchdog
from agents.hosts import landing as landings
from agents.hosts.naming import NameTaken
from agents.hosts.reconciler import Reconciler
from agents.hosts.resident import Resident
from agents.loop import abandoned, bell, orchestrator
from agents.models import Host, Run
from agents.setup import hosts
from agents.web.standing.facts import Facts
from agents.web.standing.reasons import standing_of
from tasks import broker
from tasks.errors import Refused
from tasks.models import Event, Landing, Project, Submission, Task
from tests.agents.world import World, at_once, git, hook, make_world  # noqa: F401
from tests.factories import (
    create_agent,
    create_host,
    create_project,
    create_run,
    create_submission,
    create_task,
    sha,
)

pytestmark = pytest.mark.django_db(transaction=True)


def standing(task: Task) -> str:
    task = Task.objects.select_related("project", "section").get(pk=task.pk)
    return standing_of(task, Facts([task])).line


# --- Names ------------------------------------------------------------------------------------------------


def test_two_installations_of_one_name_do_not_work_at_once(world: World, tmp_path: Path) -> None:
    """The second one took the first one's row over, and four submissions were lost."""
    with Reconciler() as first:
        pass
    with Reconciler():  # and the same data folder may start again at once
        pass
    world.settings.HOME = tmp_path / "other"
    with pytest.raises(CommandError) as refused:
        call_command("run_orchestrator", "--once")
    said = str(refused.value)
    assert str(tmp_path / "home") in said
    assert "STEROIDS_HOST_NAME" in said
    world.settings.HOST_NAME = "second"
    with Reconciler() as second:
        assert second.row.pk != first.row.pk
    world.settings.HOST_NAME = "test-host"
    Host.objects.filter(pk=first.row.pk).update(seen_at=timezone.now() - timedelta(days=1))
    with Reconciler() as heir:
        assert heir.row.pk == first.row.pk
        assert heir.row.place.endswith(str(tmp_path / "other"))


def test_a_host_that_stopped_with_nothing_left_lets_go_of_its_name(world: World, tmp_path: Path) -> None:
    """A data folder that is restored elsewhere goes on at once, and who is gone can be removed at once."""
    resident = Resident(web=False, say=lambda text: None)
    run, alone = create_run(world.task()), create_submission(world.task(), only_on="another")
    for home, left in (("first", ""), ("second", "a commit"), ("second", "an agent")):
        world.settings.HOME = tmp_path / home
        with Reconciler() as host:
            assert Host.objects.alive().exists()
            if left == "a commit":
                Submission.objects.filter(pk=alone.pk).update(only_on=host.row.name)
            elif left:
                Run.objects.filter(pk=run.pk).update(host=host.row)
        resident._let_go_of_name(host)
        assert Host.objects.alive().exists() == (left == "an agent")
        world.settings.HOME = tmp_path / "third"
        if left:
            with pytest.raises(NameTaken):
                naming.register()
    with pytest.raises(Refused, match="it still works"):
        hosts.remove(host.row)
    Run.objects.filter(pk=run.pk).update(status="ended", ended_at=timezone.now(), lease_until=None)
    resident._let_go_of_name(host)
    hosts.remove(host.row)
    alone.refresh_from_db()
    assert alone.state == Submission.State.LOST


def test_a_host_that_ends_says_who_goes_on_and_until_when(world: World) -> None:
    world.duration(orphan=45.0)
    said: list[str] = []
    with Reconciler() as host:
        resident = Resident(web=False, say=said.append)
        for _ in range(3):
            resident._say_who_goes_on(host)
            create_run(world.task(), host=host.row)
            create_run(world.task(), status="ended", ended_at=timezone.now(), host=host.row)
            create_run(world.task(), host=create_host("another"))
    assert said == [
        f"{who} on for 45 seconds. Start again by then to keep {whose} work."
        for who, whose in (("One agent goes", "its"), ("2 agents go", "their"))
    ]


def test_a_host_whose_name_was_taken_meanwhile_touches_nothing(world: World) -> None:
    """It was away for longer than its lease, and another installation began in its place."""
    with Reconciler() as host:
        run = create_run(world.task(), host=host.row)
        folder = paths.run_folder(run.pk)
        folder.mkdir(parents=True)
        (folder / "job.json").write_text("{}")
        Host.objects.filter(pk=host.row.pk).update(installation="f" * 32)
        host._beaten = 0.0
        with pytest.raises(NameTaken, match="test-host"):
            host.step()
        assert Run.objects.get(pk=run.pk).lease_until is None
        assert folder.exists()


def test_a_copied_data_folder_is_another_installation(world: World, monkeypatch: Any) -> None:
    """Two machines that were made from one image: the same id, but another boot of another machine."""
    naming.register()
    naming.register()
    monkeypatch.setattr(processes, "boot_id", lambda: "another machine's")
    with pytest.raises(NameTaken):
        naming.register()
    monkeypatch.setattr(processes, "boottime", lambda: 0.0)  # this machine itself, a moment after its start
    naming.register()
    create_host("test-host")


# --- A host that ends for good ----------------------------------------------------------------------------


def age(name: str, **ago: float) -> Host:
    """A host that was heard of so long ago."""
    host = create_host(name)
    Host.objects.filter(pk=host.pk).update(seen_at=timezone.now() - timedelta(**ago))
    return Host.objects.get(pk=host.pk)


def test_what_was_handed_in_on_a_dead_host_is_done_again(world: World) -> None:
    """Only its own host can fetch it; it waited for ever, and the page said that a host fetches it next."""
    world.duration(abandon=900, beat=0)
    here, away = age("here", seconds=0), age("away", minutes=10)
    run = world.coder(host=away)
    submission = world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    abandoned.give_up()
    submission.refresh_from_db()
    assert submission.state == Submission.State.RECEIVED
    assert "Handed in on the host away, which was last seen" in standing(run.task)
    assert "its coder begins again" in standing(run.task)
    age("away", hours=1)
    assert orchestrator.tick().started == 0
    submission.refresh_from_db()
    assert submission.state == Submission.State.LOST
    assert submission.problem.startswith("Host away, which alone had the commit")
    run.task.refresh_from_db()
    assert run.task.status == "in_progress"
    other = world.coder(host=here)
    world.hand_in(other, world.commit(other, {"b.py": "b\n"}))
    assert standing(other.task) == "Handed in; here fetches it next."


def test_a_run_that_handed_in_before_its_host_died_ends_as_handed_in(world: World) -> None:
    """As a lost one it would not end the count of the failures before it."""
    run = world.coder(host=age("away", hours=1))
    world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    assert Run.objects.get(pk=run.pk).status == Run.Status.CLOSING
    over = timezone.now() - timedelta(minutes=5)
    Run.objects.filter(pk=run.pk).update(lease_until=over, is_overdue=True)
    orchestrator.reap()
    run.refresh_from_db()
    assert (run.status, run.outcome) == (Run.Status.ENDED, Run.Outcome.HANDED_IN)


def test_a_host_that_comes_back_while_others_give_up_its_runs_keeps_what_it_renews(
    world: World, monkeypatch: Any
) -> None:
    away = age("away", hours=1)
    runs = [world.coder(host=away) for _ in range(2)]
    ended, end = [], orchestrator.run_ends.end

    def end_while_the_host_beats(run: Run, *args: Any, **kwargs: Any) -> bool:
        Run.objects.exclude(pk=run.pk).update(
            lease_until=timezone.now() + timedelta(minutes=5), is_overdue=False
        )
        ended.append(run.pk)
        return end(run, *args, **kwargs)

    over = timezone.now() - timedelta(minutes=5)
    Run.objects.update(lease_until=over, is_overdue=True)
    monkeypatch.setattr(orchestrator.run_ends, "end", end_while_the_host_beats)
    assert orchestrator.reap() == 1
    statuses = dict(Run.objects.values_list("pk", "status"))
    assert sorted(statuses.values()) == [Run.Status.ENDED, Run.Status.RUNNING]
    assert len(runs) == 2
    assert statuses[ended[0]] == Run.Status.ENDED


def test_where_the_clock_was_set_nobody_is_given_up(world: World) -> None:
    """All hosts are silent for an hour then, until the next beat of each."""
    world.duration(abandon=900)
    run = world.coder(host=age("away", hours=1))
    world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    assert abandoned.give_up() == 0
    world.duration(abandon=900, beat=0)
    age("away", minutes=16)
    assert abandoned.give_up() == 1


def test_commits_too_large_for_a_bundle_keep_their_work_on_the_host_that_has_them(
    world: World, monkeypatch: Any, tmp_path: Path
) -> None:
    world.duration(abandon=900, beat=0)
    monkeypatch.setattr(submissions, "BUNDLE_MAX", 100)
    monkeypatch.setattr(starting, "start", lambda run: None)
    here = naming.register()
    kept, landing = world.kept({"large.bin": "x" * 1000}), world.accepted({"also.bin": "y" * 1000})
    kept.refresh_from_db()
    assert kept.only_on == here.name == "test-host"
    queued = create_run(kept.task, "reviewer", status="queued", sha=kept.sha)
    world.settings.HOME, world.settings.HOST_NAME = tmp_path / "other", "other"
    with Reconciler() as other:
        other.step()
    assert Run.objects.get(pk=queued.pk).status == "queued"
    assert landings.due("other") == []
    assert [each.pk for each in landings.due("test-host")] == [landing.pk]
    age("test-host", minutes=5)
    assert "only the host test-host has its commits, which was last seen" in standing(kept.task)
    Run.objects.filter(status="queued").update(status="ended", ended_at=timezone.now())
    assert standing(kept.task).startswith("Only the host test-host has its commits, which was last seen")
    age("test-host", hours=1)
    assert abandoned.give_up() == 2
    assert abandoned.give_up() == 0
    for task in (kept.task, landing.task):
        task.refresh_from_db()
        assert task.status == "in_progress"
    assert Landing.objects.get().status == Landing.Status.CONFLICT
    world.kept({"made anew.bin": "z"}, task=landing.task)  # nobody can bring over what is gone


def test_a_shipped_task_whose_commit_is_lost_with_its_host_is_not_landed_for_ever(
    world: World, monkeypatch: Any
) -> None:
    """Its approval stayed, so each tick queued a landing of a commit that no host has."""
    world.duration(abandon=900, beat=0)
    monkeypatch.setattr(submissions, "BUNDLE_MAX", 100)
    naming.register()
    landing = world.accepted({"large.bin": "x" * 1000})
    Task.objects.filter(pk=landing.task_id).update(status="disputed")
    age("test-host", hours=1)
    orchestrator.tick()
    orchestrator.tick()
    assert [each.status for each in Landing.objects.all()] == [Landing.Status.CONFLICT]
    task = Task.objects.get(pk=landing.task_id)
    assert (task.status, task.accepted_id) == ("disputed", None)
    assert Event.objects.filter(task=task, kind="clash").exists()


def test_after_a_restore_no_commit_waits_for_a_host_that_is_not_there(
    world: World, monkeypatch: Any, tmp_path: Path
) -> None:
    """What the restored mirrors have goes on under the new host's name; the rest is done again in time."""
    world.duration(abandon=900, lease=60, beat=0)
    monkeypatch.setattr(submissions, "BUNDLE_MAX", 100)
    naming.register()
    kept, landing = world.kept({"large.bin": "x" * 1000}), world.accepted({"also.bin": "y" * 1000})
    create_host("elsewhere")
    only_there = create_submission(create_task(landing.project, status="review"), state="kept", sha=sha(7))
    Submission.objects.filter(pk=only_there.pk).update(only_on="elsewhere")
    world.settings.HOST_NAME = "restored"
    said = list(restoring.end_what_was_live(timezone.now()))
    assert said[0] == "2 live runs ended; no token of a run is good any more."
    naming.register()
    kept.refresh_from_db()
    assert kept.only_on == "restored"
    assert [each.pk for each in landings.due("restored")] == [landing.pk]
    assert abandoned.give_up() == 0
    Host.objects.exclude(name="restored").update(seen_at=F("seen_at") - timedelta(minutes=15))
    assert abandoned.give_up() == 1
    only_there.refresh_from_db()
    assert only_there.state == "lost"


def test_a_landing_that_waits_for_a_dead_host_holds_the_others_up_for_a_lease_only(world: World) -> None:
    first, second = world.accepted({"large.bin": "x"}), world.accepted({"small.py": "y"})
    Submission.objects.filter(pk=first.submission_id).update(only_on="away")
    age("away", seconds=1)
    assert landings.due("test-host") == []
    age("away", minutes=5)
    assert [each.pk for each in landings.due("test-host")] == [second.pk]


def test_a_branch_on_which_nobody_works_is_looked_at_from_time_to_time(world: World) -> None:
    """Otherwise nobody would notice that landed work is gone from it."""
    world.accepted({"new.py": "one\n"})
    with Reconciler() as host:
        host.step()
        assert Landing.objects.get().status == Landing.Status.LANDED
        git(world.remote.path, "update-ref", "refs/heads/main", world.remote.first)
        host.step()
        assert not Event.objects.filter(kind="landed_work_gone").exists()
        world.duration(base_retry=0.0, reap=0.0)
        host.step()
    assert Event.objects.filter(kind="landed_work_gone").exists()


# --- Background jobs --------------------------------------------------------------------------------------


def test_a_healthy_host_with_nothing_to_do_keeps_its_cluster(world: World, monkeypatch: Any) -> None:
    """Jobs of all hosts are in one queue: an idle one ended its own cluster every 150 seconds."""
    clock = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now, now=1000.0)
    monkeypatch.setattr(watchdog, "time", clock)
    age("busy", seconds=0)
    naming.note_tick()
    dog = watchdog.Watchdog()

    def passed(seconds: int, *ticking: str) -> list[bool]:
        said = []
        for _ in range(seconds):
            clock.now += 1
            Host.objects.filter(name__in=ticking).update(ticked_at=Now())
            said.append(dog.is_wedged(1000.0))
        return said

    assert not any(passed(200, "busy"))  # another one takes all there is
    async_task("agents.jobs.tick", group="tick")
    assert not any(passed(80, "busy"))
    assert any(passed(30, "busy"))  # jobs wait all the time, and this one's cluster takes none
    assert not any(passed(150, "test-host"))
    OrmQ.objects.all().delete()
    assert passed(120)[-1]  # nobody's cluster ticks
    monkeypatch.setattr(broker, "is_away", lambda: True)
    assert not any(passed(300))


def test_a_cluster_begins_anew_after_its_clock_was_set_back(monkeypatch: Any) -> None:
    """Its guard sleeps until a time of day, for that hour once more: who dies meanwhile is not replaced."""
    clock = SimpleNamespace(
        monotonic=lambda: clock.now, time=lambda: clock.now + clock.ahead, now=1.0, ahead=0.0
    )
    monkeypatch.setattr(watchdog, "time", clock)
    dog = watchdog.Watchdog()
    for step, went_back in ((0, False), (-1, False), (3600, False), (-3600, True), (0, False)):
        clock.now += 1
        clock.ahead += step
        assert dog.clock_went_back() == went_back, step


def test_a_host_without_slots_begins_nothing(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(starting, "start", lambda run: None)
    create_host("test-host", slots=0)
    landing = world.accepted({"new.py": "one\n"}, host=create_host("elsewhere"))
    run = create_run(world.task(), "verifier", status="queued", host=None)
    create_project(base_state=Project.Base.UNKNOWN, repo_url=str(world.remote.path))
    with Reconciler() as host:
        host.step()
        assert not host.has_live_runs()
    assert Run.objects.get(pk=run.pk).status == "queued"
    assert Landing.objects.get(pk=landing.pk).status == Landing.Status.QUEUED
    assert not Project.objects.filter(base_state=Project.Base.TRYING).exists()
    Host.objects.update(slots=1)
    with Reconciler() as host:
        host.step()
    assert Run.objects.get(pk=run.pk).status == "starting"
    assert Landing.objects.get(pk=landing.pk).status == Landing.Status.LANDED


def test_a_tick_lets_a_slow_push_finish_unless_a_resident_loop_waits(world: World, monkeypatch: Any) -> None:
    """A cluster alone clones and pushes in its job, which was ended after 50 seconds."""
    world.accepted({"new.py": "one\n"})
    monkeypatch.setattr(jobs, "BUDGET", 0.1)
    hook(world.remote.path, "pre-receive", "sleep 1; cat > /dev/null")
    jobs.tick()
    assert Landing.objects.get().status == Landing.Status.LANDED
    second = world.accepted({"two.py": "two\n"})
    with paths.resident_lock().open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begun = time.monotonic()
        hook(world.remote.path, "pre-receive", "sleep 60; cat > /dev/null")
        jobs.tick()
    assert time.monotonic() - begun < 30
    assert Landing.objects.get(pk=second.pk).status == Landing.Status.PUSHING
    timeouts = {
        bell.TICK_TIMEOUT, OrmQ.objects.latest("pk").task["timeout"],
        literal_eval(Schedule.objects.get(name="tick").kwargs)["q_options"]["timeout"],
    }  # fmt: skip
    assert timeouts == {600}
    assert conf.Conf.RETRY > bell.TICK_TIMEOUT > jobs.SLOW_BUDGET


def test_a_host_runs_only_what_asks_for_no_label_or_one_of_its_own(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(starting, "start", lambda run: None)
    world.settings.HOST_LABELS = ["gpu"]
    create_host("other", seen_at=timezone.now())
    plain, fits = world.project, create_project(settings={"host_label": "gpu"})
    alien = create_project(settings={"host_label": "mac"}, base_state=Project.Base.UNKNOWN)
    mac = create_agent(host_label="mac")
    runs = [
        create_run(create_task(project), "verifier", status="queued", agent=agent)
        for project, agent in ((plain, None), (fits, None), (alien, None), (plain, mac))
    ]
    with Reconciler() as host:
        host.step()
    statuses = [Run.objects.get(pk=run.pk).status for run in runs]
    assert statuses == ["starting", "starting", "queued", "queued"]
    assert Project.objects.get(pk=alien.pk).base_state == Project.Base.UNKNOWN
    assert standing(runs[2].task).endswith(": no host that is alive has the label mac.")


# --- The API server --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_api_server_is_there_and_one_that_was_left_behind_is_ended(world: World) -> None:
    """Each of several processes opened one of its own, and two outlived their host."""
    world.settings.API_URL = ""
    world.duration(api_server_idle=120)
    mark = f"{world.settings.HOME}:{api_server.NAME}"
    left = subprocess.Popen(["sleep", "600"], env={api_server.INSTANCE: mark})
    try:
        urls: list[str] = []
        at_once(*[lambda: urls.append(api_server.address())] * 3)
        assert len({*urls}) == 1
        assert left.wait(30) != 0
        masters = {who.pid for who in processes.marked(api_server.INSTANCE, mark)}
        assert len(masters) == 2  # gunicorn and its one worker
        with pytest.raises(HTTPError, match="404") as long:
            urlopen(f"{urls[0]}/api/v1/nothing/?q={'a' * 8000}")
        assert json.load(long.value)["code"] == "not_found"  # by this program, not by gunicorn
    finally:
        left.kill()
        api_server.close()
    assert not processes.marked(api_server.INSTANCE, mark)


def test_whoever_looks_finds_the_lease_of_the_api_server_whole(world: World) -> None:
    """It once lay empty for a moment at each renewal; the server took that for an old lease, and ended."""
    api_server.touch()
    over, seen = threading.Event(), set[bool]()

    def look() -> None:
        while not over.is_set():
            seen.add(bool(api_server.lease_file().read_text()))

    looking = threading.Thread(target=look)
    looking.start()
    for _ in range(300):
        api_server.touch()
    over.set()
    looking.join()
    assert seen == {True}


# --- What people do with a host ---------------------------------------------------------------------------


def manage(*words: str) -> str:
    said = io.StringIO()
    call_command(*words, stdout=said)
    return said.getvalue()


def test_a_host_is_drained_resumed_and_removed_from_the_command_line(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(starting, "start", lambda run: None)
    assert manage("host", "list").startswith("No host has reported yet.")
    with Reconciler() as host:
        run = create_run(world.task(), "verifier", host=host.row, lease_until=timezone.now())
        queued = create_run(world.task(), "verifier", status="queued")
        said = manage("host", "drain", "test-host")
        assert said == "test-host takes no new runs. It still has 1 run under way.\n"
        host._beaten = 0.0
        host.step()
        assert Run.objects.get(pk=queued.pk).status == "queued"
        line = manage("host", "list")
        assert line.startswith("test-host  draining, seen ")
        assert "4 slots" in line
        assert "free" in line
        Run.objects.filter(pk=run.pk).update(status="ended", ended_at=timezone.now(), lease_until=None)
        assert "is empty and can be stopped" in manage("host", "drain", "test-host", "--wait")
        manage("host", "resume", "test-host")
        host._beaten = 0.0
        host.step()
        assert Run.objects.get(pk=queued.pk).status == "starting"
        with pytest.raises(CommandError, match="it still works"):
            manage("host", "remove", "test-host")
    coder = world.coder(host=Host.objects.get())
    submission = world.hand_in(coder, world.commit(coder, {"new.py": "one\n"}))
    age("test-host", minutes=5)
    assert manage("host", "remove", "test-host").endswith("Its runs keep its name.\n")
    submission.refresh_from_db()
    assert submission.state == Submission.State.LOST
    assert manage("host", "list").startswith("No host")
    with pytest.raises(CommandError, match="There is no host test-host"):
        manage("host", "drain", "test-host")
    with Reconciler() as host:
        assert not host.row.is_removed  # whoever comes back is back
    age("spare", minutes=5)
    assert manage("host", "remove", "spare") == "spare is removed; what only it had is done again.\n"
    assert not Host.objects.filter(name="spare").exists()

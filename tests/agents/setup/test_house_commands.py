"""The commands that list and remove: list_projects, status, remove_agent, remove_project."""

import contextlib
import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.crew.pauses import pause
from agents.hosts import paths
from agents.hosts.reconciler import Reconciler
from agents.hosts.sandbox import HostUnfit
from agents.models import Agent, Host, Prompt, Run, Trial
from agents.providers.reports import ErrorClass
from agents.setup import projects
from agents.verification import trying
from disputes import alerts, opening, rulings
from tasks.database.triggers import no_deletion
from tasks.events import SYSTEM
from tasks.models import Event, Landing, Project, Task, Verification
from tasks.models.event import record
from tasks.remarks.comments import add_comment
from tests.agents.world import Remote
from tests.factories import (
    create_agent,
    create_finding,
    create_host,
    create_project,
    create_review,
    create_run,
    create_submission,
    create_task,
    sha,
)

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[3]


def manage(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def refused(*words: str) -> str:
    with pytest.raises(CommandError) as refusal:
        manage(*words)
    return str(refusal.value)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    settings.HOME = tmp_path
    return tmp_path


@pytest.fixture
def tried(ledger: Project, home: Path) -> Project:
    """A project in which something of every kind happened, but nothing landed and nobody ruled."""
    task = create_task(ledger, number=7, status="in_progress", round=1)
    submission = create_submission(task)
    finding = create_finding(create_review(submission))
    run = create_run(
        task,
        agent=create_agent(name="bo"),
        status="ended",
        outcome="handed_in",
        ended_at=timezone.now(),
        submission=submission,
    )
    Prompt.objects.create(run=run, text="Do it")
    create_agent(name="cy").projects.add(ledger)
    Verification.objects.create(project=ledger, sha=sha(1), commands_hash="0" * 64, green=False)
    add_comment(ledger, "Look.", actor=SYSTEM, task=task)
    opening.open_conflict(
        task, kind="disagreement", origin="cli", opened_as="reviewer", question="Which way?", finding=finding,
        submission=submission, reviewer_position="This.", coder_position="That.",
    )  # fmt: skip
    opening.stop_for_help(create_task(ledger, number=8, status="in_progress"), "blocked", "Who has the key?")
    record(ledger, "project_added")
    (home / "mirrors" / f"{ledger.pk}.git").mkdir(parents=True)
    (home / "mirrors" / f"{ledger.pk}.git.lock").touch()
    paths.run_folder(run.pk).mkdir(parents=True)
    return ledger


# --- list_projects, status --------------------------------------------------------------------------------


def test_list_projects_says_where_each_lies_and_how_its_tasks_stand(ledger: Project) -> None:
    Project.objects.update(
        repo_url="https://bot:hunter2@example.org/l.git", trouble="no route\x1b[2J\nto host"
    )
    create_task(ledger, status="in_progress")
    create_task(ledger)
    assert manage("list_projects").splitlines() == [
        "ledger  active  1 in progress, 1 pending  main of https://bot:***@example.org/l.git",
        "    waits: no route to host",
    ]
    Task.objects.all().delete()
    Project.objects.update(trouble="", base_state="broken")
    assert manage("list_projects").splitlines() == [
        "ledger  active  no tasks  main of https://bot:***@example.org/l.git",
        "    waits: main cannot be run here",
    ]
    for known in ({"base_state": "green"}, {"base_state": "red", "status": "paused"}):
        Project.objects.update(**known)
        assert "waits" not in manage("list_projects"), known


def test_without_projects_list_projects_says_how_to_add_one() -> None:
    assert "manage.py add_project SLUG REPOSITORY" in manage("list_projects")


def test_status_is_one_screen_of_what_runs_and_what_waits_for_whom(tried: Project) -> None:
    host = create_host()
    create_run(
        create_task(tried, number=9, status="in_progress"), host=host, status="running", agent_label="bo"
    )
    pause("claude", ErrorClass.QUOTA, "used up")
    alerts.ask_about_base(tried, "main is red: 2 failed.")
    Project.objects.update(base_state="red", base_problem="2 failed")
    said = manage("status")
    assert said.startswith("The loop does not turn. Start it with `manage.py run_orchestrator`.\n")
    for line in (
        "  ledger  active  ",
        "  ledger-9  bo  Running",
        "  D-",
        "    waits: main is red: 2 failed\n",
        "main is red: 2 failed, since ",
        "Who has the key?, since ",
        "  claude  until ",
        "  ledger-8  D-",
    ):
        assert line in said, line
    Host.objects.update(seen_at=timezone.now(), ticked_at=timezone.now())
    assert manage("status").startswith("The loop turns; 1 of 1 host alive. Times are in UTC.\n")
    Host.objects.update(boot_id="")  # it was stopped a moment ago
    assert manage("status").startswith("The loop does not turn: it last did at ")
    Host.objects.update(boot_id="a boot", disk_free=3_000_000)
    create_host("gone", seen_at=timezone.now() - timedelta(hours=2))
    Project.objects.update(repo_url="", trouble="No route.")
    said = manage("status")
    for line in (  # as the dashboard says it
        "has no room left on its disk: it starts nothing; make room, for instance with",
        "gone has stopped reporting: start it again, or `.venv/bin/python manage.py host remove gone`.\n",
        "    waits: Waits for the repository: No route.\n",
    ):
        assert line in said, line
    found = json.loads(manage("status", "--json"))
    assert [row["what"] for row in found["loop"]["wrong_hosts"]][1:] == ["gone has stopped reporting"]
    assert found["run_count"] == 1
    assert {card["of"] for card in found["cards"]} == {"ledger", "ledger-7", "ledger-8"}
    assert [row["account"] for row in found["pauses"]] == ["claude"]
    assert found["loop"]["host_count"] == Host.objects.count()


def test_status_asks_no_more_of_a_larger_installation(tried: Project) -> None:
    manage("status")
    with CaptureQueriesContext(connection) as few:
        manage("status")
    for number in range(4):
        task = create_task(create_project(f"more-{number}"), status="in_progress")
        create_run(task, agent_label="bo")
    with CaptureQueriesContext(connection) as many:
        manage("status")
    assert len(many) <= len(few) + 2


# --- remove_agent -----------------------------------------------------------------------------------------


def test_an_agent_that_ran_is_retired_and_one_that_never_ran_is_deleted(tried: Project) -> None:
    assert manage("remove_agent", "bo").startswith("bo is retired")
    assert manage("remove_agent", "cy").startswith("cy is deleted")
    assert list(Agent.objects.values_list("name", "is_active")) == [("bo", False)]
    assert Run.objects.get().agent is not None
    assert refused("remove_agent", "dan") == "There is no agent dan. There are: bo."
    again = ["add_agent", "bo", "--role", "coder", "--", "true"]
    assert refused(*again) == (
        "There is an agent bo already, which is retired. Choose another name, or make that one active"
        " again in the admin."
    )
    Agent.objects.update(is_active=True)
    assert refused(*again) == (
        "There is an agent bo already. Choose another name, or change that one in the admin."
    )


# --- remove_project ---------------------------------------------------------------------------------------


def test_a_project_that_left_nothing_behind_is_deleted_with_all_its_rows_and_folders(
    tried: Project, home: Path
) -> None:
    other = create_task(create_project("other"), number=1)
    record(other.project, "project_added", task=other)
    run = Run.objects.get()
    said = manage("remove_project", "ledger", "--yes")
    assert said.splitlines() == [
        "ledger: 2 tasks. All its rows are deleted.",
        "ledger is deleted, with everything that was tried in it.",
        "cy worked in ledger only and is switched off.",
    ]
    assert list(Project.objects.all()) == [other.project]
    assert list(Task.objects.all()) == [other]
    assert {event.project for event in Event.objects.all()} == {other.project}
    assert Agent.objects.count() == 2
    assert not paths.run_folder(run.pk).exists()
    assert list((home / "mirrors").iterdir()) == []
    connection.check_constraints()


def test_an_agent_of_the_removed_project_alone_does_not_work_in_all_others_then(tried: Project) -> None:
    """No projects means all of them: it went on with its keys in repositories that it was not meant for."""
    other = create_project("other")
    for name, projects_of_it in {"mine": [tried], "both": [tried, other], "all": []}.items():
        create_agent("coder", name=name).projects.set(projects_of_it)
    said = manage("remove_project", "ledger", "--yes")
    assert "mine worked in ledger only and is switched off" in said
    named = Agent.objects.filter(name__in=["mine", "both", "all"]).order_by("name")
    assert [(agent.name, agent.is_active) for agent in named] == [
        ("all", True),
        ("both", True),
        ("mine", False),
    ]


def test_a_closed_pipe_or_a_full_disk_below_a_command_is_no_traceback(home: Path) -> None:
    home.chmod(0o700)
    surroundings = os.environ | {"STEROIDS_HOME": str(home), "SECRET_KEY": "k" * 50}
    command = f"set -o pipefail; {sys.executable} manage.py export_config --reference"
    for into, code, says in (("| true", 0, ""), ("> /dev/full", 1, "No space left on device")):
        done = subprocess.run(
            ["bash", "-c", f"{command} {into}"], cwd=ROOT, env=surroundings, capture_output=True, text=True
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, done.stderr
        assert says in done.stderr


def test_ctrl_c_ends_a_command_that_waits_with_a_sentence(
    ledger: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    create_run(create_task(ledger, status="in_progress"), host=create_host("atlas"))
    with pytest.raises(SystemExit) as ended:
        call_command("host", "drain", "atlas", "--wait")
    assert ended.value.code == 130
    assert capsys.readouterr().err == "\nStopped. What was done stays; run it again to go on.\n"


def test_with_a_project_goes_the_trial_that_is_under_way(tried: Project, home: Path) -> None:
    of_it = {"why": "search", "sha": sha(1)}
    trial = Trial.objects.create(project=tried, status="running", host=create_host(), **of_it)
    other = Trial.objects.create(project=create_project("other"), **of_it)
    folders = [trying.folder_of(each.pk) for each in (trial, other)]
    for folder in folders:
        folder.mkdir(parents=True)
    command = ["sleep", "60"]
    process = subprocess.Popen(command, cwd=folders[0], env=os.environ | {"STEROIDS_RUN": "trial"})
    try:
        manage("remove_project", "ledger", "--yes")
        assert process.wait(10) < 0
    finally:
        process.kill()
        process.wait()
    assert list((home / "trials").iterdir()) == folders[1:]


def test_whoever_follows_the_trials_of_a_removed_project_is_told(
    ledger: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "_hold_host", lambda stack, say: None)
    Project.objects.all().delete()
    with pytest.raises(CommandError, match="ledger was removed while it was being tried"):
        projects.follow(ledger, print)


def test_whoever_follows_trials_that_no_host_begins_is_told_why(
    ledger: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "_hold_host", lambda stack, say: None)
    monkeypatch.setattr(projects, "POLL", 0)
    monkeypatch.setattr(projects, "PATIENCE", 0)
    create_host(is_draining=True)
    Project.objects.update(base_state="unknown")
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        Project.objects.update(base_state="green")

    projects.follow(ledger, say)
    assert said[0] == projects.NOBODY_TRIES
    assert len(said) == 2


def test_whoever_follows_trials_takes_the_host_when_another_command_lets_go_of_it(
    ledger: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "PATIENCE", 0)
    Project.objects.update(base_state="unknown")
    turns: list[Project] = []

    def advance(host: Host, do: trying.Do, *, only: int) -> None:
        turns.append(Project.objects.get(pk=only))
        Project.objects.update(base_state="green")

    monkeypatch.setattr(trying, "advance", advance)
    with contextlib.ExitStack() as another_command:
        another_command.enter_context(Reconciler())
        monkeypatch.setattr(time, "sleep", lambda seconds: another_command.close())
        said: list[str] = []
        projects.follow(ledger, said.append)
    assert turns == [ledger]
    assert said[0] == projects.WAITS


def test_the_trials_that_are_followed_keep_their_count_when_one_is_green(
    ledger: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (1, 2, 3):
        Trial.objects.create(project=ledger, why="search", ordinal=each, test=f"t{each}")
    Project.objects.update(base_state="trying")
    first, rest = Trial.objects.filter(ordinal=1), Trial.objects.filter(ordinal__gt=1)

    def advance(host: Host, do: trying.Do, *, only: int) -> None:
        now = timezone.now()
        if first.filter(status="queued").update(status="running", host=host, started_at=now):
            return
        first.update(status="ended", outcome="green", ended_at=now)
        rest.update(status="ended", outcome="skipped", ended_at=now)
        Project.objects.update(base_state="green")

    monkeypatch.setattr(trying, "advance", advance)
    monkeypatch.setattr(projects, "POLL", 0)
    said: list[str] = []
    projects.follow(ledger, said.append)
    assert said[:2] == ["  trying 1 of 3: t1", "    1 of 3: green after 0 s"]


def test_whoever_follows_trials_on_an_unfit_host_is_told_once_what_it_lacks(
    ledger: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfit(host: Reconciler) -> None:
        raise HostUnfit("bubblewrap is missing.")

    monkeypatch.setattr(projects, "PATIENCE", 0)
    monkeypatch.setattr(Reconciler, "take", unfit)
    monkeypatch.setattr(time, "sleep", lambda seconds: Project.objects.update(base_state="green"))
    Project.objects.update(base_state="unknown")
    said: list[str] = []
    projects.follow(ledger, said.append)
    assert said[:-1] == ["bubblewrap is missing.", projects.NOBODY_TRIES]


def test_after_it_events_are_append_only_again(tried: Project) -> None:
    event = record(create_project("other"), "project_added")
    manage("remove_project", "ledger", "--yes")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Event.objects.filter(pk=event.pk)._raw_delete("default")
    no_deletion("tasks_event").remove(connection)  # as the tests have it


def test_a_project_that_is_added_and_removed_leaves_no_file(home: Path, tmp_path: Path) -> None:
    project = projects.add_project("mine", str(Remote(tmp_path).path))
    there = {path.name for path in (home / "mirrors").iterdir()}
    assert there <= {f"{project.pk}.git", f"{project.pk}.git.lock"}
    paths.mirror(project).fetch_target()
    manage("remove_project", "mine", "--yes")
    assert list((home / "mirrors").iterdir()) == []


def test_a_project_with_a_history_is_kept_as_abandoned(tried: Project, lea: User, home: Path) -> None:
    task = Task.objects.get(number=7)
    rulings.decide(task.disputes.get().conflicts.get(), "uphold_reviewer", user=lea)
    Landing.objects.create(
        project=tried,
        task=task,
        submission=task.submissions.get(),
        sha=sha(2),
        target="main",
        status="landed",
    )
    events = Event.objects.count()
    said = manage("remove_project", "ledger", "--yes")
    assert "ledger is kept as abandoned, for it has 1 landing and 1 ruling." in said
    tried.refresh_from_db()
    assert (tried.status, tried.exit_type) == ("finished", "abandoned")
    assert Event.objects.count() > events
    assert list((home / "mirrors").iterdir()) == []
    assert "had ended already" in manage("remove_project", "ledger", "--yes")


def test_a_project_is_removed_only_by_its_name_typed_again(
    tried: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: "leger")
    assert refused("remove_project", "ledger") == "That is another name. Nothing was removed."
    assert refused("remove_project", "leger") == "There is no project leger. There are: ledger."
    monkeypatch.setattr("builtins.input", lambda prompt: "ledger")
    manage("remove_project", "ledger")
    assert not Project.objects.exists()


def test_a_project_with_runs_under_way_is_removed_only_with_force(tried: Project, settings: Any) -> None:
    settings.DURATIONS = settings.DURATIONS | {"grace": 0.1, "lease": 0.1, "landing_claim": 60.0}
    work = Task.objects.get(number=7).submissions.get()
    pushed = Landing.objects.create(project=tried, task=work.task, submission=work, sha=work.sha)
    Landing.objects.update(status="pushing", claimed_until=timezone.now() + timedelta(minutes=1))
    said = "ledger-7 is being pushed. Try again in 60 seconds. Nothing was removed."
    assert refused("remove_project", "ledger", "--yes", "--force") == said
    pushed.delete()
    queued = create_run(create_task(tried, number=9, status="in_progress"), status="queued")
    assert "ledger has 1 run under way." in refused("remove_project", "ledger", "--yes")
    held = create_run(
        create_task(tried, number=10, status="in_progress"), status="running", host=create_host()
    )
    assert "does run_orchestrator run?" in refused("remove_project", "ledger", "--yes", "--force")
    queued.refresh_from_db()
    held.refresh_from_db()
    tried.refresh_from_db()
    assert (queued.status, held.stop_requested, tried.status) == ("ended", True, "paused")
    Run.objects.filter(pk=held.pk).update(status="ended", outcome="stopped", ended_at=timezone.now())
    assert "ledger is deleted" in manage("remove_project", "ledger", "--yes")


# --- Where the first hour ends ------------------------------------------------------------------------------


def test_start_ends_with_what_is_still_missing(ledger: Project, lea: User) -> None:
    User.objects.filter(pk=lea.pk).update(is_superuser=True)
    create_task(ledger)
    coder = create_agent("coder", name="writer", is_fine=True)
    create_agent("reviewer", name="reader", is_fine=True)
    words = ["start", "--yes", "--repository", ledger.slug]
    assert manage(*words).endswith("\nReady. Start it: .venv/bin/python manage.py run_orchestrator\n")

    Project.objects.filter(pk=ledger.pk).update(base_state="red", base_problem="3 failed")
    last = manage(*words).splitlines()[-1]
    assert last.startswith("Not ready yet. No coder begins in ledger: main is red. Once it is started, ")
    assert last.endswith(": .venv/bin/python manage.py run_orchestrator")

    Project.objects.filter(pk=ledger.pk).update(trouble="ledger.git cannot be reached: no such host.")
    assert "No coder begins in ledger: ledger.git cannot be reached: no such host. Once" in manage(*words)

    Agent.objects.filter(pk=coder.pk).update(
        is_fine=None, provider="command", settings={"command": ["false"]}
    )
    assert refused(*words).endswith(
        "\nNo coder begins in ledger: ledger.git cannot be reached: no such host."
    )

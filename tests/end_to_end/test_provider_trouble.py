"""Trouble with a provider is no failure of a task: its account rests, others step in, and a page says so."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client
from django.utils import timezone

from agents.crew import pauses
from agents.models import Agent, ProviderPause, Run
from disputes.models import Conflict
from tasks.models import Project, Task
from tests.end_to_end.loop import APPROVER, Loop, bare_remote, command_agent, script, small_project, task_in

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# A command that prints what Codex prints. It has a quota until the file `spent` is gone.
CODEX = """
    import json, os, pathlib, subprocess, sys
    def say(**event): print(json.dumps(event), flush=True)
    assert "exec" in sys.argv and sys.argv[-1] == "-" and "task small-1" in sys.stdin.read().lower()
    say(type="thread.started", thread_id="t1")
    say(type="turn.started")
    if pathlib.Path({spent!r}).exists():
        say(type="turn.failed", error={{"message": {message!r}}})
        sys.exit(1)
    pathlib.Path("hello.txt").write_text("hello\\n")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "feat: say hello"], check=True)
    code = subprocess.run(["steroids", "tasks", "update", "--status", "review"]).returncode
    usage = {{"input_tokens": 1500, "cached_input_tokens": 300, "output_tokens": 50}}
    say(type="turn.completed", usage=usage)
    sys.exit(code)
"""
HOUR = "You've hit your usage limit. Try again in 1 hour."


def let_pass(time: timedelta) -> None:
    """Bring whatever rests that much nearer to its end, which goes by the database's clock."""
    ProviderPause.objects.update(until=F("until") - time)
    Task.objects.update(not_before=F("not_before") - time)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return small_project(bare_remote(tmp_path, {"README.md": "Small.\n"}))


@pytest.fixture(autouse=True)
def reviewer(project: Project, tmp_path: Path) -> Agent:
    return command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))


def codex(folder: Path, name: str, message: str = HOUR, **more: Any) -> Agent:
    """A coder whose command is the one above; with `spent` its quota is used up."""
    program = script(folder, name, CODEX.format(spent=str(folder / f"{name}-spent"), message=message))
    settings = {"program": str(program), "base_url": "http://127.0.0.1:9/v1", "account": name}
    agent = Agent(
        name=name, role="coder", provider="codex", model="gpt-5.5", settings=settings, slots=4, **more
    )
    agent.full_clean()
    agent.save()
    return agent


def spend(folder: Path, name: str) -> Path:
    """From now on the account's quota is used up, until the file is gone."""
    path = folder / f"{name}-spent"
    path.touch()
    return path


def dashboard() -> str:
    lea = User.objects.create_superuser("lea", password="x")
    client = Client()
    client.force_login(lea)
    return client.get("/admin/").content.decode()


def coder_runs(task: Task) -> list[Run]:
    return list(Run.objects.filter(task=task, role="coder").order_by("pk"))


def test_an_hour_without_quota_costs_no_failure_and_then_work_goes_on(
    loop: Loop, project: Project, tmp_path: Path
) -> None:
    codex(tmp_path, "cx")
    spent = spend(tmp_path, "cx")
    task = task_in(project)
    loop.until_idle(60)

    pause = ProviderPause.objects.get()
    minutes = (pause.until - timezone.now()).total_seconds() / 60
    assert (pause.name, pause.kind) == ("cx", "quota")
    assert 50 < minutes <= 60
    runs = coder_runs(task)
    assert [(run.outcome, run.error_class, run.is_counted) for run in runs] == [("provider", "quota", False)]
    assert "Try again in 1 hour" in runs[0].reason
    page = dashboard()
    assert f"{timezone.localtime(pause.until):%H:%M}" in page
    assert "Its quota is used up" in page
    assert "Try again now" in page

    spent.unlink()
    loop.until_idle(60)
    assert len(coder_runs(task)) == 1  # the time is not over

    let_pass(timedelta(minutes=61))
    loop.until_idle(60)
    task.refresh_from_db()
    assert task.landed_sha
    assert [run.outcome for run in coder_runs(task)] == ["provider", "handed_in"]
    assert not ProviderPause.objects.exists()  # a run that handed in ends the trouble
    assert not Run.objects.filter(is_counted=True).exists()
    assert not Conflict.objects.exclude(kind="alert").exists()


def test_another_account_of_the_tier_steps_in(loop: Loop, project: Project, tmp_path: Path) -> None:
    codex(tmp_path, "cx-one", tier="large", priority=5)
    codex(tmp_path, "cx-two", tier="large")
    spend(tmp_path, "cx-one")
    task = task_in(project)
    loop.until_idle(60)
    task.refresh_from_db()
    assert task.landed_sha
    assert [(run.agent_label, run.outcome) for run in coder_runs(task)] == [
        ("cx-one", "provider"), ("cx-two", "handed_in"),
    ]  # fmt: skip
    assert pauses.paused().keys() == {"cx-one"}
    assert not Run.objects.filter(is_counted=True).exists()


def test_a_maintainer_tries_again_now(loop: Loop, project: Project, tmp_path: Path) -> None:
    codex(tmp_path, "cx")
    spent = spend(tmp_path, "cx")
    task = task_in(project)
    loop.until_idle(60)
    spent.unlink()
    client = Client()
    client.force_login(User.objects.create_superuser("lea", password="x"))
    answer = client.post(f"/accounts/{ProviderPause.objects.get().pk}/try/")
    assert answer.status_code == 302
    loop.until_idle(60)
    task.refresh_from_db()
    assert task.landed_sha


def test_a_model_that_is_not_served_counts_and_says_what_to_change(
    loop: Loop, project: Project, tmp_path: Path
) -> None:
    codex(tmp_path, "cx", message="The model `gpt-5.5` does not exist or you do not have access to it.")
    spend(tmp_path, "cx")
    task = task_in(project)
    loop.until(task, "disputed")
    assert {(run.outcome, run.error_class, run.is_counted) for run in coder_runs(task)} == {
        ("crash", "model", True)
    }
    assert "Correct the agent's model" in coder_runs(task)[0].reason
    assert not ProviderPause.objects.exists()


def test_a_sign_in_that_is_not_there_pauses_and_costs_nothing(
    loop: Loop, project: Project, tmp_path: Path
) -> None:
    agent = codex(tmp_path, "cx")
    Agent.objects.filter(pk=agent.pk).update(settings=agent.settings | {"key": "NO_SUCH_KEY_HERE"})
    task = task_in(project)
    loop.until_idle(60)
    run = Run.objects.get(task=task, role="coder")
    assert (run.outcome, run.error_class, run.is_counted) == ("provider", "sign_in", False)
    assert "the variable NO_SUCH_KEY_HERE is not set" in run.reason
    assert pauses.paused().keys() == {"cx"}


def test_a_command_that_waits_for_ever_is_given_up(loop: Loop, project: Project, tmp_path: Path) -> None:
    waiting = """
        import json, time
        for _ in range(5):
            print(json.dumps({"type": "error", "message": "Reconnecting... waiting for network"}), flush=True)
        time.sleep(3600)
    """
    program = script(tmp_path, "waiting", waiting)
    Agent.objects.create(
        name="cx", role="coder", provider="codex", model="gpt-5.5",
        settings={"program": str(program), "base_url": "http://127.0.0.1:9/v1"},
    )  # fmt: skip
    task = task_in(project)
    loop.until(task, "in_progress")
    loop.until_idle(60)
    run = coder_runs(task)[0]
    assert (run.outcome, run.error_class, run.is_counted) == ("provider", "network", False)


def test_the_run_has_a_home_with_nothing_but_its_configuration(
    loop: Loop, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-of-the-team")
    seen = tmp_path / "seen"
    body = f"""
        import json, os, pathlib, stat, sys
        home = pathlib.Path(os.environ["HOME"])
        found = {{str(p.relative_to(home)): oct(stat.S_IMODE(p.stat().st_mode)) for p in home.rglob("*")}}
        data = {{"argv": sys.argv, "env": dict(os.environ), "home": found}}
        pathlib.Path({str(seen)!r}).write_text(json.dumps(data))
    """
    program = script(tmp_path, "look", body)
    Agent.objects.create(
        name="cx", role="coder", provider="codex", model="gpt-5.5",
        settings={"program": str(program), "base_url": "http://127.0.0.1:9/v1", "key": "MY_KEY"},
    )  # fmt: skip
    task = task_in(project)
    loop.until(task, "disputed")
    told = json.loads(seen.read_text())
    assert told["home"] == {".codex": "0o700", ".codex/config.toml": "0o600"}
    assert told["env"]["OPENAI_API_KEY"] == "sk-secret-of-the-team"
    assert "MY_KEY" not in told["env"]
    assert "SECRET_KEY" not in told["env"]
    assert "sk-secret-of-the-team" not in " ".join(told["argv"])
    assert all(run.outcome == "nothing" for run in coder_runs(task))  # it ended with 0, and that is nothing


# A command of one's own: it ends with this code after these words, until the file `away` is gone.
OWN = """
    import pathlib, subprocess, sys
    if pathlib.Path({away!r}).exists():
        print({words!r})
        sys.exit({code})
    pathlib.Path("hello.txt").write_text("hello\\n")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "feat: say hello"], check=True)
    sys.exit(subprocess.run(["steroids", "tasks", "update", "--status", "review"]).returncode)
"""


@pytest.mark.parametrize(
    ("code", "words", "says"),
    [
        (75, "The pool is being restarted", "The pool is being restarted"),
        (1, "dial: ECONNREFUSED", "ECONNREFUSED"),
    ],
)
def test_a_command_of_ones_own_says_that_it_is_to_be_tried_later(
    loop: Loop, project: Project, tmp_path: Path, code: int, words: str, says: str
) -> None:
    away = tmp_path / "away"
    away.touch()
    coder = command_agent("own", script(tmp_path, "own", OWN.format(away=str(away), words=words, code=code)))
    coder.role, coder.settings = "coder", coder.settings | {"again": ["econnrefused"]}
    coder.full_clean()
    coder.save()
    task = task_in(project)
    loop.until_so(ProviderPause.objects.exists)
    run = coder_runs(task)[0]
    assert (run.outcome, run.error_class, run.is_counted) == ("provider", "network", False)
    assert says in run.reason
    assert says in ProviderPause.objects.get().reason
    away.unlink()
    let_pass(timedelta(minutes=30))
    loop.until_idle(60)
    task.refresh_from_db()
    assert task.landed_sha
    assert not Run.objects.filter(is_counted=True).exists()

"""Caps of money with real shims: a run that crosses one is stopped while it streams, and a human is asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.hosts.reconciler import Reconciler
from agents.loop import orchestrator
from agents.models import Agent, Run
from agents.money import metering
from disputes import rulings
from disputes.models import Conflict
from disputes.protocol.rulings.options import Option
from tasks.models import Membership
from tests.end_to_end.loop import (
    APPROVER,
    Loop,
    bare_remote,
    command_agent,
    git,
    script,
    small_project,
    task_in,
)
from tests.factories import create_user

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# Claude Code's own stream, a request a line, each with its usage; many of them never come to an end.
SPENDER = """
    import json, pathlib, sys, time
    sys.stdin.read()
    pathlib.Path("half.txt").write_text("half done\\n")
    def say(**event):
        print(json.dumps(event), flush=True)
    say(type="system", subtype="init", session_id="s-1", model="{model}")
    for number in range({requests}):
        usage = {{"input_tokens": 100000, "output_tokens": 10000, "cache_read_input_tokens": 0}}
        say(type="assistant", message={{"id": f"m{{number}}", "content": [], "usage": usage}})
    if {requests} < 5:
        say(type="result", usage=usage, total_cost_usd=0.25, modelUsage={{}}, result="Done.")
        import subprocess
        pathlib.Path("rest.txt").write_text("and the rest\\n")
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", "feat: half"], check=True)
        sys.exit(subprocess.run(["steroids", "tasks", "update", "--status", "review"]).returncode)
    time.sleep(600)
"""


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare_remote(tmp_path, {"README.md": "Small.\n"})


def spender(folder: Path, requests: int = 20, model: str = "claude-sonnet-4-5") -> Agent:
    """An agent that speaks as Claude Code does: 100,000 tokens in and 10,000 out for each request."""
    program = script(folder, f"spender-{requests}", SPENDER.format(requests=requests, model=model))
    where = {"program": str(program), "base_url": "http://127.0.0.1:9"}
    return Agent.objects.create(name="spender", role="coder", provider="claude", slots=4, settings=where)


def test_a_run_that_crosses_its_cap_is_stopped_saved_and_a_human_is_asked(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    project = small_project(remote, run_cost_max=2.0)
    task = task_in(project)
    spender(tmp_path)
    loop.until(task, "disputed")

    run = Run.objects.get()
    conflict = Conflict.objects.get()
    assert (run.outcome, run.is_counted, run.cost_from) == ("cost", False, "prices")
    assert (run.tokens_in, run.tokens_out, run.session_id) == (2_000_000, 200_000, "s-1")
    assert run.cost == 9  # 2 million at $3, 200,000 at $15
    assert run.reason == "The cap of a run is reached: $9.00 of $2.00 is spent."
    assert (conflict.kind, conflict.origin) == ("help", "budget")
    assert conflict.question.startswith("The cap of a run is reached: $9.00 of $2.00 is spent.")
    assert conflict.evidence[0] == "run_cost_max: $9.00 of $2.00"
    assert conflict.evidence[1] == "spender (claude-sonnet-4-5): $9.00, 2,200,000 tokens, 1 run"
    mirror = loop.home / "mirrors" / f"{project.pk}.git"
    assert git(mirror, "show", f"{run.salvage_sha}:half.txt") == "half done"


def test_raised_by_a_human_the_task_goes_on_where_the_run_was_stopped(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    project = small_project(remote, run_cost_max=2.0)
    task = task_in(project)
    agent = spender(tmp_path)
    command_agent("reviewer", script(tmp_path, "reviewer", APPROVER))
    loop.until(task, "disputed")
    first = Run.objects.get()
    program = script(tmp_path, "thrifty", SPENDER.format(requests=2, model="claude-sonnet-4-5"))
    Agent.objects.filter(pk=agent.pk).update(settings=agent.settings | {"program": str(program)})
    lea = create_user("lea")
    Membership.objects.create(project=project, user=lea, role="triager")

    rulings.decide(Conflict.objects.get(), Option.RAISE, user=lea, text="$5, it is nearly done")
    loop.until_idle()

    task.refresh_from_db()
    second = Run.objects.filter(role="coder").order_by("-pk")[0]
    assert task.landed_sha
    assert second.base_sha == first.salvage_sha
    assert git(remote, "show", "main:half.txt") == "half done"
    assert (second.cost_from, float(second.cost or 0)) == (
        "agent",
        0.25,
    )  # its own word counts before the list


def test_whoever_takes_over_reads_the_stream_anew_and_stops_the_run_all_the_same(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    task = task_in(small_project(remote))
    spender(tmp_path)
    with Reconciler() as host:
        while not Run.objects.filter(tokens_in=2_000_000).exists():
            orchestrator.tick()
            host.step()
            host.wait()
    before = Run.objects.get()
    assert (before.status, before.cost) == ("running", 9)

    metering.forget(set())  # another process knows nothing of what was read
    task.project.settings |= {"task_cost_max": 8.5}
    task.project.save()
    loop.until(task, "disputed")

    run = Run.objects.get()
    assert (run.pk, run.outcome, run.tokens_in, run.cost) == (before.pk, "cost", 2_000_000, 9)
    assert Conflict.objects.get().evidence[0] == "task_cost_max: $9.00 of $8.50"


def test_a_cap_of_tokens_stops_a_run_whose_cost_nobody_knows(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    task = task_in(small_project(remote, run_cost_max=0.01, run_tokens_max=1_000_000))
    spender(tmp_path, model="home-grown-1")
    loop.until(task, "disputed")

    run = Run.objects.get()
    assert (run.outcome, run.cost, run.cost_from, run.model) == ("cost", None, "", "home-grown-1")
    assert "2,200,000 tokens of 1,000,000 tokens" in run.reason


def test_a_cap_of_the_day_stops_every_live_run_and_starts_none(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    project = small_project(remote, day_cost_max=10.0)
    project.max_parallel = 2
    project.save()
    tasks = [task_in(project, title) for title in ("One", "Two", "Three")]
    spender(tmp_path)
    with Reconciler() as host:
        while Run.objects.filter(outcome="cost").count() < 2:
            orchestrator.tick()
            host.step()
            host.wait()
        for _ in range(3):
            orchestrator.tick()
            host.step()

    assert Run.objects.count() == 2
    assert not Conflict.objects.exists()
    lines = [standing_line(task) for task in tasks]
    assert all("The cap of the day is reached: $18.00 of $10.00 is spent." in line for line in lines)
    assert project.events.filter(kind="cap_reached").count() == 1


def standing_line(task: Any) -> str:
    from agents.web.standing import line_of

    task.refresh_from_db()
    return line_of(task)


def test_the_example_speaks_as_claude_code_does() -> None:
    from agents.providers.claude import ClaudeReader

    reader = ClaudeReader()
    usage = {"input_tokens": 100_000, "output_tokens": 10_000, "cache_read_input_tokens": 0}
    event = {"type": "assistant", "message": {"id": "m1", "content": [], "usage": usage}}
    reader.feed(json.dumps(event).encode() + b"\n")

    assert (reader.report.tokens_in, reader.report.tokens_out) == (100_000, 10_000)

"""The real commands in trouble. Not in the normal suite: `make test-agents`.

Each fault of the model's server ends a run as a named outcome with a class of error, leaves no process, and
what is no failure of the task is not counted as one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.hosts import paths, processes
from agents.hosts.reconciler import Reconciler
from agents.loop import orchestrator
from agents.models import Agent, ProviderPause, Run
from tasks.models import Task
from tests.end_to_end.installation import wait_for
from tests.end_to_end.loop import Loop, git, small_project, task_in
from tests.real_agents.commands import COMMANDS
from tests.real_agents.scripts import SCRIPTS, work
from tests.real_agents.stub import ModelStub, closed_address

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

PATIENCE = 120.0
SILENCE, WALL = 30.0, 60.0  # for what never ends by itself: longer than any command takes to begin
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class End:
    """How a run ends."""

    outcome: str
    error_class: str = ""
    pauses: bool = False  # its account rests

    def __str__(self) -> str:
        return f"{self.outcome}-{self.error_class}" if self.error_class else self.outcome


def resting(error_class: str) -> End:
    return End("provider", error_class, pauses=True)


# What every command makes of a fault; where one differs, its own line decides.
ENDS = {
    "sign_in": resting("sign_in"),
    "rate_hour": resting("rate"),
    "quota": resting("quota"),
    "overloaded": resting("rate"),
    "refused": resting("network"),
    "cut": resting("network"),
    "short": resting("network"),
    "model": End("crash", "model"),
    "too_long": End("crash", "prompt"),
    "hang": End("silent"),
}
OWN_ENDS = {
    ("gemini", "rate_hour"): resting("quota"),  # "You exceeded your current quota", says the vendor
    ("gemini", "bad_key"): resting("sign_in"),
    ("codex", "hang"): End("silent"),
}
FAULTS = [(name, fault) for name in sorted(COMMANDS) for fault in ENDS] + [("gemini", "bad_key")]


def an_agent(provider: str, url: str, role: str = "coder", **more: Any) -> Agent:
    command = COMMANDS[provider]
    return Agent.objects.create(
        name=more.pop("name", f"{provider}-{role}"), role=role, provider=provider, model=command.model,
        settings=command.settings_for(url), **more,
    )  # fmt: skip


def first_end(task: Task) -> Run:
    """Turn until the task's first coder has ended."""

    def ended() -> Run | None:
        orchestrator.tick()
        host.step()
        return Run.objects.filter(task=task, role="coder", status="ended").first()

    with Reconciler() as host:
        return wait_for(ended, "the end of the run")


def output_of(run: Run) -> str:
    return f"{run.reason}\n" + "".join(run.outputs.values_list("text", flat=True))


def assert_nothing_lives(run: Run) -> None:
    """By its home, which no other run has; run numbers are the same in every installation."""
    home = str(paths.run_folder(run.pk) / "home")
    wait_for(lambda: not processes.marked("HOME", home), "the end of all its processes")


@pytest.fixture(autouse=True)
def short_limits(loop: Loop, settings: Any) -> None:
    settings.DURATIONS = settings.DURATIONS | {"silence": SILENCE, "wall": WALL, "grace": 3.0}


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_of_the_server_has_a_name(
    name: str, fault: str, loop: Loop, remote: Path, model_stub: Callable[..., ModelStub]
) -> None:
    url = closed_address() if fault == "refused" else model_stub(work, fault).url
    agent = an_agent(name, url)
    task = task_in(small_project(remote))
    run = first_end(task)
    said = output_of(run)
    expected = OWN_ENDS.get((name, fault)) or ENDS[fault]
    pause = ProviderPause.objects.filter(name=agent.account, until__gt=run.started_at).first()
    assert End(run.outcome, run.error_class, pause is not None) == expected, said
    assert run.is_counted is not expected.pauses, said
    assert run.reason, said
    assert_nothing_lives(run)
    if pause is None:
        return
    assert pause.kind == expected.error_class
    for _ in range(5):
        loop.turn()
    while_it_rests = Run.objects.filter(role="coder", queued_at__lt=pause.until)
    assert list(while_it_rests) == [run]


def test_a_reset_time_of_an_hour_is_believed(
    loop: Loop, remote: Path, model_stub: Callable[..., ModelStub]
) -> None:
    """Only gemini says when; the others are tried again after a pause of ours."""
    agent = an_agent("gemini", model_stub(work, "rate_hour").url)
    run = first_end(task_in(small_project(remote)))
    pause = ProviderPause.objects.get(name=agent.account)
    assert pause.until is not None
    assert run.ended_at is not None
    assert abs(pause.until - run.ended_at - HOUR) < timedelta(minutes=2), output_of(run)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_quota_of_one_account_costs_no_failure_and_another_one_goes_on(
    name: str, loop: Loop, remote: Path, model_stub: Callable[..., ModelStub]
) -> None:
    other = "codex" if name == "claude" else "claude"
    good = model_stub(work)
    an_agent(name, model_stub(work, "quota").url, name="first", priority=9)
    an_agent(other, good.url, name="second", priority=1)
    an_agent(other, good.url, "reviewer")
    task = task_in(small_project(remote))
    loop.until(task, "completed", seconds=PATIENCE)
    coders = Run.objects.filter(role="coder").order_by("pk")
    ends = [(run.agent.name, run.outcome) for run in coders if run.agent]
    assert ends == [("first", "provider"), ("second", "handed_in")]
    assert not Run.objects.filter(is_counted=True).exists()
    loop.until_idle()
    assert git(remote, "show", "main:hello.txt") == "hello from small-1"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_an_exit_with_0_and_no_action_is_nothing(
    name: str, loop: Loop, remote: Path, model_stub: Callable[..., ModelStub]
) -> None:
    an_agent(name, model_stub(SCRIPTS["nothing"]).url)
    run = first_end(task_in(small_project(remote)))
    assert (run.outcome, run.error_class, run.exit_code) == ("nothing", "", 0), output_of(run)
    assert run.is_counted
    assert run.tokens_out > 0
    assert_nothing_lives(run)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_work_that_was_not_handed_in_is_kept(
    name: str, loop: Loop, remote: Path, model_stub: Callable[..., ModelStub]
) -> None:
    an_agent(name, model_stub(SCRIPTS["edits_only"]).url)
    run = first_end(task_in(small_project(remote)))
    assert run.outcome == "nothing", output_of(run)
    assert run.salvage_sha
    assert git(remote, "rev-list", "--count", "main") == "1"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_tool_that_never_ends_is_ended_with_all_its_children(
    name: str, loop: Loop, remote: Path, model_stub: Callable[..., ModelStub]
) -> None:
    stub = model_stub(SCRIPTS["never_ends"])
    an_agent(name, stub.url)
    run = first_end(task_in(small_project(remote)))
    assert len(stub.turns()) >= 1
    # codex goes on after some seconds with the tool in the background, and ends by itself; claude says every
    # half minute that its tool is at work, and is not silent.
    ends = {"codex": {"nothing"}, "claude": {"silent", "wall"}}.get(name, {"silent"})
    assert run.outcome in ends, output_of(run)
    assert_nothing_lives(run)


def test_no_key_at_all_is_a_sentence_and_no_failure(
    loop: Loop, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    an_agent("claude", closed_address())
    run = first_end(task_in(small_project(remote)))
    assert run.error_class == "sign_in"
    assert "ANTHROPIC_API_KEY is not set" in run.reason
    assert not run.is_counted

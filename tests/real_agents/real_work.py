"""The real commands take a task through the whole program. Not in the normal suite: `make test-agents`.

Everything runs: the orchestrator with its web server, shims, git, the command, `steroids` in its shell. Only
the model is a stub, on loopback, in a network of the test's own.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agents.hosts import api_server, sandbox
from agents.models.host import Tier
from tests.conftest import EMPTY
from tests.end_to_end.installation import Installation, wait_for
from tests.end_to_end.loop import git
from tests.real_agents import apart
from tests.real_agents.commands import COMMANDS, DUMMY, Command, path_with_commands
from tests.real_agents.scripts import LAST_WORDS, reject_once, work
from tests.real_agents.stub import ModelStub
from tests.real_agents.wires import CACHED, READ, WRITTEN

pytestmark = pytest.mark.slow

# At every start opencode asks for its package registry, and goes on without; no switch was found.
LOOKS_AROUND = {"opencode"}
SET_UP = """
import json, sys
from agents.models import Agent
from tasks.models import Project, Section, Task
wanted = json.loads({wanted!r})
project = Project.objects.create(
    slug="small", name="Small", repo_url=wanted["remote"],
    settings={{"test_command": "test ! -e hello.txt || grep -qi hello hello.txt", "undo_seconds": 0}},
)
section = Section.objects.create(project=project, title="Work", rank=1)
Task.objects.create(project=project, section=section, number=1, title="Say hello", rank=1)
for role in ("coder", "reviewer"):
    Agent.objects.create(
        name=f"{{role}}-1", role=role, provider=wanted["provider"], model=wanted["model"],
        settings=wanted["settings"],
    )
"""


@pytest.fixture
def installation(alone: bool, tmp_path: Path, db: None) -> Any:
    """An empty one in this test's network; whatever lives in it at the end is ended."""
    made = Installation(tmp_path / "home")
    made.begin_with(EMPTY)
    made.environment |= {"PATH": path_with_commands(), "PORT": str(api_server.free_port())}
    made.environment |= {command.key_variable: DUMMY for command in COMMANDS.values()}
    made.environment["STEROIDS_SANDBOX"] = sandbox.REQUIRED
    yield made
    made.end_everything()
    tiers = made.rows("SELECT DISTINCT tier FROM agents_run WHERE started_at IS NOT NULL")
    assert tiers == [(Tier.ENCLOSED,)]


def set_up(installation: Installation, command: Command, remote: Path, url: str) -> None:
    """A project on that remote with one task, and a coder and a reviewer of that command."""
    wanted = {
        "remote": str(remote), "provider": command.provider, "model": command.model,
        "settings": command.settings_for(url),
    }  # fmt: skip
    done = installation.manage("shell", "--no-imports", "-c", SET_UP.format(wanted=json.dumps(wanted)))
    assert done.returncode == 0, done.stderr


def walk(installation: Installation) -> str:
    """Run the whole program until nothing is left to do. What it printed."""
    done = installation.manage("run_orchestrator", "--until-idle")
    assert done.returncode == 0, done.stdout + done.stderr + installation.log()
    return done.stdout


RUNS = """
    SELECT role, outcome, error_class, reason, tokens_in, tokens_cached, tokens_out, cost, cost_from,
           session_id, exit_code
    FROM agents_run WHERE role <> 'verifier' ORDER BY id
"""
COLUMNS = (
    "role", "outcome", "error_class", "reason", "tokens_in", "tokens_cached", "tokens_out", "cost",
    "cost_from", "session_id", "exit_code",
)  # fmt: skip


def runs(installation: Installation) -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in installation.rows(RUNS)]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_task_goes_from_the_coder_to_the_remote(
    name: str, installation: Installation, remote: Path, model_stub: Callable[..., ModelStub], alone: bool
) -> None:
    command, stub = COMMANDS[name], model_stub(work)
    set_up(installation, command, remote, stub.url)
    before = apart.tries_to_leave() if alone else 0

    printed = walk(installation)

    # What the task became.
    assert installation.statuses() == {"Say hello": "completed"}, printed + installation.log()
    assert git(remote, "show", "main:hello.txt") == "hello from small-1"
    assert installation.value("SELECT landed_sha FROM tasks_task") == git(remote, "rev-parse", "main")
    assert installation.value("SELECT count(*) FROM tasks_verification WHERE green") >= 1
    # What the runs say of themselves.
    done = runs(installation)
    assert [(run["role"], run["outcome"], run["error_class"]) for run in done] == [
        ("coder", "handed_in", ""),
        ("reviewer", "handed_in", ""),
    ]
    for run in done:
        assert (run["tokens_in"], run["tokens_cached"], run["tokens_out"]) == (
            3 * (READ - CACHED),
            3 * CACHED,
            3 * WRITTEN,
        ), run
        assert run["session_id"], run
        assert run["exit_code"] == 0, run
        if command.cost:
            assert (Decimal(str(run["cost"])), run["cost_from"]) == (Decimal(command.cost), "agent"), run
    assert len({run["session_id"] for run in done}) == 2
    output = "".join(text for (text,) in installation.rows("SELECT text FROM agents_output ORDER BY id"))
    assert LAST_WORDS in output
    # What it asked, and whom else.
    assert {(one.wire, one.status) for one in stub.seen} == {(command.wire.name, 200)}
    assert len(stub.turns()) == 6
    if name not in LOOKS_AROUND:
        folders = (installation.home / "runs").iterdir()
        assert [host for folder in folders for host in sandbox.unreached(folder)] == []
        assert not alone or apart.tries_to_leave() == before
    # What it left behind.
    wait_for(lambda: not installation.processes(), "the end of every process")
    assert DUMMY not in output + "".join(
        path.read_text(errors="replace") for path in (installation.home / "log").glob("*")
    )


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_rejection_is_answered_and_the_second_review_approves(
    name: str, installation: Installation, remote: Path, model_stub: Callable[..., ModelStub]
) -> None:
    set_up(installation, COMMANDS[name], remote, model_stub(reject_once).url)
    printed = walk(installation)
    assert installation.statuses() == {"Say hello": "completed"}, printed + installation.log()
    assert git(remote, "show", "main:hello.txt") == "HELLO"
    assert [(run["role"], run["outcome"]) for run in runs(installation)] == [
        ("coder", "handed_in"),
        ("reviewer", "handed_in"),
    ] * 2

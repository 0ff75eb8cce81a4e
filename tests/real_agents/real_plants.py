"""What a repository may not do: run something at the start of a command, with the token of that run.

A coder's commit is checked out for the reviewer. If the reviewer's command ran hooks or servers that it
brings along, the commit could approve itself. Not in the normal suite: `make test-agents`.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.models import Run
from tests.end_to_end.loop import Loop, bare_remote, small_project, task_in
from tests.real_agents.commands import COMMANDS
from tests.real_agents.real_faults import an_agent, assert_nothing_lives, first_end, output_of
from tests.real_agents.scripts import work
from tests.real_agents.stub import ModelStub

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def hooks(*paths: Path, **more: Any) -> dict[str, Any]:
    """Hooks as Claude Code and Gemini CLI write them."""
    names = ("SessionStart", "UserPromptSubmit", "BeforeAgent")
    commands = [{"type": "command", "name": path.name, "command": f"touch {path}"} for path in paths]
    return {"hooks": {name: [{"hooks": commands}] for name in names}, **more}


def plants(mark: Path) -> dict[str, dict[str, str]]:
    """Files of a repository by provider; each would make a file below `mark` at the start."""

    def server(name: str) -> dict[str, Any]:
        return {"command": "touch", "args": [str(mark / name)]}

    local = {"type": "local", "command": ["touch", str(mark / "opencode-server")], "enabled": True}
    tool = f"import fs from 'fs'\nfs.writeFileSync({json.dumps(str(mark / 'opencode-tool'))}, 'x')\n"
    return {
        "claude": {
            ".mcp.json": json.dumps({"mcpServers": {"planted": server("claude-server")}}),
            ".claude/settings.json": json.dumps(hooks(mark / "claude-hook")),
            ".claude/settings.local.json": json.dumps(hooks(mark / "claude-local-hook")),
        },
        "codex": {
            ".codex/config.toml": "[mcp_servers.planted]\ncommand = 'touch'\n"
            f"args = [{json.dumps(str(mark / 'codex-server'))}]\n",
            ".codex/hooks.json": json.dumps(hooks(mark / "codex-hook")),
        },
        "gemini": {
            ".gemini/settings.json": json.dumps(
                hooks(
                    mark / "gemini-hook",
                    mcpServers={"planted": server("gemini-server")},
                    tools={"discoveryCommand": f"touch {mark / 'gemini-discovery'}"},
                )
            ),
        },
        "opencode": {
            "opencode.json": json.dumps({"mcp": {"planted": local}}),
            ".opencode/tool/planted.js": tool + "export default {description: '', args: {}}\n",
        },
    }


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_nothing_that_a_repository_brings_along_runs_at_the_start(
    name: str, loop: Loop, tmp_path: Path, model_stub: Callable[..., ModelStub]
) -> None:
    mark = tmp_path / "mark"
    mark.mkdir()
    remote = bare_remote(tmp_path, {"README.md": "Small.\n", **plants(mark)[name]})
    stub = model_stub(work)
    an_agent(name, stub.url)
    run = first_end(task_in(small_project(remote)))
    assert run.outcome == Run.Outcome.HANDED_IN, output_of(run)
    assert sorted(path.name for path in mark.iterdir()) == []
    assert_nothing_lives(run)

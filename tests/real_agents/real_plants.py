"""What a repository may not do: run something at the start of a command, with the token of that run.

A coder's commit is checked out for the reviewer. If the reviewer's command ran hooks or servers that it
brings along, the commit could approve itself. Not in the normal suite: `make test-agents`.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.hosts import outcomes, paths
from agents.models import Run
from agents.providers.base import Launch
from agents.providers.claude import Claude
from agents.providers.codex import Codex
from agents.providers.gemini import Gemini
from agents.providers.opencode import Opencode
from agents.providers.registry import PROVIDERS
from tests.end_to_end.loop import Loop, bare_remote, small_project, task_in
from tests.real_agents.commands import COMMANDS
from tests.real_agents.real_faults import an_agent, assert_nothing_lives, first_end, output_of
from tests.real_agents.scripts import work
from tests.real_agents.stub import ModelStub

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

MARK = "planted-"
Start = Callable[[str], tuple[Run, set[str]]]


def touching(name: str) -> str:
    """A shell command that leaves a file of this name in the home of the run, where the sandbox lets it."""
    return f"touch $HOME/{MARK}{name}"


def hooks(*names: str, **more: Any) -> dict[str, Any]:
    """Hooks as Claude Code, Codex and Gemini CLI write them."""
    moments = ("SessionStart", "UserPromptSubmit", "BeforeAgent")
    commands = [{"type": "command", "name": name, "command": touching(name)} for name in names]
    return {"hooks": {moment: [{"hooks": commands}] for moment in moments}, **more}


def server(name: str) -> dict[str, Any]:
    return {"command": "sh", "args": ["-c", touching(name)]}


def plants() -> dict[str, dict[str, str]]:
    """Files of a repository by provider; each would leave a file at the start."""
    local = {"type": "local", "command": ["sh", "-c", touching("opencode-server")], "enabled": True}
    tool = f"import fs from 'fs'\nfs.writeFileSync(process.env.HOME + '/{MARK}opencode-tool', 'x')\n"
    return {
        "claude": {
            ".mcp.json": json.dumps({"mcpServers": {"planted": server("claude-server")}}),
            ".claude/settings.json": json.dumps(hooks("claude-hook", enableAllProjectMcpServers=True)),
            ".claude/settings.local.json": json.dumps(hooks("claude-local-hook")),
        },
        "codex": {
            ".codex/config.toml": "[mcp_servers.planted]\ncommand = 'sh'\n"
            f"args = ['-c', '{touching('codex-server')}']\n",
            ".codex/hooks.json": json.dumps(hooks("codex-hook")),
        },
        "gemini": {
            ".gemini/settings.json": json.dumps(
                hooks(
                    "gemini-hook",
                    mcpServers={"planted": server("gemini-server")},
                    tools={"discoveryCommand": f"sh -c '{touching('gemini-discovery')}; echo []'"},
                )
            ),
        },
        "opencode": {
            "opencode.json": json.dumps({"mcp": {"planted": local}}),
            ".opencode/tool/planted.js": tool + "export default {description: '', args: {}}\n",
        },
    }


class TrustingClaude(Claude):
    def arguments(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        ours = {"--strict-mcp-config", "--setting-sources", "user"}
        return [word for word in super().arguments(settings, launch) if word not in ours]


class TrustingCodex(Codex):
    def arguments(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        first, *rest = super().arguments(settings, launch)
        return [first, "--dangerously-bypass-hook-trust", *rest]

    def files(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        made = super().files(settings, launch)
        trust = f'[projects."{launch.clone}"]\ntrust_level = "trusted"\n'
        return {**made, ".codex/config.toml": made[".codex/config.toml"] + trust}


class TrustingGemini(Gemini):
    def files(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        made = super().files(settings, launch)
        config = json.loads(made[".gemini/settings.json"])
        config["security"]["folderTrust"]["enabled"] = False
        return {**made, ".gemini/settings.json": json.dumps(config)}


class TrustingOpencode(Opencode):
    def environment(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        made = super().environment(settings, launch)
        del made["OPENCODE_DISABLE_PROJECT_CONFIG"]
        return made


TRUSTING = {
    "claude": TrustingClaude(), "codex": TrustingCodex(), "gemini": TrustingGemini(),
    "opencode": TrustingOpencode(),
}  # fmt: skip


@pytest.fixture
def start(
    loop: Loop, tmp_path: Path, model_stub: Callable[..., ModelStub], monkeypatch: pytest.MonkeyPatch
) -> Start:
    """Starts a command in a repository with its plants: the run at its end, and which of them ran."""
    monkeypatch.setattr(outcomes, "remove_folder", lambda run: None)  # the marks lie in it

    def started(name: str) -> tuple[Run, set[str]]:
        remote = bare_remote(tmp_path, {"README.md": "Small.\n", **plants()[name]})
        an_agent(name, model_stub(work).url)
        run = first_end(task_in(small_project(remote)))
        marks = (paths.run_folder(run.pk) / "home").glob(f"{MARK}*")
        return run, {path.name.removeprefix(MARK) for path in marks}

    return started


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_nothing_that_a_repository_brings_along_runs_at_the_start(name: str, start: Start) -> None:
    run, ran = start(name)
    assert run.outcome == Run.Outcome.HANDED_IN, output_of(run)
    assert ran == set()
    assert_nothing_lives(run)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_all_of_it_would_run_if_the_command_were_told_to_trust_the_repository(
    name: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above would find nothing because nothing was planted well."""
    monkeypatch.setitem(PROVIDERS, name, TRUSTING[name])
    run, ran = start(name)
    planted = set(re.findall(f"{MARK}([a-z-]+)", str(plants()[name])))
    assert ran == planted, output_of(run)

"""The four real commands: how an agent of each is set up against the stub, and where they are installed."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real_agents.wires import Wire, wire_named

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / "var" / "agents" / "node_modules" / ".bin"
DUMMY = "only-a-dummy-key"


@dataclass(frozen=True)
class Command:
    """One vendor's command, with the setting that makes it ask the stub."""

    provider: str
    model: str
    wire: Wire
    key_variable: str
    base: str = ""  # what follows the stub's address
    settings: dict[str, Any] = field(default_factory=dict)
    cost: str = ""  # of one run of three answers, where the command itself says one

    def settings_for(self, url: str) -> dict[str, Any]:
        return {"base_url": url + self.base, "key": self.key_variable, **self.settings}


CENTS = {"input": 1, "output": 2, "cache_read": 0.1}
COMMANDS = {
    one.provider: one
    for one in (
        Command(
            "claude", "claude-sonnet-4-5", wire_named("anthropic"), "ANTHROPIC_API_KEY", cost="0.013320"
        ),
        Command("codex", "gpt-5.5", wire_named("responses"), "OPENAI_API_KEY", "/v1"),
        Command("gemini", "gemini-2.5-flash", wire_named("gemini"), "GEMINI_API_KEY"),
        Command(
            "opencode", "stub/stub-model", wire_named("chat"), "STUB_API_KEY", "/v1",
            settings={"cost": CENTS, "limit": {"context": 100_000, "output": 8_000}}, cost="0.003990",
        ),
    )
}  # fmt: skip


def path_with_commands() -> str:
    return f"{INSTALLED}{os.pathsep}{os.environ['PATH']}"

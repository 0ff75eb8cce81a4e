"""The one process of an agent: its command, its variables and the files in its home, from settings alone."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.hosts import processes
from agents.models import Agent
from agents.providers.base import Launch, ProviderError
from agents.providers.registry import provider_for
from agents.verification import commands

CLI = Path(__file__).resolve().parent.parent / "cli.py"


def agent_step(
    agent: Agent, model: str, folder: Path, environment: dict[str, str], **more: str
) -> dict[str, Any]:
    """Return the step that starts the agent in `folder`/clone, with `folder`/prompt.md as standard input.

    `environment` holds the run's own variables; of the operator's variables only those pass that the agent's
    settings name. Raises ProviderError.
    """
    binaries = folder / "bin"
    binaries.mkdir(mode=0o700)
    launcher = binaries / "steroids"
    call = shlex.join(processes.words_of(commands.base_python(), CLI))
    launcher.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
    launcher.chmod(0o700)
    tools = binaries / "steroids-mcp"  # -P: nothing of the clone is imported
    tools.write_text(
        f'#!/bin/sh\nPYTHONPATH="{settings.BASE_DIR}" exec "{sys.executable}" -P -m agents.mcp_server "$@"\n'
    )
    tools.chmod(0o700)
    if model.startswith("/") and model != agent.model:  # the sandbox shows files that an agent's words name
        raise ProviderError(f"{model} is a path. Only the agent itself names one, not a project's ladder.")
    path = f"{binaries}:{environment['PATH']}"
    provider = provider_for(agent)
    prompt, clone = folder / "prompt.md", folder / "clone"
    launch = Launch(
        prompt=prompt, clone=clone, model=model, path=path, home=Path(environment["HOME"]),
        given=os.environ, is_root=os.geteuid() == 0,
        judges=agent.role != Agent.Role.CODER,
    )  # fmt: skip
    argv = provider.argv(agent.settings, launch)
    signs_in = {name: os.environ[name] for name in provider.passes(agent.settings) if name in os.environ}
    environment = (
        signs_in
        | environment
        | provider.environment(agent.settings, launch)
        | {"PATH": path, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
        | more
    )
    write_files(launch.home, provider.files(agent.settings, launch))
    return commands.step(
        "agent", argv, clone, environment, timeout=settings.DURATIONS["wall"], stdin=str(prompt)
    )


def write_files(home: Path, files: dict[str, str]) -> None:
    """Write the files that the agent's command needs into the run's home; only their owner may read them."""
    for name, text in files.items():
        path = home / name
        for folder in reversed(path.relative_to(home).parents[:-1]):
            (home / folder).mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    processes.write_whole(path, text.encode())

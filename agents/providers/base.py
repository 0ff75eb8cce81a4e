"""What every provider can do. No Django here: settings in, argument list out."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agents.providers.reports import Reader


class ProviderError(Exception):
    """The agent cannot be started as it is configured; the text says what to change."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a provider needs to know about one run."""

    prompt: Path
    clone: Path
    model: str
    path: str  # the PATH the agent will see


class Provider(Protocol):
    """Turns an agent's settings into a process."""

    def check(self, settings: dict[str, Any]) -> None:
        """Raise ProviderError where the settings are malformed."""

    def argv(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        """The argument list; the prompt is also on standard input. Raises ProviderError."""

    def passes(self, settings: dict[str, Any]) -> list[str]:
        """Names of the host's variables that the agent may see: its own sign-in, and nothing of ours."""

    def reader(self) -> Reader:
        """Reads the output of one run of this command."""


def find_program(name: str, path: str) -> str:
    """The absolute path of a program. Raises ProviderError naming it where it is not there."""
    found = shutil.which(name, path=path)
    if not found:
        raise ProviderError(
            f"The program {name!r} is not on this host. Install it, or correct the agent's argv."
        )
    return os.path.abspath(found)

"""What every provider can do. No Django here: settings in, a process' words, variables and files out."""

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agents.providers.reports import ErrorClass, Reader, Report, SilentReader
from tasks.configuration.schema import HOST, HOST_SAYS
from tasks.text.regex import regex

NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*\Z")
OURS = regex(r"(SECRET_KEY|DATABASE_URL|REDIS_URL|STEROIDS_|DJANGO_)")


class ProviderError(Exception):
    """The agent cannot be started as it is configured; the text says what to change.

    `setting` is the key of the settings at fault, or "model"; empty where it is none of them alone.
    """

    def __init__(self, says: str, *, setting: str = "") -> None:
        super().__init__(says)
        self.setting = setting


class NotSignedIn(ProviderError):
    """What the command signs in with is not there: no failure of the task (LAD-4)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a provider needs to know about one run."""

    prompt: Path
    clone: Path
    model: str
    path: str  # the PATH the agent will see
    home: Path = Path("/nonexistent")  # the run's own, empty
    given: Mapping[str, str] = field(default_factory=dict)  # the operator's variables; few of them may pass
    is_root: bool = False


class Provider(ABC):
    """Turns an agent's settings into a process, and the process' output into a report."""

    settings: frozenset[str] = frozenset()  # the keys that have an effect

    @abstractmethod
    def check(self, settings: dict[str, Any], model: str = "") -> None:
        """Raise ProviderError where the settings are malformed."""

    @abstractmethod
    def argv(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        """The argument list, without secrets; the prompt is on standard input. Raises ProviderError."""

    def program(self, settings: dict[str, Any]) -> str:
        """The program that a host needs for it, by name or path; empty where that is known only in a run."""
        return ""

    def passes(self, settings: dict[str, Any]) -> list[str]:
        """Names of the host's variables that the agent may see: its own sign-in, and nothing of ours."""
        return checked_names(settings)

    def hosts(self, settings: dict[str, Any], model: str) -> list[str]:
        """The hosts that the command talks to; from inside a sandbox it reaches no others."""
        return checked_hosts(settings)

    def environment(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        """Further variables of the process. Raises NotSignedIn."""
        return {}

    def files(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        """What stands in the run's home before it starts, by relative path. Raises ProviderError."""
        return {}

    def reader(self) -> Reader:
        """Reads the output of one run of this command."""
        return SilentReader()

    def classify(self, report: Report, exit_code: int | None, tail: str = "") -> ErrorClass | None:
        """What went wrong, from the report, the exit code and the end of the log; None where nothing did."""
        return report.error

    def asks_again(self, settings: dict[str, Any], exit_code: int | None, tail: str) -> str:
        """Why the command wants to be tried again later, in its own words; empty where it does not."""
        return ""


def checked_names(settings: dict[str, Any]) -> list[str]:
    """The setting `pass`. Raises ProviderError for what is no name, or the name of something of ours."""
    names = settings.get("pass", [])
    if not isinstance(names, list):
        raise ProviderError('pass is a list of names of variables: ["MY_AGENT_API_KEY"].', setting="pass")
    for name in names:
        if not isinstance(name, str) or not NAME.match(name):
            raise ProviderError(f"pass holds {name!r}, which is no name of a variable.", setting="pass")
        if OURS.match(name):
            raise ProviderError(f"{name} belongs to this program; no agent may see it.", setting="pass")
    return names


def checked_hosts(settings: dict[str, Any]) -> list[str]:
    """The setting `hosts`. Raises ProviderError for what is no host."""
    names = settings.get("hosts", [])
    if not isinstance(names, list):
        raise ProviderError('hosts is a list of hosts: ["api.example.org"].', setting="hosts")
    for name in names:
        if not isinstance(name, str) or not HOST.fullmatch(name):
            raise ProviderError(f"hosts holds {name!r}; a host is {HOST_SAYS}.", setting="hosts")
    return names


def host_of(url: str) -> str:
    """The host of an address with its port, as the setting `hosts` names it."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def find_program(name: str, path: str) -> str:
    """The absolute path of a program. Raises ProviderError naming it where it is not there."""
    found = shutil.which(name, path=path)
    if not found:
        raise ProviderError(
            f"The program {name!r} is not on this host. Install it, or correct the agent's settings."
        )
    return os.path.abspath(found)

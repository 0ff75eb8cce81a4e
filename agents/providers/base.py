"""What every provider can do; it imports no Django.

A provider is given an agent's settings and returns the command line, variables and files of its process.
"""

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
    """The agent cannot be started as it is configured; the message says what to change.

    `setting` is the key of the setting at fault, or "model"; empty if no single setting is at fault.
    """

    def __init__(self, says: str, *, setting: str = "") -> None:
        super().__init__(says)
        self.setting = setting


class NotReady(ProviderError):
    """The command cannot be started on this host, which is no failure of the task (LAD-4)."""

    error: ErrorClass


class NotSignedIn(NotReady):
    """The credentials of the command are missing."""

    error = ErrorClass.SIGN_IN


class NotInstalled(NotReady):
    """The program is not on this host."""

    error = ErrorClass.START


@dataclass(frozen=True, slots=True)
class Launch:
    """What a provider needs to know about one run."""

    prompt: Path
    clone: Path
    model: str
    path: str  # the PATH the agent will see
    home: Path = Path("/nonexistent")  # the run's own home, empty
    given: Mapping[str, str] = field(default_factory=dict)  # the operator's variables; few are passed on
    is_root: bool = False
    judges: bool = False  # it judges the commit in the clone, whose files must not instruct it


class Provider(ABC):
    """Turns an agent's settings into a process, and the output of that process into a report."""

    title: str  # what people choose
    about: str  # one sentence about it, for whoever chooses
    vendor = ""  # who makes its models, if it is always the same; its agents then pause together
    settings: frozenset[str] = frozenset()  # the keys of the settings that have an effect

    @abstractmethod
    def check(self, settings: dict[str, Any], model: str = "") -> None:
        """Raise ProviderError if the settings are malformed."""

    @abstractmethod
    def argv(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        """Return the arguments, without secrets; the prompt is on standard input. Raises ProviderError."""

    def program(self, settings: dict[str, Any]) -> str:
        """Return the name or path of the program a host needs; empty if it is only known in a run."""
        return ""

    def passes(self, settings: dict[str, Any]) -> list[str]:
        """Return the names of the host's variables that the agent may see.

        These are those of its own sign-in, and none that belong to this program.
        """
        return checked_names(settings)

    def hosts(self, settings: dict[str, Any], model: str) -> list[str]:
        """Return the hosts that the command talks to; it reaches no others from inside a sandbox."""
        return checked_hosts(settings)

    def environment(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        """Return further variables of the process. Raises NotSignedIn."""
        return {}

    def files(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        """Return the files, by relative path, that the run's home needs before it starts.

        Raises ProviderError.
        """
        return {}

    def reader(self) -> Reader:
        """Return a reader for the output of one run of this command."""
        return SilentReader()

    def classify(self, report: Report, exit_code: int | None, tail: str = "") -> ErrorClass | None:
        """Return the class of what went wrong, or None if nothing did.

        It judges by the report, the exit code and the end of the log.
        """
        return report.error

    def asks_again(self, settings: dict[str, Any], exit_code: int | None, tail: str) -> str:
        """Return why the command wants to be tried again later, in its own words; empty if it does not."""
        return ""


def checked_names(settings: dict[str, Any]) -> list[str]:
    """Return the setting `pass`.

    Raises ProviderError for anything that is not the name of a variable, or that names one of the program's
    own.
    """
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
    """Return the setting `hosts`. Raises ProviderError for anything that is not a host."""
    names = settings.get("hosts", [])
    if not isinstance(names, list):
        raise ProviderError('hosts is a list of hosts: ["api.example.org"].', setting="hosts")
    for name in names:
        if not isinstance(name, str) or not HOST.fullmatch(name):
            raise ProviderError(f"hosts holds {name!r}; a host is {HOST_SAYS}.", setting="hosts")
    return names


def host_of(url: str) -> str:
    """Return the host and port of a URL, in the form that the setting `hosts` uses."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def find_program(name: str, path: str) -> str:
    """Return the absolute path of a program. Raises NotInstalled if it is not on the PATH."""
    found = shutil.which(name, path=path)
    if not found:
        raise NotInstalled(
            f"The program {name!r} is not on this host. Install it, or correct the agent's settings."
        )
    return os.path.abspath(found)

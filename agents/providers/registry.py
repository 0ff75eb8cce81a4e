"""The table of all providers; whatever offers, lists or reads one takes it from here."""

from typing import Protocol

from agents.providers.base import Provider, ProviderError
from agents.providers.claude import Claude
from agents.providers.clis import Cli
from agents.providers.codex import Codex
from agents.providers.command import CommandProvider
from agents.providers.gemini import Gemini
from agents.providers.opencode import Opencode
from agents.providers.pull import PullProvider
from agents.providers.replay import ReplayProvider

# These come with a command of their own.
CLIS: dict[str, Cli] = {cli.command: cli for cli in (Claude(), Codex(), Gemini(), Opencode())}
PROVIDERS: dict[str, Provider] = {
    **CLIS,
    "command": CommandProvider(),
    "pull": PullProvider(),
    "replay": ReplayProvider(),
}


class Provided(Protocol):
    """A row of an agent."""

    provider: str


def provider_for(agent: Provided) -> Provider:
    """Return the provider of the agent. Raises ProviderError if this version does not know it."""
    try:
        return PROVIDERS[agent.provider]
    except KeyError:
        raise ProviderError(f"{agent.provider!r} is no provider of this version.") from None

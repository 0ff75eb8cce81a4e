"""The table of all providers."""

from typing import TYPE_CHECKING

from agents.providers.base import Provider, ProviderError
from agents.providers.claude import Claude
from agents.providers.clis import Cli
from agents.providers.codex import Codex
from agents.providers.command import CommandProvider
from agents.providers.gemini import Gemini
from agents.providers.opencode import Opencode
from agents.providers.pull import PullProvider
from agents.providers.replay import ReplayProvider

if TYPE_CHECKING:
    from agents.models import Agent

# These come with a command of their own.
CLIS: dict[str, Cli] = {cli.command: cli for cli in (Claude(), Codex(), Gemini(), Opencode())}
PROVIDERS: dict[str, Provider] = {
    **CLIS,
    "command": CommandProvider(),
    "replay": ReplayProvider(),
    "pull": PullProvider(),
}


def provider_for(agent: "Agent") -> Provider:
    """Return the provider of the agent. Raises ProviderError if this version does not know it."""
    try:
        return PROVIDERS[agent.provider]
    except KeyError:
        raise ProviderError(f"{agent.provider!r} is no provider of this version.") from None

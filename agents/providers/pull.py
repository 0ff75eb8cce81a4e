"""An agent on a machine without a host, which claims its own work over REST and is never started here."""

from typing import Any

from agents.providers.base import Launch, Provider, ProviderError


class PullProvider(Provider):
    """It needs no settings, since it is started elsewhere."""

    title = "Claims its own work"
    about = "Runs elsewhere and asks here for work, with a token."

    def check(self, settings: dict[str, Any], model: str = "") -> None:
        for name in ("argv", "cassettes", "pass"):
            if isinstance(settings, dict) and name in settings:
                raise ProviderError(
                    f"An agent that claims its own work is not started here; leave {name} out.",
                    setting=name,
                )

    def argv(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        raise ProviderError("This agent claims its own work; no host starts it.")

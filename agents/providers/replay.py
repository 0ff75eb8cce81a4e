"""A recorded cassette, played by a process that is started like that of any agent."""

import sys
from pathlib import Path
from typing import Any

from agents.providers.base import Launch, Provider, ProviderError

PLAYER = Path(__file__).with_name("replay_player.py")


class ReplayProvider(Provider):
    """`cassettes` is the path of the folder of cassettes."""

    title = "Recorded cassette"
    about = "Plays what was recorded; for demonstrations and tests."
    settings = frozenset({"cassettes"})

    def check(self, settings: dict[str, Any], model: str = "") -> None:
        cassettes = settings.get("cassettes") if isinstance(settings, dict) else None
        if not isinstance(cassettes, str) or not cassettes:
            raise ProviderError(
                'The provider "replay" needs cassettes: the path of a folder.', setting="cassettes"
            )

    def passes(self, settings: dict[str, Any]) -> list[str]:
        return []

    def argv(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        self.check(settings)
        folder = Path(settings["cassettes"])
        if not folder.is_dir():
            raise ProviderError(f"There is no folder of cassettes at {folder}.")
        return [
            sys.executable, "-I", str(PLAYER), "--cassettes", str(folder), "--prompt", str(launch.prompt),
        ]  # fmt: skip

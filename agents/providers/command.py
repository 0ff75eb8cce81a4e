"""Any command: the prompt comes as a file and on standard input, never as an argument."""

from string import Formatter
from typing import Any

from agents.providers.base import Launch, Provider, ProviderError, checked_hosts, checked_names, find_program

TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h: try again later
LINES_ASKED = 50
PLACEHOLDERS = ("prompt", "clone", "model")


class CommandProvider(Provider):
    """Runs `argv`, with the placeholders {prompt} (a path), {clone} and {model}; `pass` names variables."""

    title = "Any command"
    about = "Any program that reads the prompt and works in the clone."
    settings = frozenset({"argv", "pass", "account", "hosts", "again"})

    def check(self, settings: dict[str, Any], model: str = "") -> None:
        argv = settings.get("argv") if isinstance(settings, dict) else None
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) and word for word in argv):
            raise ProviderError(
                'The provider "command" needs argv: a list of words, the program first.', setting="argv"
            )
        for word in argv:
            if not _fits(word):
                raise ProviderError(
                    f"{word!r} has an unknown placeholder; known are {{prompt}}, {{clone}}, {{model}}.",
                    setting="argv",
                )
        checked_names(settings)
        checked_hosts(settings)
        words = settings.get("again", [])
        if not isinstance(words, list) or not all(isinstance(each, str) and each.strip() for each in words):
            raise ProviderError('again is a list of texts: ["ECONNREFUSED"].', setting="again")

    def program(self, settings: dict[str, Any]) -> str:
        first = str(settings["argv"][0])
        return "" if "{" in first else first

    def asks_again(self, settings: dict[str, Any], exit_code: int | None, tail: str) -> str:
        """Return why to try again: a line among the last that contains a text of `again`, or exit code 75.

        After exit code 75 without such a line, the last line is the reason.
        """
        words = [each.lower() for each in settings.get("again", [])]
        last = [line.strip() for line in tail.splitlines() if line.strip()][-LINES_ASKED:]
        said = next((line for line in reversed(last) if any(word in line.lower() for word in words)), "")
        if said or exit_code != TRY_AGAIN:
            return said if exit_code else ""
        return last[-1] if last else f"It ended with {TRY_AGAIN}."

    def argv(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        self.check(settings)
        values = {"prompt": str(launch.prompt), "clone": str(launch.clone), "model": launch.model}
        words = [word.format(**values) for word in settings["argv"]]
        return [find_program(words[0], launch.path), *words[1:]]


def _fits(word: str) -> bool:
    """Whether every placeholder in the word is a known name without a format or a conversion."""
    try:
        parts = list(Formatter().parse(word))
    except ValueError:
        return False
    return all(
        name is None or (name in PLACEHOLDERS and not form and not conversion)
        for _, name, form, conversion in parts
    )

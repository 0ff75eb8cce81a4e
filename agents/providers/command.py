"""Any command: the prompt comes as a file and on standard input, never as an argument."""

import re
from string import Formatter
from typing import Any

from agents.providers.base import Launch, ProviderError, find_program
from agents.providers.reports import Reader, SilentReader

PLACEHOLDERS = ("prompt", "clone", "model")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
OURS = re.compile(r"(SECRET_KEY|DATABASE_URL|REDIS_URL|STEROIDS_|DJANGO_)")


class CommandProvider:
    """`argv` with the placeholders {prompt} (a path), {clone} and {model}; `pass` names variables."""

    def check(self, settings: dict[str, Any]) -> None:
        argv = settings.get("argv") if isinstance(settings, dict) else None
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) and word for word in argv):
            raise ProviderError('The provider "command" needs argv: a list of words, the program first.')
        for word in argv:
            if not _fits(word):
                raise ProviderError(
                    f"{word!r} has an unknown placeholder; known are {{prompt}}, {{clone}}, {{model}}."
                )
        for name in self.passes(settings):
            if not isinstance(name, str) or not NAME.match(name):
                raise ProviderError(f"pass holds {name!r}, which is no name of a variable.")
            if OURS.match(name):
                raise ProviderError(f"{name} belongs to this program; no agent may see it.")

    def passes(self, settings: dict[str, Any]) -> list[str]:
        names = settings.get("pass", [])
        if not isinstance(names, list):
            raise ProviderError('pass is a list of names of variables: ["MY_AGENT_API_KEY"].')
        return names

    def reader(self) -> Reader:
        return SilentReader()

    def argv(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        self.check(settings)
        values = {"prompt": str(launch.prompt), "clone": str(launch.clone), "model": launch.model}
        words = [word.format(**values) for word in settings["argv"]]
        return [find_program(words[0], launch.path), *words[1:]]


def _fits(word: str) -> bool:
    """Whether every placeholder in the word is the name of a known one and nothing more."""
    try:
        parts = list(Formatter().parse(word))
    except ValueError:
        return False
    return all(
        name is None or (name in PLACEHOLDERS and not form and not conversion)
        for _, name, form, conversion in parts
    )

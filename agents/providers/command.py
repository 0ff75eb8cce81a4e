"""Any command: the prompt comes as a file and on standard input, never as an argument."""

from typing import Any

from agents.providers.base import Launch, ProviderError, find_program

PLACEHOLDERS = ("prompt", "clone", "model")


class CommandProvider:
    """`argv` with the placeholders {prompt} (a path), {clone} and {model}."""

    def check(self, settings: dict[str, Any]) -> None:
        argv = settings.get("argv")
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) and word for word in argv):
            raise ProviderError('The provider "command" needs argv: a list of words, the program first.')
        for word in argv:
            try:
                word.format(**dict.fromkeys(PLACEHOLDERS, ""))
            except (KeyError, IndexError, ValueError) as error:
                raise ProviderError(
                    f"{word!r} has an unknown placeholder; known are {{prompt}}, {{clone}}, {{model}}."
                ) from error

    def argv(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        self.check(settings)
        values = {"prompt": str(launch.prompt), "clone": str(launch.clone), "model": launch.model}
        words = [word.format(**values) for word in settings["argv"]]
        return [find_program(words[0], launch.path), *words[1:]]

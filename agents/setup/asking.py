"""Questions on the terminal, answered by the person, by an option, or by their default."""

import getpass
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from django.core.management.base import CommandError

from agents.web.log import plain

T = TypeVar("T")


class Asker:
    """Asks whatever no option answered; `given` holds the options by name.

    With `never` it asks nothing and takes the defaults.
    """

    def __init__(self, given: Mapping[str, str], write: Callable[[str], object], *, never: bool) -> None:
        self._given = {name: answer for name, answer in given.items() if answer}
        self._write, self._never = write, never

    def say(self, text: str) -> None:
        """Print a line without anything that a terminal would obey."""
        self._write(plain(text))

    def given(self, name: str) -> str:
        """Return the value of the option; empty if it was not used."""
        return self._given.get(name, "")

    def ask(
        self, name: str, question: str, take: Callable[[str], T], *,
        default: str = "", may_be_empty: bool = False,
    ) -> T:  # fmt: skip
        """Return what `take` makes of the answer, asking again as long as `take` raises CommandError.

        Raises CommandError if an option or a default is refused, and with `never` if there is no default.
        """
        if answer := self._given.pop(name, ""):
            return take(answer)
        if self._never:
            if not default and not may_be_empty:
                raise CommandError(f"--yes needs --{name}. It would be asked: {question}")
            return take(default)
        while True:
            answer = self._read(name, f"  {question}{f' [{default}]' if default else ''} ").strip() or default
            if not answer and not may_be_empty:
                self.say("  There is no default for this; an answer is needed.")
                continue
            try:
                return take(answer)
            except CommandError as error:
                self.say(f"  {error}")

    def more(self, question: str) -> str:
        """Return one more line; empty if the person is done, or nobody is to be asked."""
        try:
            return "" if self._never else input(f"  {question} ").strip()
        except EOFError:
            return ""

    def password(self, check: Callable[[str], None]) -> str:
        """Return a new password, typed twice and unseen; empty if one is to be generated."""
        while not self._never:
            first = self._unseen("Password (empty: one is made): ")
            if not first:
                break
            try:
                check(first)
            except CommandError as error:
                self.say(f"  {error}")
                continue
            if self._unseen("The same again: ") == first:
                return first
            self.say("  The two differ.")
        return ""

    def _unseen(self, question: str) -> str:
        read = getpass.getpass if sys.stdin.isatty() else input
        return self._reading("username", lambda: read(f"  {question}"))

    def _read(self, name: str, question: str) -> str:
        return self._reading(name, lambda: input(plain(question)))

    def _reading(self, name: str, read: Callable[[], str]) -> str:
        try:
            return read()
        except EOFError:
            raise CommandError(
                f"The answers ended here; what was done stays. Run it again, with --{name} or --yes."
            ) from None
        except UnicodeDecodeError:
            raise CommandError("The answer is not UTF-8. Set LANG to C.UTF-8 and run it again.") from None

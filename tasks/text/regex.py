"""Core: regular expressions that are compiled when they are first used.

There are some four hundred. Compiling them all took a quarter of the time in which a command starts, and most
commands use a handful.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_waiting: list[_Later] = []


class _Later:
    """A stand-in for a compiled pattern; once it is used, its methods are those of the compiled one."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern, self._wanted = pattern, flags

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[Any]:
        """Compile the pattern, and replace the methods with those of the compiled one."""
        compiled = re.compile(self.pattern, self._wanted)
        for name in METHODS:
            setattr(self, name, getattr(compiled, name))
        return compiled


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression for the top of a module. An error in it is raised only when it is used."""
    later = _Later(pattern, flags)
    _waiting.append(later)
    return cast("re.Pattern[AnyStr]", later)


def compile_all() -> None:
    """Compile every pattern defined so far, so that a process that forks shares them with its children."""
    while _waiting:
        _waiting.pop().compile()

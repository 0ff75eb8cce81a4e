"""Core: regular expressions that are compiled when they are first used.

There are some four hundred; to compile them all took a quarter of the time in which a command starts, and
most commands use a handful.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_waiting: list[_Later] = []


class _Later:
    """What `re.compile` gives; from its first use on its methods are those of the compiled one."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern, self._wanted = pattern, flags

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[Any]:
        """Now."""
        compiled = re.compile(self.pattern, self._wanted)
        for name in METHODS:
            setattr(self, name, getattr(compiled, name))
        return compiled


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression for the top of a module. What is wrong with it is only said when it is used."""
    later = _Later(pattern, flags)
    _waiting.append(later)
    return cast("re.Pattern[AnyStr]", later)


def compile_all() -> None:
    """Compile every one that is known by now. For a process that forks: what it has its children share."""
    while _waiting:
        _waiting.pop().compile()

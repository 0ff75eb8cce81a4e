"""The types of checks and of what they find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be: one sentence says what it is, another what to do about it."""

    says: str
    do: str


Find = Callable[[], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold. `find` looks for violations; `repair`, if there is one, mends them."""

    id: str
    sentence: str
    find: Find
    repair: Callable[[], Iterator[str]] | None = None

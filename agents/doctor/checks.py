"""What a check says, and what a check is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be: what it is, in a sentence, and what to do about it, in another."""

    says: str
    do: str


Find = Callable[[], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold. `find` looks; `repair`, where there is one, mends and says what it did."""

    id: str
    sentence: str
    find: Find
    repair: Callable[[], Iterator[str]] | None = None

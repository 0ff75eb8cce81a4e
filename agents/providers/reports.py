"""Core: what an agent's own output says about its run: text, tokens, cost, and what went wrong.

A report comes from a command that nobody trusts. It may help to explain a run and make an account rest for a
bounded time; it never approves, hands in or lands anything, so a forged event gains nothing.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol

from tasks.text.storable import read_json

LINE_MAX = 4 * 1024 * 1024  # a longer line is skipped entirely
TEXT_MAX = 16 * 1024
MESSAGE_MAX = 500
NAME_MAX = 200
TOKENS_MAX = 10**12
COST_MAX = Decimal(100_000)


class ErrorClass(StrEnum):
    """What went wrong, as far as it decides what happens next."""

    START = "start"  # its program is not on the host
    SIGN_IN = "sign_in"  # no key, a wrong one, or an account without permission
    QUOTA = "quota"  # a budget is used up, until a certain time or until somebody pays
    RATE = "rate"  # too many requests, or an overloaded server
    NETWORK = "network"  # no server answered, or the answer broke off
    PROMPT = "prompt"  # the prompt is longer than the model accepts
    MODEL = "model"  # the model is unknown, or not available to this account
    PERMISSION = "permission"  # the command asked a human who isn't there
    CRASH = "crash"


# These do not count as failures of the task (LAD-4); the others do.
PROVIDER_TROUBLE = frozenset(
    {ErrorClass.START, ErrorClass.SIGN_IN, ErrorClass.QUOTA, ErrorClass.RATE, ErrorClass.NETWORK}
)


@dataclass(frozen=True, slots=True)
class Report:
    """What a run's output has said so far.

    Tokens and cost are of this run alone; `tokens_in` does not count those that came from a cache. `error` is
    the last error reported: while a run streams, that may be one it is retrying, and a later success clears
    it.
    """

    text: str = ""  # the last thing it said
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost: Decimal | None = None  # US dollars; None if the command reports none
    cost_known: bool = True  # False: the command guessed the price of a model that it does not know
    model: str = ""
    session_id: str = ""
    is_ended: bool = False  # the command itself said that it is done, well or badly
    error: ErrorClass | None = None
    message: str = ""  # the error in the command's words
    retry_at: datetime | None = None
    is_hopeless: bool = False  # it would go on like this for ever, so end it before it reaches its limits


class Reader(Protocol):
    """Reads one run's output as it grows, in bounded memory; broken lines and bytes do no harm."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, wherever they were cut; after the last ones, feed a newline."""

    @property
    def report(self) -> Report:
        """The report of all whole lines so far."""


class SilentReader:
    """A reader for commands whose output has no known format."""

    def feed(self, chunk: bytes) -> None:
        pass

    @property
    def report(self) -> Report:
        return Report()


class EventReader(ABC):
    """Reads a command that writes events, a JSON object in each line, and text between them."""

    knows_cost = True  # the command never guesses the price of a model

    def __init__(self) -> None:
        self.report = Report(cost_known=self.knows_cost)
        self._rest = bytearray()
        self._skipping = False  # inside a line that is too long

    @abstractmethod
    def _event(self, event: dict[str, Any]) -> None:
        """Take an event."""

    @abstractmethod
    def _text(self, line: str) -> None:
        """Take a line that is no event."""

    def _note(self, **changes: Any) -> None:
        """Change what the report says."""
        self.report = replace(self.report, **changes)

    def feed(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._grow(piece)
            if not self._skipping:
                self._line(bytes(self._rest))
            self._rest.clear()
            self._skipping = False
        self._grow(rest)

    def _grow(self, piece: bytes) -> None:
        if self._skipping:
            return
        if len(self._rest) + len(piece) > LINE_MAX:
            self._rest.clear()
            self._skipping = True
        else:
            self._rest += piece

    def _line(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "replace").strip()
        if not line:
            return
        try:
            event = read_json(line) if line.startswith("{") else None
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict):
            self._event(event)
        else:
            self._text(line)


# --- Reading values of any type ---------------------------------------------------------------------------


def mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a mapping, or else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """Return the value if it is a list, or else an empty one."""
    return value if isinstance(value, list) else []


def words(value: Any, limit: int = NAME_MAX) -> str:
    """Return the value, without NULs and cut to the limit, if it is a string; or else an empty string."""
    return value.replace("\0", "")[:limit] if isinstance(value, str) else ""


def count(value: Any) -> int:
    """Return a number of tokens as an integer from 0 to TOKENS_MAX; 0 if the value is no number."""
    return int(min(max(value, 0), TOKENS_MAX)) if _is_number(value) else 0


def dollars(value: Any) -> Decimal | None:
    """Return a cost of at most COST_MAX, to a millionth of a dollar, or None if the value is none."""
    if not _is_number(value) or value < 0:
        return None
    return Decimal(str(value)).quantize(Decimal("0.000001")) if value < COST_MAX else COST_MAX


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)

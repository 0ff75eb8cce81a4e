"""Core: what an agent's own output says about its run: text, tokens, cost, and what went wrong.

A report is the word of a command that nobody trusts. It may make a run cheaper to explain and an account rest
for a bounded while; it never approves, hands in or lands anything, so a forged event gains nothing.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol

LINE_MAX = 4 * 1024 * 1024  # a longer line is left out whole
TEXT_MAX = 16 * 1024
MESSAGE_MAX = 500
NAME_MAX = 200
TOKENS_MAX = 10**12
COST_MAX = Decimal(100_000)


class ErrorClass(StrEnum):
    """What went wrong, as far as it decides what happens next."""

    SIGN_IN = "sign_in"  # no key, a wrong one, or an account that may not
    QUOTA = "quota"  # a budget is used up, until a time or until somebody pays
    RATE = "rate"  # too many requests or a server that has no room
    NETWORK = "network"  # nobody answered, or the answer broke off
    PROMPT = "prompt"  # longer than the model takes
    MODEL = "model"  # unknown, or not for this account
    PERMISSION = "permission"  # the command asked a human who isn't there
    CRASH = "crash"


# These are no failure of the task (LAD-4); the others are.
PROVIDER_TROUBLE = frozenset({ErrorClass.SIGN_IN, ErrorClass.QUOTA, ErrorClass.RATE, ErrorClass.NETWORK})


@dataclass(frozen=True, slots=True)
class Report:
    """What a run's output said so far.

    Tokens and cost are of this run alone; tokens_in does not count those that came from a cache. `error` is
    what the last word was about: while a run streams, a retry that is under way; a later success clears it.
    """

    text: str = ""  # the last thing it said
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost: Decimal | None = None  # US dollars; None: it says none
    cost_known: bool = True  # False: the command guessed the price of a model that it does not know
    model: str = ""
    session_id: str = ""
    is_ended: bool = False  # it said itself that it is done, well or badly
    error: ErrorClass | None = None
    message: str = ""  # of the error, in the command's words
    retry_at: datetime | None = None
    is_hopeless: bool = False  # it will go on like this for ever; nobody needs to wait for its limits


class Reader(Protocol):
    """Reads one run's output as it grows. Bounded in memory; broken lines and bytes do no harm."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, wherever they were cut. Feed a newline when there will be no more."""

    @property
    def report(self) -> Report:
        """What the whole lines so far amount to."""


class SilentReader:
    """For commands whose output has no form that we know."""

    def feed(self, chunk: bytes) -> None:
        pass

    @property
    def report(self) -> Report:
        return Report()


class Lines:
    """Cuts bytes into lines: JSON objects go to `on_event`, all else to `on_text`."""

    def __init__(self, on_event: Callable[[dict[str, Any]], None], on_text: Callable[[str], None]) -> None:
        self._on_event, self._on_text = on_event, on_text
        self._rest = bytearray()
        self._skipping = False  # inside a line that is too long

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
        if not line.startswith("{"):
            self._on_text(line)
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            self._on_text(line)
            return
        if isinstance(event, dict):
            self._on_event(event)


# --- Reading what may be anything -------------------------------------------------------------------------


def mapping(value: Any) -> dict[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def words(value: Any, limit: int = NAME_MAX) -> str:
    """The value where it is a text, without NULs and not longer than the limit."""
    return value.replace("\0", "")[:limit] if isinstance(value, str) else ""


def count(value: Any) -> int:
    """A number of tokens: whole, not negative, not absurd."""
    return int(min(max(value, 0), TOKENS_MAX)) if _is_number(value) else 0


def dollars(value: Any) -> Decimal | None:
    """A cost, to a millionth of a dollar; None where it is none."""
    if not _is_number(value) or value < 0:
        return None
    return Decimal(str(value)).quantize(Decimal("0.000001")) if value < COST_MAX else COST_MAX


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)

"""The brake on wrong passwords and codes: a few free tries, then a wait that doubles with each further try.

A try is counted before its password is checked, in a row that all processes share, so that a hundred tries at
once get no further than a hundred in a row. A success takes back what it counted. What a refused try is told
depends only on the tries, and never on whether the user exists or the password was right.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from math import ceil
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from steroidsweb.models import SignInTries
from tasks.database.clock import estimated_time
from tasks.database.locking import locked, repeated
from tasks.text.counting import counted

FOR_NAME, FOR_ADDRESS = 5, 50  # tries in a row for one name from one address, and for one address
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
MEMORY = timedelta(minutes=15)  # tries are forgotten this long after the wait for the last one


@dataclass(frozen=True, slots=True)
class Counter:
    """A row of SignInTries, and how many tries it allows without a wait."""

    key: str
    limit: int

    def wait_after(self, count: int) -> timedelta:
        """Return how long the next try has to wait after so many in a row."""
        if count < self.limit:
            return timedelta()
        return min(FIRST_WAIT * 2 ** min(count - self.limit, 20), LONGEST_WAIT)


def counters(name: str, address: str) -> list[Counter]:
    """Return the counters of a try, in the order in which their rows are locked."""
    found = [
        Counter(_key("name", name.casefold(), address), FOR_NAME),
        Counter(_key("address", address), FOR_ADDRESS),
    ]
    return sorted(found, key=lambda counter: counter.key)


def for_person(user_pk: int, what: str) -> list[Counter]:
    """Return the counters of a "code" or "password" of somebody whose session is open, wherever they are.

    Each has its own, so that whoever guesses one does not lock the other.
    """
    return [Counter(_key(what, str(user_pk)), FOR_NAME)]


def _key(*words: str) -> str:
    return sha256("\0".join(words).encode(errors="replace")).hexdigest()


@repeated
def begin_try(counted: Sequence[Counter]) -> timedelta:
    """Count a try and return a zero wait, or return how long it has to wait; then it is not counted."""
    _forget()
    with transaction.atomic():
        rows = _locked(counted)
        now = estimated_time()  # only once the rows are locked, because locking may have taken a while
        if (wait := max(row.free_at for row in rows) - now) > timedelta():
            return wait
        for row, counter in zip(rows, counted, strict=True):
            row.count = 1 if row.forget_at <= now else row.count + 1
            row.free_at = now + counter.wait_after(row.count)
            row.forget_at = row.free_at + MEMORY
            row.save()
    return timedelta()


@repeated
def take_back(counted: Sequence[Counter]) -> None:
    """Delete the name's count after a success, and take this one try off the address's count."""
    with transaction.atomic():
        rows = _locked(counted)
        now = estimated_time()
        for row, counter in zip(rows, counted, strict=True):
            if counter.limit == FOR_NAME:
                row.delete()
            elif row.count:
                row.count -= 1
                row.free_at = min(row.free_at, now + counter.wait_after(row.count))
                row.save()


def braked(user: Any, what: str, check: Callable[[], str]) -> str:
    """Return what was typed, a "code" or "password", if `check` takes it. Raises ValidationError.

    Tries count for the user, wherever they are.
    """
    counted = for_person(user.pk, what)
    if wait := begin_try(counted):
        raise too_many(wait)
    typed = check()
    take_back(counted)
    return typed


@repeated
def use_once(user_pk: int, code: str, valid_for: timedelta) -> bool:
    """Whether the user's code is used for the first time, remembered for as long as it is valid."""
    _forget()
    now = estimated_time()
    _, is_first = SignInTries.objects.get_or_create(
        key=_key("used", str(user_pk), code), defaults={"free_at": now, "forget_at": now + valid_for}
    )
    return is_first


def _forget() -> None:
    """Delete what is over, in no transaction: whoever held such rows would stand in their owners' way."""
    SignInTries.objects.filter(forget_at__lt=estimated_time()).delete()


def _locked(counted: Sequence[Counter]) -> list[SignInTries]:
    """Return the rows of the counters, created if missing, locked until the transaction ends."""
    now, keys = estimated_time(), [each.key for each in counted]
    rows: list[SignInTries] = []
    while len(rows) < len(counted):  # another try may have deleted one before it was locked
        SignInTries.objects.bulk_create(
            (SignInTries(key=key, free_at=now, forget_at=now + MEMORY) for key in keys), ignore_conflicts=True
        )
        rows = list(locked(SignInTries.objects).filter(key__in=keys).order_by("key"))
    return rows


def too_many(wait: timedelta) -> ValidationError:
    """Return what somebody is told whose try has to wait."""
    says = f"Too many tries. Wait {in_words(wait)}, then try again."
    return ValidationError(says, code="too_many_tries")


def in_words(wait: timedelta) -> str:
    """Return the wait in words, rounded up so that waiting this long is enough."""
    seconds = ceil(wait.total_seconds())
    number, unit = (seconds, "second") if seconds < 60 else (ceil(seconds / 60), "minute")
    return counted(number, unit)

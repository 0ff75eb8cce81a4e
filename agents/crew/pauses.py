"""Pauses of accounts in trouble: nothing that signs in to one is started until its pause ends (LAD-4).

One table says what each class of error leads to. What pauses an account does not count as a failure of the
task; the rest does, and comes with a sentence that says what to change.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.models import ProviderPause, Run
from agents.providers.reports import MESSAGE_MAX, ErrorClass
from tasks.database.clock import database_time
from tasks.database.locking import locked
from tasks.database.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Effect:
    """What an error of one class means for the account, and what people should do about it."""

    says: str
    advice: str
    first: float = 0  # seconds of the first pause unless a time is named; doubles. 0: no pause, a failure
    most: float = 0

    @property
    def pauses(self) -> bool:
        return bool(self.first)


# Seconds after which an account is tried again, whatever time its provider named: that comes out of a run,
# into whose output an agent can write it, too. A provider that meant it says so again.
LONGEST = 6 * 3600
EFFECTS = {
    ErrorClass.START: Effect(
        "Its command could not be started",
        "Install it on the host, or correct the agent's settings, then run check_agent.",
        first=300, most=LONGEST,
    ),
    ErrorClass.SIGN_IN: Effect(
        "Its sign-in was refused", "Check the key, then try again.", first=300, most=LONGEST
    ),
    ErrorClass.QUOTA: Effect(
        "Its quota is used up", "Wait, raise the limit, or add an agent with another account.",
        first=900, most=LONGEST,
    ),
    ErrorClass.RATE: Effect("The server has no room", "It is tried again by itself.", first=30, most=1800),
    ErrorClass.NETWORK: Effect(
        "The server could not be reached", "Check the network and base_url if this lasts.", first=15, most=600
    ),
    ErrorClass.PROMPT: Effect(
        "The prompt is longer than the model takes",
        "Give the agent a model with a larger context, or split the task.",
    ),
    ErrorClass.MODEL: Effect(
        "The provider does not serve the model", "Correct the agent's model, or ask for access to it."
    ),
    ErrorClass.PERMISSION: Effect(
        "It asked for a permission, and nobody is there to give it",
        "Let the agent's own settings allow its tools.",
    ),
    ErrorClass.CRASH: Effect("Its command failed", "Run check_agent, and look at the end of the log."),
}  # fmt: skip


def paused(at: datetime | None = None) -> dict[str, ProviderPause]:
    """Return the pauses in effect at that time, or now, by account."""
    return {row.name: row for row in (_holding_then.found(at) if at else _holding.found())}


def holding(at: Any = None) -> QuerySet[ProviderPause]:
    """Return the pauses in effect at that time, or now."""
    return ProviderPause.objects.filter(until__gt=at or Now())


_holding, _holding_then = Prepared(lambda: holding()), Prepared(lambda at: holding(at))
_begun_before = Prepared(
    lambda account, at: ProviderPause.objects.filter(name=account, since__lte=at).values_list("pk", flat=True)
)


def pause(
    account: str,
    error: ErrorClass,
    message: str,
    *,
    until: datetime | None = None,
    began: datetime | None = None,
) -> ProviderPause:
    """Pause the account until the time that the provider named, or else for twice as long as last time.

    No pause is longer than LONGEST.
    Several runs may fail for one cause. Those that began before the pause did do not double it again.
    """
    for _ in range(2):
        try:
            with transaction.atomic():
                return _pause(account[:120], error, message, until, began)
        except IntegrityError:  # somebody else was faster with the first one
            continue
    return ProviderPause.objects.get(name=account[:120])


def _pause(
    account: str, error: ErrorClass, message: str, until: datetime | None, began: datetime | None
) -> ProviderPause:
    effect, now = EFFECTS[error], database_time()
    until = min(until, now + timedelta(seconds=LONGEST)) if until else None
    reason = f"{effect.says}: {' '.join(message.split())}"[:MESSAGE_MAX] if message else effect.says
    row = locked(ProviderPause.objects).filter(name=account).first()
    if row is None:
        ends = until or now + _length(effect, 1)
        return ProviderPause.objects.create(name=account, kind=error, reason=reason, since=now, until=ends)
    is_same_cause = began is not None and began <= row.since
    if is_same_cause:
        row.until = max(row.until, until) if until else row.until
    else:
        row.failures += 1
        row.until = until or now + _length(effect, row.failures)
        row.since = now
    row.kind, row.reason = error, reason
    row.save()
    return row


def _length(effect: Effect, failures: int) -> timedelta:
    """Return the length of the pause, which doubles with each failure up to a limit."""
    seconds = min(effect.first * 2 ** min(failures - 1, 20), effect.most)
    return timedelta(seconds=seconds * settings.TIME_SCALE)


def after(run: Run) -> None:
    """End the pause of the account of a run that handed in, if the run began after the trouble."""
    if run.agent is None or run.started_at is None:
        return
    if over := _begun_before.found(run.agent.account, run.started_at):  # rarely
        ProviderPause.objects.filter(pk__in=over, since__lte=run.started_at).delete()


def forget(account: str) -> None:
    """Forget the pause of an account that was checked and works."""
    ProviderPause.objects.filter(name=account).delete()


def end(account: str) -> bool:
    """End the pause because a person asks to try again; the count of failures is kept.

    Returns False if no pause is in effect.
    """
    return bool(holding().filter(name=account).update(until=Now()))

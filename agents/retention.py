"""Deletes what the retention settings no longer keep: logs, prompts, run folders and bundles.

Events, reviews and rulings are the record and are kept in full; the database refuses to delete them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import QuerySet

from agents import archives
from agents.doctor import machine
from agents.hosts import tidying
from agents.models import Output, Prompt, Run
from tasks.database.clock import estimated_time
from tasks.models import Bundle, Idempotency

PAGE = 500  # rows deleted in one transaction; an output may have a megabyte
REPLIES = timedelta(days=7)  # a call that is repeated later than that counts as a new one


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of rows and the setting that says for how many days to keep them, 0 meaning for ever."""

    name: str  # of one row
    days: Callable[[], float]
    rows: Callable[[datetime], QuerySet[Any]]


def _of_ended_runs(model: type[Any]) -> Callable[[datetime], QuerySet[Any]]:
    return lambda before: model.objects.filter(run__status=Run.Status.ENDED, run__ended_at__lt=before)


def _bundles(before: datetime) -> QuerySet[Bundle]:
    """Return the bundles whose commits have landed or are not wanted by anybody (RB-10).

    Those of rounds that were rolled back go as the project chose, once it has ended.
    """
    return Bundle.objects.filter(submission__in=archives.let_go(before).values("pk"))


RULES = [
    Rule("log piece", lambda: settings.KEEP_DAYS["logs"], _of_ended_runs(Output)),
    Rule("prompt", lambda: settings.KEEP_DAYS["prompts"], _of_ended_runs(Prompt)),
    Rule("commit bundle", lambda: settings.KEEP_DAYS["bundles"], _bundles),
    Rule(
        "kept answer",
        lambda: REPLIES / timedelta(days=1),
        lambda before: Idempotency.objects.filter(at__lt=before),
    ),
]


def prune_rows(seconds: float, *, is_trial: bool = False) -> dict[str, int]:
    """Delete old rows for at most `seconds`, and return how many of each kind. A trial only counts them."""
    deadline, gone = time.monotonic() + seconds, {}
    for rule in RULES:
        if not (days := rule.days()):
            continue
        rows = rule.rows(estimated_time() - timedelta(days=days)).order_by("pk")
        gone[rule.name] = rows.count() if is_trial else _delete(rows, deadline)
    if not is_trial:
        Session.objects.filter(expire_date__lt=estimated_time()).delete()
    return gone


def _delete(rows: QuerySet[Any], deadline: float) -> int:
    gone = 0
    while time.monotonic() < deadline and (page := list(rows.values_list("pk", flat=True)[:PAGE])):
        gone += rows.model.objects.filter(pk__in=page).delete()[0]
    return gone


# --- Of this host -----------------------------------------------------------------------------------------


def prune_host() -> list[str]:
    """Remove old run folders and leftovers of killed programs, cut logs, pack mirrors; return a line each."""
    return [*tidying.tidy(), *machine.remove_orphans(), *machine.cut_logs()]
